"""Checks of waves against loops over a kernel's index functions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from workloads.read_traces import Read, Uses, in_order

Blocks = list[tuple[int, int]]


def check_waves(launch: Read, waves: Iterable[list[Uses]], lanes: int) -> None:
    """Check that each wave uses what its parts use, one after another, each page once, in order."""
    blocks = launch.blocks()
    for parts in waves:
        expected = [part.touches() for part in parts]
        used = min(lanes, sum(map(len, expected)))
        mine, blocks = blocks[:used], blocks[used:]
        assert max(map(len, mine)) - min(map(len, mine)) <= 1, "distributed evenly"
        touches = in_order(mine)
        for part, pages in zip(parts, expected, strict=True):
            now, touches = touches[: len(pages)], touches[len(pages) :]
            assert len(set(now)) == len(now), "each page once"
            assert set(now) == pages
            assert part.steps(now) == sorted(part.steps(now)), "in order of first use"
        assert not touches
    assert not blocks


def in_waves(blocks: Blocks, wave: int) -> Iterator[Blocks]:
    """Yield the blocks, in the order of the grid, as many as are resident together."""
    for first in range(0, len(blocks), wave):
        yield blocks[first : first + wave]


def tiles(n: int, tile: int) -> range:
    return range(-(-n // tile))


def within(first: int, tile: int, n: int) -> range:
    """Return the indices of a tile, cut off at the matrix's edge."""
    return range(first, min(n, first + tile))
