"""Page visits: the unit in which GMT counts reuse.

    Stretch(name, low, high, write)   bytes of an object that a launch walks through
    lockstep(space, stretches)        the launch: all stretches in step, from begin to end

GMT's reuse share is 1 - footprint / visits, and MultiVectorAdd's 40.0 % shows what a visit is: one
of a vector's pages counts once in a pass, though hundreds of warps use it, one after another. So
the thread blocks that share a page are one block here, and a page that the block before used as
well is still in use and not visited again. That is why the halo of a stencil makes no visits: it
lies in pages that neighbours use at the same time. Table 2 agrees: Srad's 83.38 % are 6.017 visits
a page, and without halos they are 6.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tidegate.trace.build import SEGMENT_TOUCHES
from tidegate.trace.trace import Launch, Segment
from tidegate.workloads.program import Space


class Stretch(NamedTuple):
    """Bytes ``low`` to ``high`` of an object, written or only read."""

    name: str
    low: int
    high: int
    write: bool = False


def whole_objects(
    space: Space, kernel: str, reads: Sequence[str], writes: Sequence[str], thread_block: int
) -> Launch:
    """Return a launch over whole objects, ``thread_block`` bytes of each to a thread block."""
    names = (*reads, *writes)
    stretches = [Stretch(name, 0, space[name].bytes, name in writes) for name in names]
    return Launch(kernel, lockstep(space, stretches), merged_width(space, thread_block))


def merged_width(space: Space, thread_block: int) -> int:
    """Return the thread blocks to a block, for ``thread_block`` bytes of every stretch."""
    return max(1, space.geometry.page // thread_block)


def lockstep(space: Space, stretches: Sequence[Stretch]) -> Iterator[Segment]:
    """Walk through all stretches in step, a page of the longest at a time; each step is a block.

    A page is visited in the step that first uses it. An object's access site is its place in the
    space.
    """
    page = space.geometry.page
    steps = -(-max(s.high - s.low for s in stretches) // page)
    rows = max(1, SEGMENT_TOUCHES // (2 * len(stretches)))
    for first in range(0, steps, rows):
        last = min(first + rows, steps)
        parts = [_visits(space, stretch, steps, first, last) for stretch in stretches]
        step, number, write, used, site = map(np.concatenate, zip(*parts, strict=True))
        # stretches that are shorter than a page may share one, which is one visit
        _, at, same = np.unique(step * 2**31 + number, return_index=True, return_inverse=True)
        order = np.lexsort((at, step[at]))
        used = np.bincount(same, used)[order].astype(np.int32)
        write = np.bincount(same, write)[order] > 0
        at = at[order]
        starts = np.searchsorted(step[at], np.arange(first, last + 1))
        yield Segment(np.unique(starts), number[at], write.astype(np.uint8), used, site[at])


def _visits(
    space: Space, stretch: Stretch, steps: int, first: int, last: int
) -> tuple[NDArray[np.int64], ...]:
    """Return the visits of a stretch in steps ``first`` to ``last``.

    That is step, page, write, bytes and access site of each.
    """
    page, owner, length = space.geometry.page, space[stretch.name], stretch.high - stretch.low
    # a step uses 1 / steps of the stretch; pages entered before or after are left out below
    low = stretch.low + -(-first * length // steps)
    high = min(stretch.high - 1, stretch.low + last * length // steps)
    numbers = np.arange(low // page, high // page + 1)
    begins = np.maximum(numbers * page, stretch.low)
    ends = np.minimum((numbers + 1) * page, stretch.high)
    step = (begins - stretch.low) * steps // length
    mine = (step >= first) & (step < last)
    columns = step, owner.first_page + numbers, np.full_like(step, stretch.write), ends - begins
    site = np.full(mine.sum(), list(space).index(stretch.name))
    return *(column[mine] for column in columns), site
