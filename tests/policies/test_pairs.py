"""Any eviction policy works with any prefetcher and any placement, compiled or not: no crash, and
the same run.
"""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate.errors import PolicyError
from tidegate.policies.eviction.leu.policy import LEU
from tidegate.policies.prefetch.together import make_prefetch
from tidegate.policies.registries import eviction, placement, prefetch
from traces import PAGES, Given, Kernel, machine, reads, run_of, simulation_of
from worlds import observing, traces


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
        except PolicyError as error:
            assert where == "explicit", error  # it copies what a launch uses, which must fit
            assert "near memory holds" in str(error)
        found.append({name: int(simulation.books[0][name]) for name in ("touches", "faults")})
    assert found[0] == found[1]


def test_leu_knows_a_region_that_is_touched_as_soon_as_it_was_prefetched():
    """The first touch of all is of a region that was prefetched before it, at time 0; then the
    other regions come, and LEU looks at it.
    """
    trace = Given([Kernel([reads([0, *range(PAGES, 5 * PAGES)])])], [5 * PAGES])
    runs = [
        run_of(trace, machine(), 2, eviction=LEU(), placement="prefetch-all", compiled=compiled)
        for compiled in (True, False)
    ]
    assert runs[0].counts == runs[1].counts
    assert runs[0].counts["evictions"] >= 3
