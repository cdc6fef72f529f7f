"""Any eviction policy works with any prefetcher and any placement, compiled or not: no crash, and
the same run.
"""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate.errors import PolicyError
from tidegate.policies.prefetch.together import make_prefetch
from tidegate.policies.registries import eviction, placement, prefetch
from traces import PAGES, Given, Kernel, machine, reads, run_of, simulation_of
from worlds import observing, traces


@pytest.mark.slow
@given(
    st.sampled_from(eviction.names()),
    st.sampled_from([*prefetch.names(), "fdp+rgp"]),
    st.sampled_from(placement.names()),
    observing(),
    traces(),
    st.integers(1, 6),
)
@settings(max_examples=60, deadline=None)
def test_every_combination_runs(evict, ahead, where, on, trace, frames):
    found = []
    for compiled in (True, False):
        policies = {"eviction": evict, "prefetch": make_prefetch(ahead), "placement": where}
        simulation = simulation_of(trace, on, frames, compiled=compiled, **policies)
        try:
            simulation.run()
        except PolicyError as error:  # explicit copies what launches use, which must fit
            if "explicit copies" not in str(error):
                raise
        found.append({name: int(simulation.books[0][name]) for name in ("touches", "faults")})
    assert found[0] == found[1]


@pytest.mark.slow
@pytest.mark.parametrize("first", range(6))
def test_leu_knows_a_region_that_is_touched_as_soon_as_it_was_prefetched(first):
    """Six regions are prefetched into four frames, so LEU looks at some before anything is touched.
    One of these has the first touch of all, at the time at which LEU looked.
    """
    touched = [first, *(region for region in range(6) if region != first)]
    trace = Given([Kernel([reads([region * PAGES for region in touched])])], [6 * PAGES])
    runs = [
        run_of(trace, machine(), 4, eviction="leu", placement="prefetch-all", compiled=compiled)
        for compiled in (False, True)
    ]
    assert runs[0].counts == runs[1].counts
    assert runs[0].counts["evictions"] > 2
