"""LEU as a policy: the victim is the lowest of all, loops are learned, the hot stay, the table
keeps its bound.
"""

from __future__ import annotations

from collections import Counter
from itertools import count

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate.analysis.exact.leu.rational import Distribution
from tidegate.policies.eviction.leu.cells import Cells, cell_of, least_tesla
from tidegate.policies.eviction.leu.interval_table import (
    BUCKETS,
    EDGES,
    LONGEST,
    IntervalTable,
    SiteEntry,
    bucket_of,
)
from tidegate.policies.eviction.leu.observed import LEUObserved
from tidegate.policies.eviction.leu.policy import LEU, Moment, draw, reuses
from tidegate.policies.interface.visibility import Samples
from traces import (
    FLAT,
    PAGES,
    Given,
    Kernel,
    Touch,
    flat,
    machine,
    one_block,
    reads,
    run_of,
    simulation_of,
)
from worlds import machines, traces


def faults(trace, frames, eviction):
    return run_of(trace, machine(), frames, eviction=eviction).counts["faults"]


def by_reference(pairs):
    """Touches of (page, reference)."""
    return one_block(
        [Touch(page, reference=reference) for page, reference in pairs],
        [max(p for p, _ in pairs) + 1],
        FLAT,
    )


def hot_and_loop(rounds, loop, hot=1):
    """axayaz …: access site 0 touches hot pages, site 1 the others cyclically."""
    return by_reference(
        [x for i in range(rounds * loop) for x in ((i % hot, 0), (hot + i % loop, 1))]
    )


# Buckets, and the priorities they give


@given(st.integers(0, 2**31))
def test_buckets_hold_what_their_edges_say(interval):
    bucket = bucket_of(interval)
    assert EDGES[bucket] <= interval < EDGES[bucket + 1] or bucket == BUCKETS - 1


def rounded(entry):
    """An entry's distribution, for the exact equations."""
    return Distribution(
        Counter({LONGEST[b]: n for b, n in enumerate(entry.counts) if n}), entry.touches
    )


@settings(deadline=None, max_examples=100)
@given(st.dictionaries(st.integers(1, 30), st.integers(1, 9), max_size=8), st.integers(0, 5))
def test_an_entry_has_the_exact_priorities_of_its_rounded_intervals(counts, unused):
    entry = SiteEntry(0)
    for bucket, n in counts.items():
        entry.counts[bucket] = n
    entry.touches = sum(counts.values()) + unused
    entry.refresh()
    for tesla in [*range(60), 100, 1000, 10**6]:
        assert entry.priority(tesla)[0] == pytest.approx(
            float(rounded(entry).priority(tesla)[0]), rel=1e-12
        )


def test_a_distribution_in_buckets_gives_the_papers_order():
    """Of a loop of 6 (bucket 6 and 7), TESLA 4 is worth more than 2, and 2 more than 0."""
    loop = SiteEntry(0, touches=100)
    loop.counts[bucket_of(6)] = 100
    loop.refresh()
    assert [loop.priority(tesla)[0] for tesla in (4, 2, 0)] == [1 / 3, 1 / 5, 1 / 7]
    assert loop.priority(7)[0] == 0


# Cells


def level_by_definition(last, now):
    return next(level for level in count() if (now >> level) - (last >> level) < 16)


@given(st.integers(0, 2**34), st.integers(0, 2**34))
def test_a_cell_is_where_its_definition_says(last, age):
    level = level_by_definition(last, last + age)
    assert cell_of(last, last + age) == (level, last >> level)


def test_least_tesla_is_the_least():
    for now in (0, 5, 16, 31, 100, 333, 1023):
        cells = {}
        for last in range(now + 1):
            cells.setdefault(cell_of(last, now), []).append(now - last)
        for (level, number), teslas in cells.items():
            assert least_tesla(level, number, now) == min(teslas)
            assert max(teslas) <= min(teslas) * 1.25


@given(st.lists(st.tuples(st.integers(0, 40), st.integers(0, 300)), min_size=1, max_size=60))
def test_time_takes_regions_where_they_belong(moves):
    """Enter regions at odd moments, let time pass in jumps: all are where a fresh look would put
    them.
    """
    cells, now, last = Cells(), 0, {}
    for region, (age, step) in enumerate(moves):
        now += step
        cells.advance(now)
        last[region] = max(0, now - age)
        cells.enter(region, last[region])
        if region % 5 == 4:
            cells.leave(region - 2, last.pop(region - 2))
    held = {region: tesla for tesla, regions in cells for region in regions}
    assert held == {r: least_tesla(*cell_of(when, now), now) for r, when in last.items()}


# The victim is the lowest of all


class Checked(LEU):
    """Compares each victim with all resident regions, by the exact equations."""

    checked = 0

    def victim(self):
        region = super().victim()
        if region in self._known:
            assert self.memory.touch_count(region) == self._known[region].touches
            ranks = {r: rank_of(self._rimm, r, self.memory.now) for r in self._known}
            assert ranks[region] == min(ranks.values())
            type(self).checked += 1
        return region


def rank_of(rimm, region, now):
    """Priority by the exact equations, and how long ago, as far as a cell tells: the lowest is to
    go.
    """
    place, last = rimm._where[region]
    level = level_by_definition(last, now)
    latest = last  # that shares the cell
    while latest < now and (level_by_definition(latest + 1, now), latest + 1 >> level) == (
        level,
        last >> level,
    ):
        latest += 1
    return rounded(rimm.table.at(place)).priority(now - latest)[0], latest - now


@settings(deadline=None, max_examples=60, derandomize=True)
@given(
    st.lists(st.tuples(st.integers(0, 15), st.integers(0, 6)), min_size=1, max_size=200),
    st.integers(1, 8),
    st.integers(1, 3),
)
def test_the_victim_is_the_lowest_of_all(pairs, frames, table):
    policy = Checked(table=table, batch=3)
    simulation_of(by_reference(pairs), machine(), frames, eviction=policy).run()
    assert policy.report()["references"] <= table


@settings(deadline=None, max_examples=40, derandomize=True)
@given(traces(), machines(), st.integers(1, 9), st.sampled_from(["none", "tree", "region"]))
def test_the_victim_is_the_lowest_of_all_on_any_machine(trace, on, frames, ahead):
    simulation_of(trace, on, frames, eviction=Checked(batch=2), prefetch=ahead).run()


def test_the_victim_is_the_lowest_of_all_in_a_longer_run():
    Checked.checked = 0
    simulation_of(hot_and_loop(12, 40, hot=5), machine(), 20, eviction=Checked()).run()
    assert Checked.checked > 200


# The twin, with options that the tests of all twins leave alone


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [
        {"sample": 0.3},
        {"table": 1},
        {"table": 2, "batch": 1},
        {"batch": 500},
        {"sample": 0},
        {"forget": 50},
        {"table": 3, "batch": 4, "forget": 2},
    ],
)
def test_a_twin_goes_by_the_options(options):
    rng = np.random.default_rng(5)
    draws = rng.zipf(1.2, (300, 12)) % (60 * PAGES)
    blocks = [[Touch(int(p), reference=int(p) % 7) for p in row] for row in draws]
    trace = Given([Kernel(blocks[:200]), Kernel(blocks[200:], width=2)], [60 * PAGES])
    found = []
    for compiled in (True, False):
        simulation = simulation_of(
            trace, machine(8), 23, eviction=LEU(**options), prefetch="tree", compiled=compiled
        )
        simulation.run()
        found.append((simulation.books.tolist(), simulation.eviction.report()))
    assert found[0] == found[1]
    assert found[0][1]["references"] == (
        0 if options.get("sample") == 0 else min(7, options.get("table", 7))
    )


# What it learns


def test_a_loop_is_learned():
    trace = flat(np.tile(np.arange(40), 60))
    lru, leu, best = (faults(trace, 30, policy) for policy in ("lru-ideal", "leu", "belady"))
    assert lru == 2400
    assert leu < best + 0.15 * (lru - best)


def test_hot_pages_stay_and_the_loop_is_evicted_as_mru_does():
    trace = hot_and_loop(60, 40)
    lru, leu, best = (faults(trace, 20, policy) for policy in ("lru-ideal", "leu", "belady"))
    assert leu < best + 0.2 * (lru - best)


def test_what_it_forgets_it_learns_anew():
    """A loop of 24 regions, then one of 40, by one instruction: old intervals are in the way."""
    trace = flat(np.concatenate([np.tile(np.arange(24), 400), np.tile(np.arange(40), 60)]))
    old, new = (faults(trace, 30, f"leu(forget={n})") for n in (0, 200))
    assert new < old


def test_ageing_halves_counts():
    table = IntervalTable(2, 1, forget=8)
    for _ in range(8):
        table.saw(5, 1, 3)
        table.take_in()
    assert (table.entries[5].touches, sum(table.entries[5].counts)) == (4, 4)


def test_priorities_by_fault_stay_as_they_were():
    """One instruction: priorities at the fault hardly differ, so they rank nothing in a loop."""
    loop = flat(np.tile(np.arange(40), 20))
    assert faults(loop, 30, "leu") < faults(loop, 30, "leu-at-fault") <= 800
    # hot regions by one instruction keep their room from a loop by another
    trace = hot_and_loop(60, 40)
    fifo, leu = faults(trace, 20, "fifo"), faults(trace, 20, "leu-at-fault")
    assert leu < fifo


@pytest.mark.parametrize("options", ["sample=0.3", "table=1", "batch=1", "batch=200", "sample=0"])
def test_with_less_to_go_by_it_is_worse_never_broken(options):
    trace = hot_and_loop(30, 40, hot=5)
    assert 45 <= faults(trace, 20, f"leu({options})") <= 2400


def test_without_samples_it_is_lru_but_for_the_order_within_a_cell():
    trace = flat(np.random.default_rng(0).zipf(1.3, 3000) % 80)
    assert faults(trace, 20, "leu(sample=0)") == pytest.approx(
        faults(trace, 20, "lru-ideal"), rel=0.02
    )


def test_a_share_of_the_regions_is_sampled():
    drawn = np.array([draw(region) for region in range(10_000)]) / 2**53
    assert np.histogram(drawn, 10, (0, 1))[0] == pytest.approx(np.full(10, 1000), abs=100)


# The sampler


def test_moments_are_reuses():
    """Region 0 is used at 0, 1 and 2, then again at 6; the three gaps are counted for who made the
    touch before.
    """
    found = list(reuses(Moment(0, 1), [Moment(1, 2), Moment(2, 3), Moment(6, 4)], touches=3))
    assert found == [(1, 1, 1), (2, 1, 1), (3, 1, 4)]


@given(
    st.lists(st.integers(1, 50), min_size=1, max_size=8), st.integers(0, 100), st.integers(0, 20)
)
def test_no_touch_is_lost_and_none_is_longer_than_the_whole(gaps, before, hidden):
    when = (before + hidden + np.cumsum(gaps)).tolist()
    found = list(reuses(Moment(before, 0), [Moment(w, 0) for w in when], len(gaps) + hidden))
    assert sum(n for _, n, _ in found) == len(gaps) + hidden
    assert all(1 <= interval <= when[-1] - before for _, _, interval in found)


def test_the_coldest_access_site_is_replaced():
    table = IntervalTable(size=2, batch=10)
    for reference, times in ((7, 3), (8, 1), (9, 1)):
        for _ in range(times):
            table.saw(reference, 1, 4)
    assert table.take_in() == [1]
    assert set(table.entries) == {7, 9}
    assert table.at(table.place(8)) is table.others


def test_candidates_do_not_grow_with_residents():
    class Counting(LEU):
        most = 0

        def victim(self):
            region = super().victim()
            self.most = max(
                self.most, sum(1 for cells in self._rimm._cells.values() for _ in cells)
            )
            return region

    for frames in (100, 1000):
        policy = Counting()
        ids = np.concatenate(
            [np.arange(2 * frames), np.random.default_rng(1).integers(0, 2 * frames, 1500)]
        )
        simulation_of(flat(ids), machine(), frames, eviction=policy).run()
        # sixteen cells to a level, eight of them at a time, and 2¹² touches
        assert 10 < policy.most <= 140


# From faults and notifications alone


class CheckedObserved(LEUObserved):
    """Compares each victim with all resident regions, by the exact equations."""

    checked = 0

    def victim(self):
        region = super().victim()
        if region in self._rimm:
            ranks = {r: rank_of(self._rimm, r, self._clock) for r in self._rimm._where}
            assert ranks[region] == min(ranks.values())
            type(self).checked += 1
        return region


@settings(deadline=None, max_examples=40, derandomize=True)
@given(traces(), machines(), st.integers(1, 9), st.sampled_from(["none", "tree", "region"]))
def test_from_notifications_the_victim_is_the_lowest_of_all(trace, on, frames, ahead):
    simulation_of(trace, on, frames, eviction=CheckedObserved(batch=2), prefetch=ahead).run()


@pytest.mark.slow
def test_from_notifications_a_loop_is_learned():
    """Loops of whole regions, in two objects: no touch is seen but faults and observed ones."""
    assert isinstance(LEUObserved.sees, Samples)
    CheckedObserved.checked = 0
    trace = one_block(reads(np.tile(np.arange(0, 40 * PAGES, PAGES), 40)), [30 * PAGES, 10 * PAGES])
    counts = {}
    for policy in ("lru", CheckedObserved(), "belady"):
        simulation = simulation_of(trace, machine(), 30, eviction=policy, prefetch="region")
        simulation.run()
        counts[policy if isinstance(policy, str) else "leu"] = int(simulation.books["evictions"][0])
    assert CheckedObserved.checked > 200
    assert counts["leu"] < counts["belady"] + 0.4 * (counts["lru"] - counts["belady"])
