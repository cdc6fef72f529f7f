"""The live engine without memory decides what the simulated driver decides."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from live.sequences import GEOMETRY, Seen, live_policies, sequences, simulate
from tidegate.errors import TidegateError
from tidegate.live.pager import regions
from tidegate.live.pager.engine import Engine
from tidegate.live.pager.no_mover import NoMover
from tidegate.live.pager.regions import bits, runs
from tidegate.policies.interface.visibility import Samples, TouchBits
from tidegate.policies.prefetch.together import make_prefetch
from tidegate.policies.registries import eviction, placement, prefetch
from tidegate.trace.geometry import Geometry
from tidegate.trace.trace import Object, lay_out

pytestmark = [pytest.mark.live, pytest.mark.oracle]

OBJECTS = [100, 60, 37]  # pages; the last regions of two of them are not full
FRAMES = 14


class Nowhere:
    """A mover without memory. The test sets ``used``, the touched pages."""

    observe_ns = 0

    def __init__(self) -> None:
        self.used: dict[int, int] = {}
        self.victims: list[int] = []

    def load(self, region: int, pages: int, touched: int, unmapped: int = 0) -> None:
        self.used[region] = self.used.get(region, 0) & ~pages | touched

    def evict(self, region: int, pages: int | None = None) -> None:
        if pages is None:
            self.victims.append(region)
        self.used.pop(region, None)

    def sample(self, region: int, pages: int) -> None: ...
    def drop(self, region: int) -> None: ...
    def pin(self, region: int, pages: int) -> None: ...

    def restore(self, region: int, pages: int) -> None:
        self.used[region] = self.used.get(region, 0) | pages

    def touched(self, region: int) -> int:
        return self.used.get(region, 0)


def walk(
    sequence: list[int],
    *,
    eviction_spec: str,
    prefetch_spec: str = "none",
    observed: int | None = None,
    mover: Any = None,
    frames: int = FRAMES,
    observe_share: float = 1.0,
) -> Seen:
    mover = mover or Nowhere()
    policies = eviction.make(eviction_spec), make_prefetch(prefetch_spec), placement.make("um")
    engine = Engine(GEOMETRY, frames, policies, mover, observed, observe_share=observe_share)
    engine.set_objects(
        lay_out({str(i): n * GEOMETRY.page for i, n in enumerate(OBJECTS)}, GEOMETRY)
    )
    victims = mover.victims
    engine.start()
    noticed = -1
    for page in sequence:
        if noticed >= 0:
            engine.serve([], [noticed])
        drain(engine)
        number, bit = page // engine.ppr, 1 << page % engine.ppr
        region = engine.region[number]
        # a touch over the link: the driver is notified afterwards
        noticed = page if region.sampled & bit else -1
        if noticed < 0 and not region.resident & bit:
            assert not engine.serve([page])
            mover.used[number] |= bit  # a prefetch may send it away at once
            drain(engine)
            continue
        mover.used[number] = mover.used.get(number, 0) | bit
    engine.finished()
    assert engine.used == len([r for r in engine.region.values() if r.has_frame]) <= frames
    c = engine.count
    return Seen(c["faults"], c["evictions"], c["notifications"], c["pages_in"], victims)


def drain(engine: Engine) -> None:
    while engine.queue:
        engine.prefetch_turn()


def pages_of(name: str, length: int = 3000) -> list[int]:
    """Return a sequence of pages that belong to objects."""
    layout = lay_out({str(i): n * GEOMETRY.page for i, n in enumerate(OBJECTS)}, GEOMETRY)
    real = [o.first_page + i for o in layout for i in range(o.pages)]
    return [real[i] for i in sequences(len(real), length)[name]]


def or_slow(values: list[str], fast: set[str]) -> list[Any]:
    """Return parameters of a test; those that are not fast are left to `make rest`."""
    return [v if v in fast else pytest.param(v, marks=pytest.mark.slow) for v in values]


PREFETCHES = ["none", "tree", "region", "fdp+rgp", "tbnp", "pattern", "stream"]


@pytest.mark.parametrize("name", or_slow(["cyclic", "uniform", "hot"], {"hot"}))
@pytest.mark.parametrize("prefetch_spec", or_slow(PREFETCHES, {"none", "tree", "stream"}))
@pytest.mark.parametrize("policy", live_policies())
def test_it_decides_as_the_simulated_driver_does(
    policy: str, prefetch_spec: str, name: str
) -> None:
    if isinstance(eviction.find(policy).sees, Samples) and prefetch_spec == "pattern":
        pytest.skip("samples and touch bits: no hardware has both")
    if policy == "mhpe" and prefetch_spec == "fdp+rgp":
        pytest.skip("touch bits and samples: no hardware has both")
    sequence = pages_of(name)
    options = {"eviction_spec": policy, "prefetch_spec": prefetch_spec}
    assert walk(sequence, **options) == simulate(sequence, OBJECTS, FRAMES, **options)


@pytest.mark.slow
@pytest.mark.parametrize("prefetch_spec", prefetch.names())
@pytest.mark.parametrize("policy", ["lrm", "tournament"])
def test_every_prefetch_policy_is_carried_out_as_simulated(policy: str, prefetch_spec: str) -> None:
    if policy == "tournament" and isinstance(prefetch.find(prefetch_spec).sees, TouchBits):
        pytest.skip("samples and touch bits: no hardware has both")
    sequence = [page for name in ("hot", "cyclic", "uniform") for page in pages_of(name, 1000)]
    options = {"eviction_spec": policy, "prefetch_spec": prefetch_spec}
    assert walk(sequence, **options) == simulate(sequence, OBJECTS, FRAMES, **options)


@pytest.mark.parametrize("observed", [1, 3, 14])
@pytest.mark.parametrize("policy", ["lru", "lfu", "cp", "tournament(patience=5)"])
def test_it_observes_the_given_number_of_regions(policy: str, observed: int) -> None:
    sequence = pages_of("hot", 6000)
    options = {"eviction_spec": policy, "observed": observed}
    live = walk(sequence, **options)
    assert live == simulate(sequence, OBJECTS, FRAMES, **options)
    assert live.notifications > 0 or observed == 1


@pytest.mark.parametrize("policy", ["lru", "tournament"])
def test_nothing_is_observed_while_everything_fits(policy: str) -> None:
    all_of_them = sum(-(-pages // GEOMETRY.pages_per_region) for pages in OBJECTS)
    sequence = pages_of("uniform")
    assert walk(sequence, eviction_spec=policy, frames=all_of_them).notifications == 0
    assert walk(sequence, eviction_spec=policy, frames=all_of_them - 1).notifications > 0


@pytest.mark.parametrize("share", [0.0, 0.03, 0.3])
def test_observation_takes_its_share_of_time_and_no_more(
    share: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A touch takes 1 ms, and restoring a page another one."""
    clock = 0.0

    class Slow(Nowhere):
        def restore(self, region: int, pages: int) -> None:
            nonlocal clock
            super().restore(region, pages)
            self.observe_ns += 1_000_000
            clock += 1e-3

    def now() -> float:
        nonlocal clock
        clock += 1e-3
        return clock

    monkeypatch.setattr(regions, "monotonic", now)
    mover = Slow()
    seen = walk(pages_of("hot", 20_000), eviction_spec="lru", mover=mover, observe_share=share)
    each = 1e-3 + regions.NOTIFICATION_STALL
    slack = regions.BURST + FRAMES * each  # regions that are observed when it is used up
    assert seen.notifications * each <= share * clock + slack
    assert seen.notifications * each >= 0.5 * min(share * clock, 1.0)


@pytest.mark.parametrize("policy", ["belady", "lru-ideal", "clock"])
def test_what_needs_every_touch_is_refused(policy: str) -> None:
    with pytest.raises(TidegateError, match="sees every touch"):
        walk([0], eviction_spec=policy)


def test_bits_and_runs() -> None:
    assert list(bits(0)) == list(runs(0)) == []
    assert list(bits(1 << 40 | 1)) == [0, 40]
    assert list(runs(0b1011_0111)) == [(0, 3), (4, 2), (7, 1)]
    assert list(runs((1 << 32) - 1)) == [(0, 32)]


def test_regions_that_are_needed_at_a_time_do_not_evict_each_other() -> None:
    """Rows of a table of eight columns under ``cp``, with four unprotected regions."""
    columns, pages, uses = 8, 32, 50
    geometry = Geometry(4096, 4096)
    policies = eviction.make("cp(start_share=0)"), make_prefetch("none"), placement.make("um")
    engine = Engine(geometry, 64, policies, NoMover(), observed=0)
    engine.set_objects((Object("table", columns * pages * 4096, 0, columns * pages),))
    engine.start()
    for row in range(pages * uses):
        for column in range(columns):
            page = column * pages + row // uses
            if not engine.region[page].resident:
                engine.serve([page])
    assert engine.count["faults"] < 4 * columns * pages  # of 12,800 uses


def test_a_pager_imports_no_compiler_and_no_tables() -> None:
    """They would take a second of every arena's start, and half of its memory."""
    code = """
import sys
import tidegate.live.pager.supervisor
from tidegate.live.arena.setup import EVICTION, PREFETCH
from tidegate.policies.prefetch.together import make_prefetch
from tidegate.policies.registries import eviction, placement
eviction.make(EVICTION), make_prefetch(PREFETCH), placement.make("um")
print({"numba", "polars"} & sys.modules.keys())
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"
