"""CPPE's policies and those it is compared with, held against the paper's text, algorithm and
Figure 6.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tidegate.errors import PolicyError, TidegateError
from tidegate.policies.interface.policy import Policy
from tidegate.policies.registries import eviction, prefetch
from tidegate.policies.structures.patterns import Patterns
from tidegate.policy import EvictionPolicy, TouchBits
from tidegate.trace.geometry import Geometry
from tidegate.trace.trace import lay_out
from traces import Given, Kernel, machine, one_block, reads, run_of

CHUNKS = Geometry(4096, 65536)


class FakeMemory(SimpleNamespace):
    """Keeps requests; tests say what was touched, what faulted and what is resident."""

    def __init__(self, geometry: Geometry = CHUNKS, regions: int = 1000, frames: int = 500):
        objects = lay_out({"a": regions * geometry.region}, geometry)
        super().__init__(
            geometry=geometry,
            regions=regions,
            frames=frames,
            objects=objects,
            shared={},
            asked=[],
            here=set(),
            bits={},
            faults={},
            served=set(),
            observable=0,
        )

    def touched(self, region: int) -> Any:
        own = np.ones(self.geometry.pages_per_region, bool)
        own[self.bits.get(region, 0) :] = region not in self.bits
        return own

    def near(self, region: int) -> Any:
        return np.ones(self.geometry.pages_per_region, bool)

    def faulted(self, region: int) -> Any:
        return np.array(self.faults.get(region, [0]))

    def is_served(self, region: int) -> bool:
        return region in self.served

    def is_resident(self, region: int) -> bool:
        return region in self.here

    def prefetch(self, first: int, pages: int = 1) -> None:
        self.asked.append((first, pages))

    def evict(self, region: int) -> None:
        self.asked.append(region)

    def set_prefetch_threshold(self, percent: int) -> None:
        self.asked.append(f"threshold {percent}")


def started(policy: Policy, memory: FakeMemory | None = None) -> Any:
    policy.attach(memory or FakeMemory())  # type: ignore[arg-type]
    policy.start()
    return policy


def arrive(policy: Any, *regions: int) -> None:
    for region in regions:
        policy.memory.here.add(region)
        policy.on_fault(region)


def leave(policy: Any) -> int:
    region = policy.victim()
    policy.memory.here.discard(region)
    policy.on_eviction(region)
    return region


# MHPE


@pytest.mark.parametrize(("chain", "distance"), [(40, 2), (300, 3), (799, 7), (5000, 8)])
def test_the_forward_distance_begins_at_a_hundredth_of_the_chain_within_2_to_8(
    chain: int, distance: int
) -> None:
    p = started(eviction.make("mhpe"), FakeMemory(regions=6000))
    arrive(p, *range(chain))
    p.victim()
    assert p.distance == distance
    assert p._evicted.maxlen == max(8, chain // 64 * 8)


def test_mru_passes_over_the_new_and_middle_partitions_and_then_the_forward_distance() -> None:
    p = started(eviction.make("mhpe"))
    arrive(p, *range(40))  # four chunks to an interval: 40 is the beginning of the eleventh
    # this interval has none yet, the last one 36 to 39; two more are skipped
    assert p.victim() == 33
    arrive(p, 40)
    assert p.victim() == 33
    p = started(eviction.make("mhpe(skip=nothing)"))
    arrive(p, *range(40))
    assert p.victim() == 37


def test_figure_5_with_nothing_recent_and_no_distance() -> None:
    """Eight chunks, intervals so short that C5 to C8 are recent: MRU takes C4, LRU takes C1."""
    p = started(eviction.make("mhpe(interval=32, nearest=0, farthest=0)"))
    arrive(p, *range(1, 9))
    assert p._chain.interval == 4
    recent = [r for r, at in p._chain._referenced.items() if at >= 3]
    assert recent == [7, 8]
    p = started(eviction.make("mhpe(interval=64, nearest=0, farthest=0)"))
    arrive(p, *range(1, 9))
    assert p.victim() == 4
    p.strategy = "lru"
    assert p.victim() == 1


def test_much_untouched_in_one_interval_turns_mru_to_lru_for_good() -> None:
    p = started(eviction.make("mhpe"))
    arrive(p, *range(40))
    for newcomer in range(100, 104):
        p.memory.bits[p.victim()] = 8  # half of it was touched
        leave(p)
        arrive(p, newcomer)
    assert p.strategy == "lru"  # 4 × 8 = T1
    for newcomer in range(104, 140):
        leave(p)
        arrive(p, newcomer)
    assert p.strategy == "lru"


def test_moderately_much_in_the_first_four_intervals_turns_it_too() -> None:
    p = started(eviction.make("mhpe"))
    arrive(p, *range(40))
    for newcomer in range(100, 116):
        p.memory.bits[p.victim()] = 13  # three untouched of each: 12 an interval, 48 in four
        leave(p)
        arrive(p, newcomer)
        assert p.strategy == ("mru" if newcomer < 115 else "lru")


def test_the_forward_distance_grows_by_the_larger_of_both_sources_up_to_a_limit() -> None:
    p = started(eviction.make("mhpe"))
    assert [p._level(u) for u in (0, 3, 4, 10, 11, 17, 18, 24, 25, 31)] == [
        0,
        0,
        1,
        1,
        2,
        2,
        3,
        3,
        4,
        4,
    ]
    arrive(p, *range(40))
    p.victim()
    p._untouched, p._wrong = 12, 1
    p._end_interval()
    assert p.distance == 4  # 2 + max(2, 1)
    p._untouched, p._wrong = 0, 3
    p._end_interval()
    assert p.distance == 7
    p.distance, p._wrong = 32, 4
    p._end_interval()
    assert p.distance == 36  # T3 is where it stops growing
    p._wrong = 4
    p._end_interval()
    assert p.distance == 36


@pytest.mark.parametrize("head", ["mru", "both"])
def test_a_wrongly_evicted_chunk_comes_back_at_the_head(head: str) -> None:
    p = started(eviction.make(f"mhpe(head={head})"))
    arrive(p, *range(40))
    gone = leave(p)
    arrive(p, gone)
    assert p._wrong == 1
    assert p._chain.head == gone
    arrive(p, 50)
    assert p._chain.tail == 50
    p.strategy = "lru"  # the head is the next to go again
    gone = leave(p)
    arrive(p, gone)
    assert gone == (p._chain.head if head == "both" else p._chain.tail)


def test_patterns_are_recorded_once_the_strategy_is_lru_and_half_is_untouched() -> None:
    p = started(eviction.make("mhpe"))
    patterns = Patterns.of(p.memory)
    arrive(p, *range(40))
    p.memory.bits = {0: 8, 1: 9, 33: 2}
    assert leave(p) == 33
    assert not patterns  # still MRU
    p.strategy = "lru"
    assert [leave(p), leave(p)] == [0, 1]
    # 1 has seven untouched pages only
    assert {r: sorted(t.touched) for r, t in patterns.items()} == {0: list(range(8))}


# The pattern-aware prefetcher


def with_pattern(scheme: int) -> Any:
    """Figure 6: chunks of four pages; of chunk 8 pages 1 and 3 were touched."""
    p = started(prefetch.make(f"pattern(scheme={scheme})"), FakeMemory(Geometry(4096, 16384)))
    p._patterns.record(8, frozenset((1, 3)))
    return p


def fault(p: Any, *pages: int) -> list[Any]:
    p.memory.asked.clear()
    p.memory.faults[8] = list(pages)
    p.on_fault(8)
    return sorted(p.memory.asked)


@pytest.mark.parametrize("scheme", [1, 2])
def test_figure_6_first_stream(scheme: int) -> None:
    p = with_pattern(scheme)
    assert fault(p, 2) == [(32, 4)]  # it does not match: the whole chunk
    assert 8 not in p._patterns


@pytest.mark.parametrize(("scheme", "left"), [(1, False), (2, True)])
def test_figure_6_second_stream(scheme: int, left: bool) -> None:
    p = with_pattern(scheme)
    assert fault(p, 1) == [(33, 1), (35, 1)]  # it matches: what was touched
    assert fault(p, 2) == [(32, 4)]
    assert (8 in p._patterns) == left


def test_a_chunk_without_a_pattern_comes_whole() -> None:
    p = started(prefetch.make("pattern"))
    p.on_fault(3)
    assert p.memory.asked == [(48, 16)]


def test_it_records_for_itself_where_nobody_else_does() -> None:
    p = started(prefetch.make("pattern"))
    p.memory.bits = {3: 8, 4: 9}
    p.on_eviction(3)
    p.on_eviction(4)
    assert list(p._patterns) == [3]
    p._patterns.kept = True
    p.memory.bits[5] = 1
    p.on_eviction(5)
    assert list(p._patterns) == [3]


# The others


def test_reserved_lru_passes_over_the_oldest() -> None:
    p = started(eviction.make("reserved-lru(percent=20)"))
    arrive(p, *range(10))
    assert [leave(p), leave(p)] == [2, 3]
    arrive(p, 10, 11)
    arrive(p, 0)  # the oldest is migrated again: it is the youngest now, and another is reserved
    assert list(p._reserved) == [1, 4]
    assert leave(p) == 5
    assert started(eviction.make("reserved-lru(percent=0)")).percent == 0


def test_sequential_local_fetches_the_blocks_around_faults() -> None:
    p = started(prefetch.make("sequential-local"), FakeMemory(Geometry(4096, 2 << 20)))
    p.memory.faults[1] = [0, 3, 40]
    p.on_fault(1)
    assert sorted(p.memory.asked) == [(512, 16), (544, 16)]


def test_sle_is_lrm_where_a_region_is_a_block_and_takes_neighbours_where_it_is_less() -> None:
    p = started(eviction.make("sle"))
    arrive(p, 5, 6, 7)
    assert leave(p) == 5
    assert p.memory.asked == []
    p = started(eviction.make("sle"), FakeMemory(Geometry(4096, 16384)))
    arrive(p, 5, 6, 7, 8)
    assert leave(p) == 5
    assert p.memory.asked == [6, 7]


def test_tbne_empties_nodes_that_are_less_than_half_full() -> None:
    p = started(eviction.make("tbne(span=512KiB)"))  # eight chunks to a tree
    arrive(p, 0, 1, 2, 3, 4)
    assert leave(p) == 0
    assert p.memory.asked == []  # 1 of 2, 3 of 4 and 4 of 8 are half or more
    p.memory.asked.clear()
    assert leave(p) == 1
    assert p.memory.asked == [2, 3, 4]  # 3 of 8 are less


def test_tbnp_fills_nodes_that_are_more_than_half_full() -> None:
    p = started(prefetch.make("tbnp(span=512KiB)"))
    arrive(p, 0)
    assert p.memory.asked == [(0, 16)]
    p.memory.asked.clear()
    arrive(p, 2)
    assert p.memory.asked == [(32, 16)]  # 1 of 2, 2 of 4: not more than half
    p.memory.asked.clear()
    arrive(p, 1)  # 2 of 2, then 3 of 4: chunk 3 follows, and 4 of 8 are not more than half
    assert p.memory.asked == [(16, 16), (48, 16)]


def test_stop_when_full_stops_at_the_first_eviction() -> None:
    p = started(prefetch.make("stop-when-full"))
    p.on_fault(0)
    assert p.memory.asked == [(0, 16)]
    p.on_eviction(0)
    p.on_fault(1)
    assert p.memory.asked == [(0, 16), "threshold 101"]
    with pytest.raises(TidegateError, match="unknown prefetch"):
        prefetch.make("stop-when-full(of=nothing)")


def test_stop_when_full_wraps_prefetchers_joined_by_plus() -> None:
    p = prefetch.make("stop-when-full(of=fdp(every=2, enough=3)+rgp(streak=1))")
    assert p._inner.name == "fdp+rgp"
    assert (p._inner.members[0].every, p._inner.members[0].enough, p._inner.members[1].streak) == (
        2,
        3,
        1,
    )
    assert p.sees == prefetch.make("fdp").sees


def test_hpe_classifies_by_how_full_chunks_are() -> None:
    class Part(FakeMemory):
        def near(self, region: int) -> Any:
            return np.arange(16) < self.full

    for full, kind, strategy in (
        (16, "regular", "mru-c"),
        (10, "irregular#2", "lru"),
        (4, "irregular#1", "lru"),
    ):
        memory = Part()
        memory.full = full
        p = started(eviction.make("hpe(interval=4)"), memory)
        arrive(p, *range(40))
        victim = p.victim()
        assert (p.kind, p.strategy) == (kind, strategy)
        assert victim == (35 if kind == "regular" else 0)


# In the mechanism


def test_touch_bits_are_handed_over_at_eviction_and_no_earlier() -> None:
    class Curious(EvictionPolicy):
        sees = TouchBits()

        def start(self) -> None:
            self.seen: list[list[bool]] = []

        def on_fault(self, region: int) -> None:
            self.order.move_to_tail(region)
            with pytest.raises(PolicyError, match="must read the touch bits"):
                self.memory.touched(region)

        def on_eviction(self, region: int) -> None:
            self.order.remove(region)
            self.seen.append(self.memory.touched(region).tolist())

        def victim(self) -> int:
            return self.order.head

    policy = Curious()
    run_of(one_block(reads([0, 2, 8]), [16]), machine(), 1, eviction=policy, prefetch="region")
    assert policy.seen == [[True, False, True, False, False, False, False, False]]


def strided(passes: int) -> Given:
    """Even pages of 24 chunks, again and again: what NW does to its matrices."""
    return Given([Kernel([reads(range(0, 24 * 16, 2))])] * passes, [24 * 16], CHUNKS)


def test_with_patterns_a_strided_program_fits_where_it_would_thrash() -> None:
    on = machine(frame="page", batch_faults=16)
    base = run_of(strided(8), on, 12, eviction="lrm", prefetch="sequential-local")
    cppe = run_of(strided(8), on, 12, eviction="mhpe(t1=8)", prefetch="pattern")
    assert cppe.facts["policy_report"]["strategy"] == "lru"
    assert cppe.facts["policy_report"]["patterns matched"] > 0
    # half of every chunk is all that is needed: all fits
    assert cppe.counts["evictions"] < base.counts["evictions"] / 2
    assert cppe.counts["pages_unused"] < base.counts["pages_unused"]
    assert cppe.time < base.time
