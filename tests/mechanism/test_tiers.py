"""Three tiers: closed forms, twins against their Python classes, and a plain simulator written apart from the engine."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate import Geometry, blocks_of
from tidegate.analysis import clock_misses
from tidegate.analysis.belady import belady_misses
from tidegate.errors import TidegateError
from tidegate.machine import load_machine
from tidegate.mechanism.tiers.simulation import Tiered
from tidegate.mechanism.tiers.transfers import Transfers, crossing
from tidegate.policies.registries import eviction, tiering
from tidegate.trace import Launch, Provenance, Trace, lay_out

PAGE = 65536
MACHINE = load_machine("a100-pcie3-ssd")
READ, WRITE = PAGE / 3.5, PAGE / 1.7  # ns a page


class Touches(Trace):
    name, provenance = "touches", Provenance.ASSUMED

    def __init__(self, pages: list[int], writes: list[bool] | None = None):
        self.geometry = Geometry(PAGE, PAGE)
        self.objects = lay_out({"a": PAGE * (max(pages, default=0) + 1)}, self.geometry)
        self._segment = blocks_of(4, np.array(pages, np.int32), write=np.array(writes or [False] * len(pages)), bytes=0)

    def launches(self):  # type: ignore[no-untyped-def]
        yield Launch("launch", [self._segment])

    def identity(self) -> dict[str, str]:
        return {"unrepeatable": "test"}


def run(trace: Trace, placement: str, near: int, middle: int, **how: object) -> Tiered:
    s = Tiered(trace, MACHINE, near, middle, tiering.make(placement), **how)  # type: ignore[arg-type]
    s.run()
    return s


def plain(pages: list[int], writes: list[bool], near: int, middle: int, spills: bool, to_middle: bool) -> tuple[int, ...]:
    """CLOCK over lists, a list for the middle: hits, hits in the middle, SSD reads, SSD writes."""
    frames: list[int] = []
    used: set[int] = set()
    dirty: set[int] = set()
    fifo: list[int] = []
    hand = hits = middle_hits = reads = written = 0
    for page, write in zip(pages, writes, strict=True):
        if page in frames:
            hits += 1
            used.add(page)
        else:
            if page in fifo:
                fifo.remove(page)
                middle_hits += 1
            else:
                reads += 1
            if len(frames) < near:
                frames.append(page)
            else:
                while frames[hand] in used:
                    used.remove(frames[hand])
                    hand = (hand + 1) % near
                victim, frames[hand] = frames[hand], page
                hand = (hand + 1) % near
                leaving = [] if to_middle else [victim]
                if to_middle:
                    if len(fifo) == middle:
                        leaving = [fifo.pop(0)] if spills else [victim]
                    if victim not in leaving:
                        fifo.append(victim)
                for gone in leaving:
                    written += gone in dirty
                    dirty.discard(gone)
        if write:
            dirty.add(page)
    return hits, middle_hits, reads, written


TOUCHES = st.lists(st.tuples(st.integers(0, 14), st.booleans()), max_size=150)


@settings(deadline=None, max_examples=60)
@given(TOUCHES, st.integers(1, 6), st.integers(1, 6))
def test_equals_a_plain_simulator(touches: list[tuple[int, bool]], near: int, middle: int) -> None:
    pages, writes = [p for p, _ in touches], [w for _, w in touches]
    for name, to_middle in (("bam", False), ("tier-order", True)):
        c = run(Touches(pages, writes), name, near, middle).counts
        found = c["hits"], c["middle_hits"], c["far_reads"], c["near_written"] + c["middle_written"]
        assert found == plain(pages, writes, near, middle, True, to_middle)


@settings(deadline=None, max_examples=40)
@given(TOUCHES, st.integers(1, 6), st.integers(1, 6), st.sampled_from(tiering.names()))
def test_twins_decide_as_their_classes(touches: list[tuple[int, bool]], near: int, middle: int, name: str) -> None:
    trace = Touches([p for p, _ in touches], [w for _, w in touches])
    one, other = (run(trace, name, near, middle, compiled=compiled) for compiled in (True, False))
    assert (one.counts, one.time, one.placement.report()) == (other.counts, other.time, other.placement.report())


@settings(deadline=None, max_examples=40)
@given(TOUCHES, st.integers(1, 5), st.integers(1, 5))
def test_the_bound_is_beladys(touches: list[tuple[int, bool]], near: int, middle: int) -> None:
    pages = [p for p, _ in touches]
    c = run(Touches(pages), "tier-belady", near, middle).counts
    assert c["far_reads"] == belady_misses(pages, near + middle)
    assert c["far_reads"] + c["middle_hits"] == belady_misses(pages, near)
    for name in ("bam", "tier-order", "tier-random", "tier-reuse"):
        assert c["far_reads"] <= run(Touches(pages), name, near, middle).counts["far_reads"]


def test_near_misses_are_clocks() -> None:
    pages = np.random.default_rng(1).zipf(1.3, 3000).clip(max=200).tolist()
    c = run(Touches(pages), "bam", 20, 0).counts
    assert c["far_reads"] == clock_misses(pages, 20)
    s = Tiered(Touches(pages), MACHINE, 20, 0, tiering.make("bam"), eviction.make("clock"))
    s.run()
    assert s.counts["far_reads"] == c["far_reads"]


def test_a_stream_takes_the_ssds_time() -> None:
    """Many misses at once: bandwidth, and one latency at the end that bandwidth does not hide."""
    s = run(Touches(list(range(1000))), "bam", 10, 0)
    assert s.time == pytest.approx(5000 + 1000 * READ, rel=1e-9)


def test_a_lone_miss_takes_its_latency() -> None:
    assert run(Touches([0]), "bam", 1, 0).time == pytest.approx(5000 + 130_000)
    assert run(Touches([0]), "tier-order", 1, 1).time == pytest.approx(5000 + 130_050)


def test_dirty_pages_are_written_and_clean_ones_dropped() -> None:
    written, dropped = (run(Touches(list(range(100)), [w] * 100), "bam", 10, 0) for w in (True, False))
    assert (written.counts["near_written"], written.counts["dropped"], written.counts["near_flushed"]) == (90, 0, 10)
    assert (dropped.counts["near_written"], dropped.counts["dropped"]) == (0, 90)
    assert written.time == pytest.approx(5000 + 100 * READ + 100 * WRITE)


def test_the_cpu_serves_one_after_another() -> None:
    s = run(Touches(list(range(50))), "hmm", 100, 10)
    assert s.time == pytest.approx(5000 + 50 * (31_500 + 130_000 + PAGE / 12.3))


def test_zero_copy_overtakes_dma_at_8_pages() -> None:
    assert crossing(Transfers.of(MACHINE)) == 8


def test_bad_input() -> None:
    with pytest.raises(TidegateError, match=r"no \[storage\]"):
        Tiered(Touches([0]), load_machine("rtx3090-pcie4"), 1, 1, tiering.make("bam"))
    with pytest.raises(TidegateError, match="at least one page"):
        Tiered(Touches([0]), MACHINE, 0, 1, tiering.make("bam"))
