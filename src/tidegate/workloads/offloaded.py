"""Launches of offloaded loops, which walk objects in step.

loop_launch ──▶ blocks   the elements of the loop that fill a page of the object used most
            ──▶ Stream   element i uses bytes i·each … of an object; a page is touched by the
                         first block that uses it
            ──▶ Gather   element i uses some places anywhere in an object; a page is touched
                         once by a wave, which is all blocks that a GPU holds at a time, for
                         the expected number of its sectors that they use (where a wave uses
                         little of each page, a few waves are taken together)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from tidegate.trace.build import SEGMENT_TOUCHES
from tidegate.trace.trace import Launch, Segment
from tidegate.workloads.program import Space, bytes_within
from tidegate.workloads.thread_blocks import SECTOR

THREADS = 256  # of a thread block: eight of them fill an SM of 2048
HELD = 80 * 2048  # threads at a time: a V100's SMs, full
# of a page's sectors; below it accesses seldom meet, so that bytes add up however waves are cut
LITTLE = 1 / 8
MOST_WAVES = 64  # taken together: some hundred megabytes of the objects that are streamed meanwhile


@dataclass(frozen=True)
class StreamedBytes:
    """Element i uses ``each`` bytes of an object from ``at + i * each`` on."""

    object: str
    each: float
    at: float = 0
    write: bool = False
    share: float = 1.0  # of the elements that do so, at random
    together: float = 1.0  # neighbouring elements whose bytes lie in one sector
    part: float = 1.0  # of the elements, from the first: the others never do


@dataclass(frozen=True)
class Gather:
    """Each element uses ``accesses`` random sectors in the first ``part`` of an object."""

    object: str
    accesses: float
    write: bool = False
    part: float = 1.0


Access = StreamedBytes | Gather


def loop_launch(space: Space, name: str, elements: int, *accesses: Access, seed: int = 0) -> Launch:
    """Return one launch of a kernel region whose loop has so many elements.

    Without gathers the launch can be streamed again and again.
    """
    heaviest = max((a.each for a in accesses if isinstance(a, StreamedBytes)), default=4.0)
    block = max(1, int(space.geometry.page / heaviest))
    walk = partial(_walk, space, elements, block, accesses, seed)
    gathers = any(isinstance(a, Gather) for a in accesses)
    return Launch(name, walk() if gathers else _Repeatable(walk), width=max(1, block // THREADS))


@dataclass
class _Repeatable(Iterable[Segment]):
    """Segments that are cached once made: a launch of streams has a few touches for each page."""

    make: Callable[[], Iterator[Segment]]
    made: list[Segment] | None = None

    def __iter__(self) -> Iterator[Segment]:
        if self.made is None:
            self.made = list(self.make())
        return iter(self.made)


TouchColumns = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]
"""Block (counted from the segment's first), page and bytes of each touch, in any order."""


def _walk(
    space: Space, elements: int, block: int, accesses: Sequence[Access], seed: int
) -> Iterator[Segment]:
    random = np.random.default_rng(seed)
    streams = [(n, a) for n, a in enumerate(accesses) if isinstance(a, StreamedBytes)]
    gathers = [
        (n, _Gathered(space, a, random)) for n, a in enumerate(accesses) if isinstance(a, Gather)
    ]
    rows = max(1, HELD // block * _waves(gathers) if gathers else SEGMENT_TOUCHES // len(streams))
    blocks = -(-elements // block)
    for first in range(0, blocks, rows):
        at = np.arange(first, min(first + rows, blocks), dtype=np.int64)
        here = min(int(at[-1] + 1) * block, elements) - first * block
        parts = [(n, _streamed(space, a, at, block, elements, random)) for n, a in streams]
        parts += [(n, gathered.touches(len(at), here)) for n, gathered in gathers]
        yield _segment(accesses, parts)


def _waves(gathers: Sequence[tuple[int, _Gathered]]) -> int:
    """Return how many waves are taken together: as many as use little of every page."""
    most = min(gathered.little / max(gathered.expected(HELD), 1e-9) for _, gathered in gathers)
    return max(1, min(MOST_WAVES, int(most)))


def _streamed(
    space: Space,
    a: StreamedBytes,
    at: NDArray[np.int64],
    block: int,
    elements: int,
    random: np.random.Generator,
) -> TouchColumns:
    page, owner = space.geometry.page, space[a.object]
    ends = np.minimum(np.append(at, at[-1] + 1) * block, elements) * a.each + a.at
    # a page is a power of two, so the quotient is exact; // of floats is many times as slow
    edges = np.clip(np.floor((ends - 1) / page), 0, owner.pages - 1).astype(np.int64)
    before, index = edges[:-1], edges[1:]
    # a page that several blocks use is touched by the first of them
    new = (index != before) | (at == 0)
    there = bytes_within(owner, index, space.geometry)
    used = there
    if a.part < 1.0:
        new &= at * block < a.part * elements
    if a.share < 1.0:
        users = max(1.0, page / a.each)  # elements that have their bytes in this page
        new &= random.random(len(at)) < -np.expm1(users * np.log1p(-a.share))
        dense = -np.expm1(max(a.together, SECTOR / a.each) * np.log1p(-a.share))
        used = np.minimum(there, np.maximum(SECTOR, (there * dense).astype(np.int64)))
    return np.flatnonzero(new), (owner.first_page + index)[new], used[new]


class _Gathered:
    """The pages of one object that a launch's waves gather from, in random order."""

    def __init__(self, space: Space, a: Gather, random: np.random.Generator):
        self._owner = space[a.object]
        self._accesses, self._random = a.accesses, random
        reached = max(1, round(self._owner.pages * a.part))
        self._order = random.permutation(reached)
        self._within = bytes_within(self._owner, self._order, space.geometry)
        self._sectors = max(2, space.geometry.page // SECTOR)

    @property
    def little(self) -> float:
        """Accesses of one page that seldom meet in a sector."""
        return self._sectors * LITTLE

    def expected(self, elements: int) -> float:
        """Return the expected accesses of a page by so many elements."""
        return elements * self._accesses / len(self._order)

    def touches(self, blocks: int, elements: int) -> TouchColumns:
        """Return the touches of one wave, distributed over its blocks.

        Each page is touched with the probability that any access of the wave meets it.
        """
        each = self.expected(elements)
        some = -np.expm1(-each)  # the probability that it has any
        met = np.flatnonzero(self._random.random(len(self._order)) < some)
        met = np.roll(met, self._random.integers(len(self._order)))
        sectors = -np.expm1(each / max(some, 1e-12) * np.log1p(-1 / self._sectors)) * self._sectors
        used = np.clip(int(SECTOR * sectors), 1, self._within[met])
        return np.arange(len(met)) % blocks, self._owner.first_page + self._order[met], used


def _segment(accesses: Sequence[Access], parts: Sequence[tuple[int, TouchColumns]]) -> Segment:
    block = np.concatenate([touches[0] for _, touches in parts])
    # a block streams before it gathers, in the order of its accesses
    order = np.argsort(block, kind="stable")
    site = np.repeat([n for n, _ in parts], [len(touches[0]) for _, touches in parts])[order]
    pages, used = (np.concatenate([touches[i] for _, touches in parts])[order] for i in (1, 2))
    written = np.array([a.write for a in accesses], np.uint8)[site]
    # blocks that touch nothing are left out
    starts = np.append(np.flatnonzero(np.diff(block[order], prepend=-1)), len(block))
    return Segment(starts, pages, written, used, site)
