"""Streams and gathers, against loops over every element."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate.papers.hybrid.applications.graphs import BFS
from tidegate.trace.geometry import Geometry
from tidegate.trace.trace import lay_out
from tidegate.workloads import offloaded
from tidegate.workloads.offloaded import HELD, SECTOR, Access, Gather, StreamedBytes, loop_launch
from tidegate.workloads.program import Space

SMALL = Geometry(4096, 65536)


def walked(
    sizes: dict[str, int], elements: int, accesses: list[Access], seed: int = 0
) -> tuple[Space, list[tuple[int, int]]]:
    """Return the space, and (page, bytes) of every touch of one launch."""
    space = Space(SMALL, lay_out(sizes, SMALL))
    launch = loop_launch(space, "r", elements, *accesses, seed=seed)
    return space, [
        (int(p), int(b)) for s in launch.segments for p, b in zip(s.page, s.bytes, strict=True)
    ]


@settings(deadline=None)
@given(st.integers(1, 5000), st.sampled_from([1, 4, 8, 16, 64]), st.integers(0, 3))
def test_a_stream_touches_the_pages_its_elements_use(elements: int, each: int, planes: int) -> None:
    """``planes`` streams of one object, one behind another, as structures of arrays lie."""
    streams: list[Access] = [
        StreamedBytes("a", each, at=each * elements * k) for k in range(planes + 1)
    ]
    space, touches = walked({"a": each * elements * (planes + 1)}, elements, streams)
    used = {
        (each * (elements * k + i) + b) // SMALL.page
        for k in range(planes + 1)
        for i in range(elements)
        for b in (0, each - 1)
    }
    assert {p for p, _ in touches} == used == set(range(space["a"].pages))


def test_a_gather_meets_as_many_pages_and_sectors_as_draws_do() -> None:
    """One wave: so many accesses anywhere in 64 pages, against as many random numbers."""
    pages, elements, accesses = 64, 64, 2.0
    sizes, how = (
        {"a": pages * SMALL.page, "s": 4 * elements},
        [StreamedBytes("s", 4), Gather("a", accesses)],
    )
    ours, drawn, rng = [], [], np.random.default_rng(5)
    for seed in range(100):
        met = [(p, b) for p, b in walked(sizes, elements, list(how), seed)[1] if p < pages]
        assert len(met) == len({p for p, _ in met})  # once in a wave
        ours.append((len(met), sum(b for _, b in met)))
        at = rng.integers(0, pages * SMALL.page // SECTOR, int(elements * accesses))
        drawn.append((len(set(at * SECTOR // SMALL.page)), SECTOR * len(set(at))))
    assert np.mean(ours, axis=0) == pytest.approx(np.mean(drawn, axis=0), rel=0.03)


def test_a_gather_comes_again_with_every_wave() -> None:
    waves = 3
    _, touches = walked(
        {"s": 4 * HELD * waves, "a": 8 * SMALL.page},
        HELD * waves,
        [StreamedBytes("s", 4), Gather("a", 1.0)],
    )
    first = HELD * waves * 4 // SMALL.region * SMALL.pages_per_region  # where a begins
    again = Counter(p for p, _ in touches if p >= first)
    assert list(again.values()) == [waves] * 8


def test_waves_taken_together_use_the_same_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few accesses to many pages: a wave at a time, or several waves together."""
    sizes, how = (
        {"s": 4 * HELD * 6, "a": 2000 * SMALL.page},
        [StreamedBytes("s", 4), Gather("a", 0.02)],
    )
    together = [b for p, b in walked(sizes, HELD * 6, list(how))[1] if p >= HELD * 24 // SMALL.page]
    monkeypatch.setattr(offloaded, "MOST_WAVES", 1)
    apart = [b for p, b in walked(sizes, HELD * 6, list(how))[1] if p >= HELD * 24 // SMALL.page]
    assert len(together) < 0.6 * len(apart)
    assert sum(together) == pytest.approx(sum(apart), rel=0.05)


def test_part_of_an_object_is_all_that_is_used() -> None:
    accesses: list[Access] = [StreamedBytes("s", 4, part=0.25), Gather("a", 1.0, part=0.25)]
    space, touches = walked({"s": 64 * SMALL.page, "a": 64 * SMALL.page}, 64 * 1024, accesses)
    for name in ("s", "a"):
        pages = {
            p - space[name].first_page for p, _ in touches if 0 <= p - space[name].first_page < 64
        }
        assert pages == set(range(16))


@pytest.mark.parametrize("connected", [0.0, 0.25, 1.0])
def test_bfs_reads_the_edges_of_the_connected_vertices(connected: float) -> None:
    trace = BFS(bytes=8_000_000, connected=connected).trace(SMALL)
    edges = next(o for o in trace.objects if o.name == "edges")
    touched = {int(p) for launch in trace.launches() for s in launch.segments for p in s.page}
    share = (
        sum(edges.first_page <= p < edges.first_page + edges.pages for p in touched) / edges.pages
    )
    assert share == pytest.approx(connected, abs=0.02)


def test_bfs_levels_are_those_of_a_search() -> None:
    """A random graph of this degree, really searched: as many levels, to within two, and most
    vertices in the same ones.
    """
    n, degree = 20_000, 6
    rng = np.random.default_rng(3)
    edges = rng.integers(0, n, (n, degree))
    level = np.full(n, -1)
    level[0], frontier, depth = 0, np.array([0]), 0
    while len(frontier):
        depth += 1
        found = np.unique(edges[frontier])
        frontier = found[level[found] < 0]
        level[frontier] = depth
    shares = [float(np.mean(level == d)) for d in range(depth)]
    ours = BFS(bytes=n * (15 + 4 * degree), degree=degree).levels()
    assert abs(len(ours) - len(shares)) <= 2
    assert max(ours) == pytest.approx(max(shares), rel=0.25)
