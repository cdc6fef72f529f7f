"""Sweeping objects in step, as element-wise kernels do: ``b[i] = f(a[i], …)``."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

import numpy as np

from tidegate.trace.build import SEGMENT_TOUCHES
from tidegate.trace.geometry import Geometry
from tidegate.trace.trace import Segment
from tidegate.workloads.extent import bytes_within
from tidegate.workloads.program import Space


def merged(geometry: Geometry, thread_block: int) -> tuple[int, int]:
    """Pages per block and the launch's width, if a thread block has ``thread_block`` bytes of each
    object.

    The thread blocks of one page touch it at the same time, so they are one block that takes as
    many slots.

    >>> merged(Geometry(), 1024), merged(Geometry(256, 4096), 1024)
    ((1, 64), (4, 1))
    """
    return max(1, thread_block // geometry.page), max(1, geometry.page // thread_block)


def sweep(
    space: Space, names: Sequence[str], block: int, writes: Collection[str] = ()
) -> Iterator[Segment]:
    """One pass over the objects ``names``, page by page, each in turn; those in ``writes`` are
    written.

    A block is ``block`` pages of the longest object and what the others hold beside them: where
    object x has X pages and the longest has L, page t of the longest goes with page t·X/L of x. An
    object's reference is its place in ``names``.
    """
    longest = max(space[name].pages for name in names)
    rows = max(1, SEGMENT_TOUCHES // (block * len(names))) * block
    for first in range(0, longest, rows):
        yield _swept(
            space, names, block, writes, np.arange(first, min(first + rows, longest)), longest
        )


def _swept(
    space: Space,
    names: Sequence[str],
    block: int,
    writes: Collection[str],
    at: np.ndarray,
    longest: int,
) -> Segment:
    """The touches at pages ``at`` of the longest object: a row for each page, a column for each
    object.
    """
    objects = [space[name] for name in names]
    index = np.stack([at * o.pages // longest for o in objects], axis=1)
    # -1 before the first page
    before = np.stack([(at - 1) * o.pages // longest for o in objects], axis=1)
    new = index != before  # a shorter object stays on its page for several rows, which is one touch
    touches_before = np.concatenate([[0], np.cumsum(new.sum(axis=1))])
    starts = touches_before[np.append(np.arange(0, len(at), block), len(at))]
    pairs = zip(objects, index.T, strict=True)
    used = np.stack([bytes_within(o, i, space.geometry) for o, i in pairs], axis=1)
    reference = np.broadcast_to(np.arange(len(names), dtype=np.int16), new.shape)
    written = np.array([name in writes for name in names], dtype=np.uint8)
    pages = index + np.array([o.first_page for o in objects])
    return Segment(starts, pages[new], written[reference[new]], used[new], reference[new])
