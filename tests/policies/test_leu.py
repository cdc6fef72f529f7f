"""LEU as a policy: it learns loops, keeps the hot, stays in its table, and looks at few regions per victim."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate.policies.eviction.leu import LEU
from tidegate.policies.intervals import BUCKETS, EDGES, IntervalTable, Reference, bucket_of
from traces import FLAT, Touch, flat, machine, one_block, run_of, simulation_of


def faults(trace, frames, eviction):
    return run_of(trace, machine(), frames, eviction=eviction).counts["faults"]


def by_reference(pairs):
    """Touches of (page, reference)."""
    return one_block([Touch(page, reference=reference) for page, reference in pairs], [max(p for p, _ in pairs) + 1], FLAT)


def hot_and_loop(rounds, loop, hot=1):
    """axayaz …: reference 0 touches hot pages, reference 1 walks round the others."""
    return by_reference([x for i in range(rounds * loop) for x in ((i % hot, 0), (hot + i % loop, 1))])


@given(st.integers(0, 2**31))
def test_buckets_hold_what_their_edges_say(interval):
    bucket = bucket_of(interval)
    assert EDGES[bucket] <= interval < EDGES[bucket + 1] or bucket == BUCKETS - 1


def test_a_distribution_in_buckets_gives_the_papers_order():
    """Of a loop of 6 (bucket 6 to 8), TESLA 4 is worth more than 2, and 2 more than 0."""
    loop = Reference(0, touches=100)
    loop.counts[bucket_of(6)] = 100
    loop.refresh()
    values = [loop.priority(bucket_of(tesla), tesla) for tesla in (4, 2, 0)]
    assert values == [1 / 4, 1 / 6, 1 / 8]
    assert loop.priority(bucket_of(9), 9) == 0


def test_a_loop_is_learned():
    trace = flat(np.tile(np.arange(40), 60))
    lru, leu, best = (faults(trace, 30, policy) for policy in ("lru-ideal", "leu", "belady"))
    assert lru == 2400
    assert leu < best + 0.15 * (lru - best)


def test_hot_pages_stay_and_the_loop_is_evicted_as_mru_does():
    trace = hot_and_loop(60, 40)
    lru, leu, best = (faults(trace, 20, policy) for policy in ("lru-ideal", "leu", "belady"))
    assert leu < best + 0.2 * (lru - best)


@pytest.mark.parametrize("options", ["sample=0.3", "table=1", "batch=1", "batch=200", "sample=0"])
def test_variants_run(options):
    """With less to go by it is worse than with everything, never broken."""
    trace = hot_and_loop(30, 40, hot=5)
    assert 45 <= faults(trace, 20, f"leu({options})") <= 2400


def test_without_samples_it_is_lru_but_for_the_order_within_a_bucket():
    trace = flat(np.random.default_rng(0).zipf(1.3, 3000) % 80)
    assert faults(trace, 20, "leu(sample=0)") == pytest.approx(faults(trace, 20, "lru-ideal"), rel=0.02)


@settings(deadline=None, max_examples=60, derandomize=True)
@given(
    st.lists(st.tuples(st.integers(0, 15), st.integers(0, 6)), min_size=1, max_size=200),
    st.integers(1, 8),
    st.integers(1, 3),
)
def test_references_come_and_go(pairs, frames, table):
    """finished() holds queues against the resident set and the table against its bound."""
    simulation = simulation_of(by_reference(pairs), machine(), frames, eviction=LEU(table=table, batch=3))
    simulation.run()
    assert simulation.eviction.report()["references"] <= table


def test_the_coldest_reference_gives_way():
    table = IntervalTable(size=2, batch=10)
    for reference, times in ((7, 3), (8, 1), (9, 1)):
        for _ in range(times):
            table.saw(reference, 1, 4)
    assert table.take_in() == [1]
    assert set(table.entries) == {7, 9}
    assert table.entry(8) is table.others


def test_candidates_do_not_grow_with_residents():
    class Counting(LEU):
        most = 0

        def _candidate(self):
            self.most = max(self.most, len(list(self._candidates())))
            return super()._candidate()

    for frames in (50, 400):
        rng = np.random.default_rng(1)
        policy = Counting()
        simulation_of(flat(rng.integers(0, 2 * frames, 6000)), machine(), frames, eviction=policy).run()
        assert 0 < policy.most <= 30
