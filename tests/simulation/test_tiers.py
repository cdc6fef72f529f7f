"""Three tiers: a second simulator (tiers_reference.py), closed forms, brute force, compiled
policies, and policies that misbehave.
"""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simulation import tiers_reference as plain
from tidegate import RunSpec
from tidegate.analysis import clock_misses
from tidegate.analysis.belady import belady_misses
from tidegate.errors import PolicyError, TidegateError
from tidegate.machine import load_machine
from tidegate.policies.interface.tier_policy import Spill, Tier, TierPolicy
from tidegate.policies.registries import eviction, tiering
from tidegate.policies.structures.column import Column, Marks
from tidegate.policies.structures.heap import Heap
from tidegate.policy import EvictionPolicy, Order, Samples
from tidegate.simulation.tiers.jitter import jittered_order
from tidegate.simulation.tiers.simulation import Tiered
from tidegate.simulation.tiers.transfers import Transfers, crossing
from tidegate.trace import Launch, Provenance, Trace, lay_out
from tidegate.workload import Geometry, blocks_of

pytestmark = pytest.mark.oracle

PAGE = 65536
MACHINE = load_machine("a100-pcie3-ssd")
READ, WRITE = PAGE / 3.5, PAGE / 1.7  # ns a page, of the SSD
IN, OUT = PAGE / (12.3 * 0.9), PAGE / (11.3 * 0.9)  # of the link, by zero-copy
LAUNCH, BYTE = 5000.0, 1 / 1555

Touch = tuple[int, bool, int]


class Touches(Trace):
    name, provenance = "touches", Provenance.ASSUMED

    def __init__(self, touches: list[Touch], cut: int = 0, geometry: Geometry | None = None):
        self.geometry = geometry or Geometry(PAGE, PAGE)
        self.objects = lay_out(
            {"a": PAGE * (max((t[0] for t in touches), default=0) + 1)}, self.geometry
        )
        self._segments = [self._segment(part) for part in (touches[:cut], touches[cut:])]

    @staticmethod
    def _segment(touches: list[Touch]) -> Any:
        pages, writes, sizes = (
            (list(column) for column in zip(*touches, strict=True)) if touches else ([], [], [])
        )
        kinds = np.int32, bool, np.int32
        pages, writes, sizes = (
            np.array(c, k) for c, k in zip((pages, writes, sizes), kinds, strict=True)
        )
        return blocks_of(4, pages, write=writes, bytes=sizes)

    def launches(self):  # type: ignore[no-untyped-def]
        yield Launch("launch", self._segments)

    def identity(self) -> dict[str, str]:
        return {"unrepeatable": "test"}


def reads(pages: Any) -> list[Touch]:
    return [(page, False, 0) for page in pages]


def writes(pages: Any) -> list[Touch]:
    return [(page, True, 0) for page in pages]


def run(
    touches: list[Touch],
    placement: str | TierPolicy,
    near: int,
    middle: int,
    evict: Any = None,
    **how: Any,
) -> Tiered:
    cut = how.pop("cut", 0)
    policy = tiering.make(placement) if isinstance(placement, str) else placement
    s = Tiered(
        Touches(touches, cut), how.pop("machine", MACHINE), near, middle, policy, evict, **how
    )
    s.run()
    return s


def written(s: Tiered) -> int:
    return sum(
        s.counts[c] for c in ("near_written", "middle_written", "near_flushed", "middle_flushed")
    )


# Against the second simulator

TOUCHES = st.lists(
    st.tuples(st.integers(0, 14), st.booleans(), st.sampled_from((0, 512, PAGE))), max_size=160
)


@st.composite
def loops(draw: Any) -> list[Touch]:
    """Pages that return in turn, with others in between, to learn predictions from."""
    period, length, seed = (
        draw(st.integers(1, 12)),
        draw(st.integers(0, 200)),
        draw(st.integers(0, 10**6)),
    )
    rng = np.random.default_rng(seed)
    return [
        (int(rng.integers(15)) if rng.random() < 0.2 else i % period, bool(rng.random() < 0.3), 512)
        for i in range(length)
    ]


ANY = st.one_of(TOUCHES, loops())
SLOTS = st.sampled_from((1, 2, 5, 864))


def same(s: Tiered, world: plain.World) -> None:
    c = s.counts
    assert (c["hits"], c["middle_hits"], c["far_reads"], written(s), c["stays"]) == (
        world.hits,
        world.middle_hits,
        world.reads,
        world.writes,
        world.stays,
    )
    looks = (c["middle_hits"] + c["far_reads"], c["far_reads"]) if s.middle else (0, 0)
    assert (c["lookups"], c["wasted_lookups"]) == looks
    assert [s.tier_of(p) for p in range(s.trace.pages)] == [
        world.tier(p) for p in range(s.trace.pages)
    ]
    assert s.time == pytest.approx(world.time.now, rel=1e-9)


@settings(deadline=None, max_examples=80)
@given(
    ANY,
    st.integers(1, 6),
    st.integers(0, 6),
    st.sampled_from(("bam", "tier-order", "tier-random", "hmm", "hmm(ahead=1)", "hmm(ahead=3)")),
    SLOTS,
    st.integers(0, 3),
    st.integers(0, 99),
    st.booleans(),
    st.sampled_from(("hybrid", "zero-copy")),
    st.booleans(),
)
def test_simple_placements_equal_a_plain_simulator(
    touches: list[Touch],
    near: int,
    middle: int,
    name: str,
    slots: int,
    seed: int,
    cut: int,
    flush: bool,
    transfers: str,
    spare: bool,
) -> None:
    machine = MACHINE.with_slots(slots)
    spec = f"tier-random(seed={seed}, share=0.25)" if name == "tier-random" else name
    placement = {
        "bam": plain.Bam(),
        "tier-order": plain.Order(),
        "tier-random": plain.Random(seed, 0.25),
        "hmm": plain.Hmm(),
        "hmm(ahead=1)": plain.Hmm(1),
        "hmm(ahead=3)": plain.Hmm(3),
    }[name]
    how = {"machine": machine, "flush": flush, "spare": spare}
    same(
        run(touches, spec, near, middle, cut=cut, transfers=transfers, **how),
        plain.World(touches, near, middle, placement, hybrid=transfers == "hybrid", **how),
    )


def test_an_exclusive_page_cache_is_tier_order_by_the_cpu() -> None:
    touches = writes(range(9)) + reads(range(9))
    one = run(touches, "hmm(cached=exclusive)", 2, 3)
    assert one.counts == run(touches, "tier-order", 2, 3, service="cpu").counts


READINGS = st.fixed_dictionaries(
    {
        "full": st.sampled_from(("discard", "fifo")),
        "reach": st.sampled_from(("middle", "both")),
        "unknown": st.sampled_from(("middle", "far")),
        "window": st.sampled_from((1, 3, 64)),
        "idle": st.sampled_from((0.0, 0.5, 0.8)),
        "every": st.sampled_from((1, 2)),
        "weights": st.sampled_from(("page", "shared")),
    }
)


@settings(deadline=None, max_examples=150)
@given(
    ANY,
    st.integers(1, 6),
    st.integers(1, 8),
    READINGS,
    st.integers(1, 9),
    st.integers(0, 60),
    st.integers(0, 99),
)
def test_predicted_reuse_equals_a_plain_simulator(
    touches: list[Touch],
    near: int,
    middle: int,
    reading: dict[str, Any],
    batch: int,
    samples: int,
    cut: int,
) -> None:
    scale = 262_144 / near  # batches are said for the paper's near memory
    options = ", ".join(f"{k}={v}" for k, v in reading.items())
    spec = f"tier-reuse({options}, batch={round(batch * scale)}, samples={round(samples * scale)})"
    s = run(touches, spec, near, middle, cut=cut)
    placement = plain.Reuse(near, middle, batch, samples, **reading)
    same(s, plain.World(touches, near, middle, placement, MACHINE))
    report = s.placement.report()
    assert (report["predictions"], report["right"]) == (placement.predictions, placement.hits)
    assert (report["slope"], report["offset"]) == pytest.approx((placement.slope, placement.offset))


# frames are two looks of CLOCK's, of which the second is short or whole, and part of one; in the
# second, all touches are sampled, so that marks are moved together
@pytest.mark.slow
@pytest.mark.parametrize(
    ("near", "samples"), [(100, 1_300_000), (128, 40_000_000), (13, 1_300_000)]
)
def test_predicted_reuse_on_a_long_loop_with_a_large_near_memory(near: int, samples: int) -> None:
    """Over 64 candidates, over 63 steps of the chain, 64 frames at a time, and several closings of
    the queue's gaps.
    """
    rng = np.random.default_rng(3)
    touches = [
        (int(p), bool(w), 64)
        for p, w in zip(rng.zipf(1.2, 12_000) % 400, rng.random(12_000) < 0.2, strict=True)
    ]
    spec = f"tier-reuse(batch=130000, samples={samples})"
    s = run(touches, spec, near, 150)
    batch, wanted, _ = tiering.make(spec).sampling(near)
    world = plain.World(touches, near, 150, plain.Reuse(near, 150, batch, wanted), MACHINE)
    same(s, world)
    assert near < 64 or world.stays > 10_000


@settings(deadline=None, max_examples=60)
@given(ANY, st.integers(1, 6), st.integers(1, 6), st.sampled_from(tiering.names()))
def test_compiled_policies_decide_as_in_python(
    touches: list[Touch], near: int, middle: int, name: str
) -> None:
    one, other = (run(touches, name, near, middle, compiled=compiled) for compiled in (True, False))
    assert (one.counts, one.time, one.placement.report()) == (
        other.counts,
        other.time,
        other.placement.report(),
    )
    assert (one.memory.where == other.memory.where).all()


@pytest.mark.parametrize("name", tiering.names())
def test_every_tiering_policy_is_compiled(name: str) -> None:
    assert Tiered(Touches(reads([0])), MACHINE, 1, 1, tiering.make(name)).reasons() == [""]


class Returning(TierPolicy):
    """A user's class, with all structures, that sends pages that come back often to the middle."""

    def start(self) -> None:
        self.returns, self.share = Column(0), Column(0.5)
        self.seen, self.recent, self.queue = Marks(), Order(), Heap()
        self.places = [0, 0, 0]

    def place(self, page: int) -> int:
        self.seen.add(page)
        to = Tier.STAY if page == self.recent_page() else Tier.FAR
        if self.returns[page] > 1 and self.share[page] > 0.2:
            to = Tier.MIDDLE
        self.places[to] += 1
        return to

    def recent_page(self) -> int:
        return self.recent.tail if self.recent else -1

    def on_return(self, page: int) -> int | None:
        self.returns[page] += 1
        self.share[page] *= 0.9
        self.recent.move_to_tail(page)
        self.queue[page] = self.memory.now - self.memory.left(page)
        return Tier.STAY if self.returns[page] == 3 else None

    def spill(self) -> int:
        return self.queue.lowest

    def report(self) -> dict[str, Any]:
        counted = sorted(self.returns.items()), sorted(self.share.items()), sorted(self.seen)
        return {"kept": (counted, list(self.recent), sorted(self.queue.items()), self.places)}


def test_a_users_class_is_compiled_when_a_run_is_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is compiled after the first segment, with the state that it has then."""
    rng = np.random.default_rng(5)
    touches = reads((rng.zipf(1.3, 2000) % 60).tolist())
    python = run(touches, Returning(), 6, 9, compiled=False)
    assert python.counts["to_middle"] > 20 < python.counts["stays"]
    monkeypatch.setattr("tidegate.simulation.calling.LONG_RUN", 10)
    monkeypatch.setattr("tidegate.policy_compiler.cache._known", {})
    monkeypatch.setattr("tidegate.policy_compiler.cache._load", lambda file: None)
    one = run(touches, Returning(), 6, 9, cut=900)
    assert one.memory.history.shape[1] > 1, "it was compiled"
    assert (one.counts, one.time, one.placement.report()) == (
        python.counts,
        python.time,
        python.placement.report(),
    )


class Failing(TierPolicy):
    """Fails at page 8."""

    def start(self) -> None:
        self.placed = [0] * 8

    def place(self, page: int) -> int:
        self.placed[page] += 1
        return Tier.MIDDLE


def test_a_compiled_policy_that_fails_gives_the_error_of_python() -> None:
    tiered = Tiered(Touches(LONG), MACHINE, 4, 4, Failing())
    assert tiered.reasons() == [""]  # from now on it is known, and used in short runs
    with pytest.raises(PolicyError, match=r"'Failing' raised in place\(8\): IndexError: list"):
        run(LONG, Failing(), 4, 4)


# The bound


@settings(deadline=None, max_examples=60)
@given(st.lists(st.integers(0, 4), max_size=9), st.integers(1, 2), st.integers(0, 2))
def test_nobody_could_read_less_than_the_bound(pages: list[int], near: int, middle: int) -> None:
    """Every victim, every place and every spilled page, tried one by one."""
    assert run(reads(pages), "tier-belady", near, middle).counts["far_reads"] == plain.fewest_reads(
        pages, near, middle
    )


@settings(deadline=None, max_examples=60)
@given(TOUCHES, st.integers(1, 5), st.integers(1, 5))
def test_the_bound_is_beladys(touches: list[Touch], near: int, middle: int) -> None:
    pages = [p for p, _, _ in touches]
    c = run(touches, "tier-belady", near, middle).counts
    assert c["far_reads"] == belady_misses(pages, near + middle)
    assert c["far_reads"] + c["middle_hits"] == belady_misses(pages, near)
    least = c["far_reads"] + plain.distinct_written(touches)
    for name in tiering.names():
        other = run(touches, name, near, middle)
        fetched = other.counts["far_reads"] + other.counts["read_ahead"]
        assert c["far_reads"] <= fetched
        # a dirty page is written at least once
        assert least <= fetched + written(other)


# Closed forms


def test_near_misses_are_clocks() -> None:
    pages = np.random.default_rng(1).zipf(1.3, 3000).clip(max=200).tolist()
    c = run(reads(pages), "bam", 20, 0).counts
    assert c["far_reads"] == clock_misses(pages, 20)
    assert (
        run(reads(pages), "bam", 20, 0, eviction.make("clock")).counts["far_reads"]
        == c["far_reads"]
    )


def test_a_stream_takes_the_ssds_time() -> None:
    """Many misses at once: bandwidth, and one latency at the end that bandwidth does not hide."""
    assert run(reads(range(1000)), "bam", 10, 0).time == pytest.approx(
        LAUNCH + 1000 * READ, rel=1e-9
    )


def test_a_lone_miss_takes_its_latency() -> None:
    assert run(reads([0]), "bam", 1, 0).time == pytest.approx(LAUNCH + 130_000)
    assert run(reads([0]), "tier-order", 1, 1).time == pytest.approx(LAUNCH + 130_050)


@pytest.mark.parametrize("name", ["bam", "tier-order", "tier-random", "tier-reuse", "tier-belady"])
def test_what_fits_is_read_once(name: str) -> None:
    """8 pages in 8 frames, 5 rounds: 8 reads in a queue, while the first page is computed on."""
    s = run([(p, False, PAGE) for _ in range(5) for p in range(8)], name, 8, 8)
    assert (s.counts["far_reads"], s.counts["hits"]) == (8, 32)
    lookup = 0 if name == "bam" else 50
    assert 40 * PAGE * BYTE < 8 * READ  # computing goes on meanwhile
    assert s.time == pytest.approx(LAUNCH + PAGE * BYTE + lookup + 8 * READ)


def test_dirty_pages_are_written_and_clean_ones_dropped() -> None:
    dirty, clean = (run(make(range(100)), "bam", 10, 0) for make in (writes, reads))
    assert (
        dirty.counts["near_written"],
        dirty.counts["dropped"],
        dirty.counts["near_flushed"],
    ) == (90, 0, 10)
    assert (
        clean.counts["near_written"],
        clean.counts["dropped"],
        clean.counts["near_flushed"],
    ) == (0, 90, 0)
    # the last page is requested when its victim is written
    last = 130_000 - READ
    assert dirty.time == pytest.approx(LAUNCH + 100 * READ + 100 * WRITE + last)


def test_a_middle_that_is_never_hit_gains_nothing_by_keeping_dirty_pages() -> None:
    """Without the flush at the end three tiers would seem to save writes (LavaMD)."""
    two, three = (run(writes(range(100)), name, 10, 50) for name in ("bam", "tier-order"))
    assert written(two) == written(three) == 100
    assert three.time == pytest.approx(two.time, rel=0.02)
    put_off = run(writes(range(100)), "tier-order", 10, 50, flush=False)
    assert (written(put_off), put_off.time < 0.8 * three.time) == (40, True)


LOOP, ROUNDS = 24, 6


@pytest.mark.parametrize(
    ("name", "near", "middle", "middle_hits", "far_reads"),
    [
        ("bam", 8, 8, 0, LOOP * ROUNDS),
        # the oldest in the middle is always the next to be used
        ("tier-order", 8, 8, 0, LOOP * ROUNDS),
        ("tier-order", 8, 16, LOOP * (ROUNDS - 1), LOOP),  # both hold the loop
        ("tier-random(share=1)", 8, 16, LOOP * (ROUNDS - 1), LOOP),
        ("tier-random(share=0)", 8, 16, 0, LOOP * ROUNDS),
    ],
)
def test_a_loop(name: str, near: int, middle: int, middle_hits: int, far_reads: int) -> None:
    c = run(reads([p for _ in range(ROUNDS) for p in range(LOOP)]), name, near, middle).counts
    assert (c["middle_hits"], c["far_reads"]) == (middle_hits, far_reads)


def test_a_loop_through_a_middle_that_nobody_leaves() -> None:
    """Discarding when full keeps the pages that came first: 8 of the 24 are found in the middle in
    every round but the first, and the pages that leave near memory then take their room."""
    pages = [p for _ in range(ROUNDS) for p in range(LOOP)]
    c = run(reads(pages), "tier-reuse(samples=0)", 8, 8).counts
    assert c["middle_hits"] + c["far_reads"] == LOOP * ROUNDS
    assert c["middle_hits"] == 8 * (ROUNDS - 1)


def test_a_loop_in_two_tiers_takes_the_links_time() -> None:
    """Everything but the first 8 misses sends a page out, which is the slower way, 8 by DMA; the
    last page comes when its victim is gone.
    """
    rounds = 200
    s = run(reads([p for _ in range(rounds) for p in range(LOOP)]), "tier-order", 8, 16)
    out = 8 * (1500 + PAGE / 11.3) + (rounds * LOOP - 16) * OUT
    assert s.time == pytest.approx(LAUNCH + out + 50_000)


def test_the_cpu_serves_one_after_another() -> None:
    """The first fault is a batch, and those that wait meanwhile another; pages 0 to 31 are one 2 MB
    block. Every other page was read ahead.
    """
    batches, pages = 2 * 20_000 + 3 * 10_000, 50 * (1500 + PAGE / 12.3)
    s = run(reads(range(50)), "hmm", 100, 10)
    assert s.time == pytest.approx(LAUNCH + batches + pages + 25 * (130_000 + READ))
    assert (s.counts["far_reads"], s.counts["read_ahead"], s.counts["middle_hits"]) == (25, 25, 25)
    plain = run(reads(range(50)), "hmm(ahead=1)", 100, 10)
    assert plain.time == pytest.approx(LAUNCH + batches + pages + 50 * 130_000)
    ahead = run(reads(range(50)), "hmm", 100, 10, read_ahead=True)
    assert ahead.time == pytest.approx(LAUNCH + batches + pages + 50 * READ)


def test_a_page_cache_keeps_copies() -> None:
    """0 is still in the page cache when it comes back: nothing was sent there."""
    s = run(reads([0, 1, 2, 0]), "hmm", 2, 10)
    faults = 2 * 20_000 + 2 * 10_000 + 4 * (1500 + PAGE / 12.3)
    assert s.time == pytest.approx(LAUNCH + faults + 2 * 130_000 + READ)
    assert (s.counts["recalled"], s.counts["to_middle"]) == (2, 0)
    # pages in near memory take room in the cache, so a loop that both could hold is read anew
    loop = reads(list(range(12)) * 4)
    both, cache = run(loop, "tier-order", 4, 8).counts, run(loop, "hmm(ahead=1)", 4, 8).counts
    assert (both["far_reads"], cache["far_reads"]) == (12, 48)


def test_a_page_waits_for_its_victim_unless_frames_are_spare() -> None:
    """One miss at a time: a dirty victim is written first, or while the page is read."""
    one, machine = writes(range(3)), MACHINE.with_slots(1)
    first = run(one, "bam", 1, 0, machine=machine, flush=False)
    assert first.time == pytest.approx(LAUNCH + 3 * 130_000 + 2 * WRITE)
    spare = run(one, "bam", 2, 0, machine=machine, flush=False, spare=True, shared=False)
    assert spare.near == 1
    assert spare.time == pytest.approx(LAUNCH + 3 * 130_000)


def test_few_pages_go_by_dma_and_many_by_zero_copy() -> None:
    """Eight at a time find fewer than eight under way; with more, the ninth waits 50 µs."""
    loop = reads(list(range(24)) * 2)
    few, many = (run(loop, "tier-order", 12, 12, machine=MACHINE.with_slots(n)) for n in (1, 864))
    dma_out, dma_in = 1500 + PAGE / 11.3, 1500 + PAGE / 12.3
    moved = 36 * dma_out + 24 * dma_in  # 12 pages find room
    lookups = 36 * 50 - 36 * 50 + 12 * 50  # hidden by the victim's way, where there is one
    assert few.time == pytest.approx(LAUNCH + 24 * 130_000 + moved + lookups)
    assert many.busy["link_out"] == pytest.approx(8 * dma_out + 28 * OUT)


def test_jitter_moves_touches_by_less_than_its_reach() -> None:
    order = jittered_order(10_000, 16, np.random.default_rng(1))
    assert sorted(order) == list(range(10_000))
    moved = np.abs(order - np.arange(10_000))
    assert 8 < moved.max() < 16
    touches = reads(np.random.default_rng(2).integers(0, 99, 5000))
    plain, one, two = (run(touches, "tier-order", 8, 8, jitter=j) for j in (0, 8, 8))
    assert one.counts == two.counts != plain.counts
    assert one.counts["touches"] == 5000


def test_reads_and_writes_share_the_ssd_or_do_not() -> None:
    touches = writes(range(400))
    one, two = (run(touches, "bam", 10, 0, shared=shared).time for shared in (True, False))
    assert one == pytest.approx(LAUNCH + 400 * (READ + WRITE) + 130_000 - READ)
    assert two == pytest.approx(LAUNCH + 400 * WRITE, rel=0.03)


def test_a_trace_of_larger_regions_moves_by_page() -> None:
    s = Tiered(
        Touches(reads(range(64)), geometry=Geometry(PAGE, 32 * PAGE)),
        MACHINE,
        4,
        4,
        tiering.make("tier-order"),
    )
    s.run()
    assert s.counts["far_reads"] == 64


# Any eviction policy in place of CLOCK


@settings(deadline=None, max_examples=40)
@given(
    TOUCHES,
    st.integers(1, 6),
    st.integers(0, 6),
    st.sampled_from(("tier-order", "tier-reuse", "tier-random")),
)
@pytest.mark.parametrize("name", [name for name in eviction.names() if name != "tbne"])
def test_any_eviction_policy(
    name: str, touches: list[Touch], near: int, middle: int, placement: str
) -> None:
    """The books balance, and the policy's own check at the end holds."""
    pages = [p for p, _, _ in touches]
    s = run(touches, placement, near, middle, eviction.make(name))
    assert s.counts["far_reads"] + s.counts["middle_hits"] >= belady_misses(pages, near)


def test_an_eviction_policy_that_wants_more_than_there_is() -> None:
    with pytest.raises(
        PolicyError, match="tbne must not prefetch, evict or advise by itself on three tiers"
    ):
        run(LONG, "tier-order", 4, 4, eviction.make("tbne"))


@settings(deadline=None, max_examples=40)
@given(TOUCHES, st.integers(1, 6))
def test_belady_in_the_near_tier_misses_least(touches: list[Touch], near: int) -> None:
    pages = [p for p, _, _ in touches]
    c = run(touches, "tier-order", near, 4, eviction.make("belady")).counts
    assert c["far_reads"] + c["middle_hits"] == belady_misses(pages, near)


# Policies that misbehave


def placing(**methods: Any) -> TierPolicy:
    return type("Mine", (TierPolicy,), {"place": lambda self, page: Tier.MIDDLE, **methods})()  # type: ignore[no-any-return]


LONG = reads(list(range(20)) * 2)


@pytest.mark.parametrize(
    ("policy", "told"),
    [
        (
            placing(place=lambda self, page: 7),
            "'Mine' answered place() with something else than Tier.STAY, MIDDLE or FAR",
        ),
        (placing(place=lambda self, page: None), "'Mine' answered place() with something else"),
        (placing(place=lambda self, page: -1), "'Mine' answered place() with something else"),
        (
            placing(place=lambda self, page: "far"),
            "answered place(0) with 'far'; expected Tier.STAY, MIDDLE or FAR",
        ),
        (
            placing(place=lambda self, page: 1.0),
            "answered place(0) with 1.0; expected Tier.STAY, MIDDLE or FAR",
        ),
        (
            placing(victim=lambda self: "x"),
            "'Mine' answered victim() with 'x'; expected the number of a page",
        ),
        (
            placing(place=lambda self, page: 1 / 0),
            "'Mine' raised in place(0): ZeroDivisionError: division by zero",
        ),
        (placing(on_return=lambda self, page: {}[page]), "'Mine' raised in on_return(0)"),
        (placing(on_touch=lambda self, page: 1 / 0), "'Mine' raised in on_touch(0)"),
        (placing(victim=lambda self: 999), "'Mine' named a page in victim() that is not near"),
        (placing(victim=lambda self: None), "'Mine' named a page in victim() that is not near"),
        (placing(victim=lambda self: 1 / 0), "'Mine' raised in victim()"),
        (
            placing(makes_room=Spill.ASKED, spill=lambda self: 19),
            "'Mine' named a page in spill() that is not in the middle",
        ),
        (placing(makes_room=Spill.ASKED), "Mine has no method spill(); makes_room = Spill.ASKED"),
        (
            placing(start=lambda self: 1 / 0),
            "'Mine' raised in start(): ZeroDivisionError: division by zero",
        ),
        (
            placing(finished=lambda self: 1 / 0),
            "'Mine' raised in finished(): ZeroDivisionError: division by zero",
        ),
        (
            placing(place=lambda self, page: self.memory.next_use(page)),
            "must declare sees = Everything(future=True) to use memory.next_use",
        ),
    ],
)
def test_a_bad_placement_ends_the_run_with_one_line(policy: TierPolicy, told: str) -> None:
    with pytest.raises(TidegateError) as error:
        run(LONG, policy, 4, 4)
    assert told in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("methods", "told"),
    [
        ({"victim": lambda self: 99}, "'Bad' named a page in victim() that is not near"),
        ({"victim": lambda self: 1 / 0}, "'Bad' raised in victim()"),
        ({"on_fault": lambda self, region: 1 / 0}, "'Bad' raised in on_fault(0)"),
        ({"observe": lambda self: 1 / 0, "sees": Samples()}, "'Bad' raised in observe()"),
        (
            {"on_eviction": lambda self, region: self.memory.prefetch(1)},
            "must not prefetch, evict or advise by itself on three tiers",
        ),
    ],
)
def test_a_bad_eviction_policy_ends_the_run_with_one_line(
    methods: dict[str, Any], told: str
) -> None:
    good = {"victim": lambda self: min(self.resident)}
    with pytest.raises(PolicyError) as error:
        run(LONG, "tier-order", 4, 4, type("Bad", (EvictionPolicy,), good | methods)())
    assert told in str(error.value)


def test_a_placement_that_never_lets_go_is_made_to() -> None:
    """All candidates stay: after 64, or all of them, one goes to the middle."""
    s = run(reads(range(300)), placing(place=lambda self, page: Tier.STAY), 100, 20)
    assert (s.counts["evictions"], s.counts["stays"], s.counts["to_middle"]) == (200, 200 * 64, 200)
    s = run(reads(range(20)), placing(place=lambda self, page: Tier.STAY), 4, 4)
    assert (s.counts["evictions"], s.counts["stays"]) == (16, 16 * 3)
    own = type(
        "Own",
        (TierPolicy,),
        {"place": lambda self, page: Tier.STAY, "victim": lambda self: self.memory.now - 5},
    )()
    assert run(reads(range(20)), own, 4, 4).counts["to_middle"] == 16


def test_what_is_known_in_advance_is_not_asked() -> None:
    asked: list[int] = []
    policy = placing(
        on_return=lambda self, page: Tier.STAY,
        place=lambda self, page: asked.append(page) or Tier.FAR,
    )
    c = run(reads([0, 1, 2, 0, 1, 2, 3, 4, 5]), policy, 3, 3).counts
    assert c["stays"] == 0  # nothing ever came back: three frames for three pages, then new ones
    asked.clear()
    c = run(reads([0, 1, 2, 3, 0, 4, 5, 6, 7]), policy, 3, 0).counts
    assert 0 not in asked[1:], "0 came back, and is known to stay"
    assert c["stays"] > 0


def test_nobody_makes_room() -> None:
    s = run(reads(range(20)), placing(makes_room=Spill.NOBODY), 4, 4)
    assert (s.counts["to_middle"], s.counts["to_far"], s.counts["middle_spilled"]) == (4, 12, 0)
    assert [s.tier_of(p) for p in (0, 3, 4, 15, 16)] == ["middle", "middle", "far", "far", "near"]


def test_bad_input() -> None:
    trace = Touches(reads([0]))
    for how, told in (
        ({"machine": load_machine("rtx3090-pcie4")}, r"must have \[storage\]"),
        ({"near": 0}, "must have at least 1 page, got 0"),
        ({"middle": -1}, "must have at least 0 pages, got -1"),
        ({"service": "dma"}, "service must be one of gpu, cpu, got 'dma'"),
        ({"most_stays": -1}, "most_stays must be at least 0, got -1"),
    ):
        given = {
            "machine": MACHINE,
            "near": 1,
            "middle": 1,
            "placement": tiering.make("tier-order"),
        } | how
        with pytest.raises(TidegateError, match=told):
            Tiered(trace, **given)  # type: ignore[arg-type]
    with pytest.raises(TidegateError, match="chooses victims itself"):
        Tiered(trace, MACHINE, 1, 1, tiering.make("tier-belady"), eviction.make("lru-ideal"))


# Transfers


def test_zero_copy_overtakes_dma_at_8_pages() -> None:
    assert crossing(Transfers.of(MACHINE)) == 8


@pytest.mark.slow
def test_a_stored_placement_may_be_the_first_code_that_a_process_loads():
    made = 'RunSpec("cyclic(bytes=4MiB)", tiering="tier-reuse", near="1MiB").run_watched()'
    here = eval(made, {"RunSpec": RunSpec})  # now its code is stored
    program = f"from tidegate import RunSpec; print({made}.time)"
    there = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (there.stdout.strip(), there.stderr) == (str(here.time), "")
