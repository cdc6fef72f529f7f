"""Which access sites deserve memory: stays by brute force, worth by closed forms."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate.analysis.exact import TouchSequence, analyze_access_sites, leu_misses, leu_stays
from tidegate.analysis.exact.access_sites import objects_of
from tidegate.analysis.exact.leu.rational import exact_leu
from tidegate.errors import TidegateError
from traces import FLAT, PAGES, SMALL, Given, Kernel, Touch, one_block, reads

pytestmark = pytest.mark.oracle


@pytest.mark.slow
@settings(deadline=None, max_examples=120)
@given(
    st.lists(st.tuples(st.integers(0, 7), st.integers(0, 3)), min_size=1, max_size=60),
    st.integers(1, 6),
    st.booleans(),
)
def test_stays_are_what_the_exact_equations_keep(pairs, capacity, by_reference):
    ids, references = ([p[i] for p in pairs] for i in (0, 1))
    owners = references if by_reference else None
    resident = exact_leu(ids, capacity, owners).resident
    stays = leu_stays(TouchSequence.from_ids(ids, owners), capacity)
    for i, id in enumerate(ids):
        ends = (j for j in range(i + 1, len(ids)) if ids[j] == id or id not in resident[j])
        assert stays[i] == next(ends, len(ids)) - i


def hot_and_loop(rounds, loop):
    """axayaz …: reference 0 touches one page of the first object, reference 1 walks round the
    second.
    """
    touches = [
        t for i in range(rounds * loop) for t in (Touch(0), Touch(1 + i % loop, reference=1))
    ]
    return one_block(touches, [1, loop], FLAT)


def test_a_hot_page_deserves_memory_and_a_loop_as_much_as_fits():
    trace = hot_and_loop(10, 6)
    touches = TouchSequence.of_trace(trace)
    found = analyze_access_sites(trace, touches, "region", 4096, 4)
    assert [(r.site, r.object) for r in found.sites] == [(0, "o0"), (1, "o1")]
    hot, loop = found.sites
    assert (hot.lease, loop.lease) == (2, 12)
    assert (hot.lease_hits, loop.lease_hits) == (59 / 60, 54 / 60)
    assert (hot.reused, loop.reused) == (59 / 60, 54 / 60)
    assert (hot.quantile(0.5), loop.quantile(0.9)) == (2, 12)
    assert found.hits == 120 - leu_misses(touches.ids, 4, touches.owners)
    assert hot.hits * found.hits == pytest.approx(59)
    assert hot.hits + loop.hits == pytest.approx(1)
    assert hot.memory + loop.memory == pytest.approx(1)
    assert hot.worth > 1 > loop.worth


def test_what_is_never_reused_has_no_lease():
    trace = one_block([*reads([0, 1, 0, 1]), *reads(range(2, 9), reference=4)], [9], FLAT)
    once = next(
        r
        for r in analyze_access_sites(trace, TouchSequence.of_trace(trace), "region", 4096, 2).sites
        if r.site == 4
    )
    assert (once.lease, once.lease_hits, once.hits, once.quantile(0.5)) == (None, 0, 0, None)


def test_of_a_run_of_touches_the_last_one_decides():
    """Pages 0 and 1 are of one region; a run goes on from one segment to the next."""
    touches = [
        [Touch(0, reference=1), Touch(1, reference=2)],
        [Touch(2, reference=3), Touch(PAGES, reference=5)],
    ]
    flat = TouchSequence.of_trace(Given([Kernel(touches, cuts=(1,))], [2 * PAGES]))
    assert flat.ids.tolist() == [0, 1]
    assert flat.owners.tolist() == [3, 5]
    assert TouchSequence.of_trace(Given([Kernel(touches)], [2 * PAGES]), "page").ids.tolist() == [
        0,
        1,
        2,
        PAGES,
    ]


def test_objects_of_regions_and_of_pages():
    trace = one_block(reads([0, 3 * PAGES]), [2 * PAGES, PAGES, 3 * PAGES], SMALL)
    assert objects_of(trace, np.array([0, 1, 2, 5], np.int32), "region").tolist() == [0, 0, 1, 2]
    assert objects_of(trace, np.array([2 * PAGES - 1, 2 * PAGES], np.int32), "page").tolist() == [
        0,
        1,
    ]


def test_where_all_fits_there_is_nothing_to_say():
    trace = hot_and_loop(2, 3)
    with pytest.raises(TidegateError, match="capacity must be below the 4 regions of given, got 4"):
        analyze_access_sites(trace, TouchSequence.of_trace(trace), "region", 4096, 4)
