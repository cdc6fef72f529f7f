"""The middle tier: counts equal to simulated tiers, no lost write, nothing lost with pagers."""

from __future__ import annotations

import ctypes
import json
import os
from pathlib import Path

import numpy as np
import pytest

from live.sequences import sequences
from live.test_reliable import SOAK, WRITERS, python
from tidegate.errors import PolicyError, TidegateError
from tidegate.live import Arena
from tidegate.live.pager.tier_placement import COUNTS, LiveTiers
from tidegate.live.transfer.middle import UNIT, Middle
from tidegate.machine import load_machine
from tidegate.policies.interface.tier_policy import TierPolicy
from tidegate.policies.registries import eviction, tiering
from tidegate.simulation.tiers.simulation import Tiered
from tidegate.trace.geometry import Geometry
from traces import one_block, reads

pytestmark = [pytest.mark.live, pytest.mark.oracle]

GEOMETRY = Geometry(16 << 10, 16 << 10)
NEAR, PAGES = 8, 40


def simulate(
    sequence: list[int], eviction_spec: str, tiering_spec: str, middle: int
) -> dict[str, int]:
    trace = one_block(reads(sequence), [PAGES], GEOMETRY)
    tiers = Tiered(
        trace,
        load_machine("a100-pcie3-ssd"),
        NEAR,
        middle,
        tiering.make(tiering_spec),
        eviction.make(eviction_spec),
        most_stays=NEAR - 1,
    )
    tiers.run()
    return {name: tiers.counts[name] for name in (*COUNTS, "evictions")}


def touch(
    sequence: list[int], eviction_spec: str, tiering_spec: str, middle: int, path: Path
) -> dict[str, int]:
    with Arena(
        NEAR * GEOMETRY.page,
        geometry=GEOMETRY,
        span="64MiB",
        prefetch="none",
        eviction=eviction_spec,
        middle=middle * GEOMETRY.page,
        tiering=tiering_spec,
    ) as arena:
        a = arena.open(path, "u1")
        for page in sequence:
            ctypes.c_uint8.from_address(a.ctypes.data + page * GEOMETRY.page).value  # noqa: B018 - a touch
        stats = arena.stats()
        assert bytes(a) == path.read_bytes()
    return {name: stats[name] for name in (*COUNTS, "evictions")}


@pytest.fixture
def noise(tmp_path: Path) -> Path:
    """A file that does not compress: each of its pages takes a page in the middle."""
    path = tmp_path / "noise"
    path.write_bytes(np.random.default_rng(1).bytes(PAGES * GEOMETRY.page))
    return path


@pytest.mark.parametrize(
    "tiering_spec", ["tier-order", "tier-random", "hmm(cached=exclusive, ahead=1)", "bam"]
)
@pytest.mark.parametrize("eviction_spec", ["fifo", pytest.param("random", marks=pytest.mark.slow)])
def test_live_tiers_count_as_simulated_ones_do(
    eviction_spec: str, tiering_spec: str, noise: Path
) -> None:
    sequence = [page for part in sequences(PAGES, 300).values() for page in part]
    live = touch(sequence, eviction_spec, tiering_spec, 12, noise)
    assert live == simulate(sequence, eviction_spec, tiering_spec, 12)
    assert live["middle_hits"] > 100 or tiering_spec == "bam"


@pytest.mark.slow
@pytest.mark.parametrize("middle", [12, 40])
@pytest.mark.parametrize("full", ["discard", "fifo"])
def test_reuse_is_predicted_alike_where_every_use_is_noticed(
    full: str, middle: int, noise: Path
) -> None:
    sequence = [i % PAGES for i in range(10 * PAGES)]  # around and around: each use is a fault
    spec = f"tier-reuse(samples=0, full={full})"
    live = touch(sequence, "fifo", spec, middle, noise)
    assert live == simulate(sequence, "fifo", spec, middle)
    assert live["middle_hits"] + live["far_reads"] == len(sequence)


@pytest.mark.slow
def test_compressed_pages_take_less_room() -> None:
    with Arena(
        NEAR * GEOMETRY.page,
        geometry=GEOMETRY,
        span="64MiB",
        prefetch="none",
        eviction="fifo",
        middle=4 * GEOMETRY.page,
    ) as arena:
        a = arena.empty(PAGES * GEOMETRY.page // 8, "u8")
        a[:] = np.arange(len(a)) // 2048  # one value a page
        assert (a == np.arange(len(a)) // 2048).all()
        stats = arena.stats()
    # four times as many as would fit
    assert stats["middle_pages"] == stats["middle_units"] == 4 * GEOMETRY.page // UNIT


@pytest.mark.slow
def test_what_lies_in_the_middle_is_flushed_too(tmp_path: Path) -> None:
    path = tmp_path / "data"
    np.zeros(PAGES * GEOMETRY.page // 8).tofile(path)
    with Arena(
        NEAR * GEOMETRY.page, geometry=GEOMETRY, prefetch="none", span="64MiB", middle="8MiB"
    ) as arena:
        a = arena.open(path, "f8", mode="r+")
        a += 1
        assert arena.stats()["middle_pages"] >= PAGES - NEAR - 1
        arena.flush()
        assert (np.fromfile(path) == 1).all()
        a += 1
    assert (np.fromfile(path) == 2).all()


def test_a_page_is_kept_until_it_is_removed() -> None:
    pages, page = 100, 64 << 10
    fd = Middle.create(pages, page, 4 * page)
    try:
        middle, noise = Middle(fd, pages, page, 4 * page), np.random.default_rng(2).bytes(page)
        assert middle.put(7, Middle.pack(memoryview(noise)), True)
        assert middle.put(3, Middle.pack(memoryview(bytes(page))), False)
        assert (middle.units(7), middle.units(3)) == (16, 1)
        middle.note_stored(7)
        again = Middle(fd, pages, page, 4 * page)  # a new pager
        again.recover(0, pages)
        assert list(again.oldest_first()) == [7, 3]
        assert not again.is_newer(7)
        into = memoryview(bytearray(page))
        again.get(7, into)
        assert bytes(into) == noise
        again.get(3, into)
        assert bytes(into) == bytes(page)
        again.remove(7)
        last = Middle(fd, pages, page, 4 * page)
        last.recover(0, pages)
        assert list(last.oldest_first()) == [3]
    finally:
        os.close(fd)


@pytest.mark.slow
@pytest.mark.parametrize("placement", ["tier-order", "tier-random", "tier-reuse"])
def test_no_write_is_lost(placement: str) -> None:
    done = python(str(WRITERS), "lru", "tree", "60" if SOAK else "1", "0", "1MiB", placement)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["middle_hits"] > 0


@pytest.mark.slow
def test_killed_pagers_lose_nothing_of_the_middle() -> None:
    done = python(str(WRITERS), "lru", "none", "40" if SOAK else "3", "8", "1MiB", "tier-order")
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert said["killed"] >= (200 if SOAK else 10)
    assert said["restarts"] > 0
    assert said["middle_pages"] > 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"tiering": "tier-belady"}, "future"),
        ({"tiering": "tier-ordre"}, "did you mean"),
        ({"middle": "4KiB"}, "holds no page"),
    ],
)
def test_impossible_options_are_refused(options: dict[str, str], said: str) -> None:
    given = {"near": "1MiB", "geometry": GEOMETRY, "span": "64MiB", "middle": "1MiB"} | options
    with pytest.raises(TidegateError, match=said):
        Arena(**given)  # type: ignore[arg-type]


@pytest.mark.parametrize("answer", ["far", 7, None, 1.5])
def test_an_answer_that_is_no_tier_is_named(answer: object) -> None:
    policy = type("Mine", (TierPolicy,), {"name": "Mine", "place": lambda self, page: answer})()
    with pytest.raises(
        PolicyError,
        match=rf"^policy 'Mine' answered place\(3\) with {answer!r}; expected Tier\.STAY",
    ):
        LiveTiers(policy, NEAR, 1, NEAR).stays(3)
