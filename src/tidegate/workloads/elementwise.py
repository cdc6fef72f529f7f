"""Passes over several objects in step, as element-wise kernels make: ``b[i] = f(a[i], …)``."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

import numpy as np

from tidegate.trace.build import SEGMENT_TOUCHES
from tidegate.trace.geometry import Geometry
from tidegate.trace.trace import Object, Segment
from tidegate.workloads.program import Space, bytes_within


def merged_blocks(geometry: Geometry, thread_block: int) -> tuple[int, int]:
    """Return pages per block and the launch's width, for ``thread_block`` bytes of each object.

    The thread blocks of one page touch it at the same time, so they are one block that takes as
    many slots.

    >>> merged_blocks(Geometry(), 1024), merged_blocks(Geometry(256, 4096), 1024)
    ((1, 64), (4, 1))
    """
    return max(1, thread_block // geometry.page), max(1, geometry.page // thread_block)


def one_pass(
    space: Space, names: Sequence[str], block: int, writes: Collection[str] = ()
) -> Iterator[Segment]:
    """Yield one pass over the objects ``names``, page by page; those in ``writes`` are written.

    A block is ``block`` pages of the longest object and the pages of the others beside them: where
    object x has X pages and the longest has L, page t of the longest goes with page t·X/L of x. An
    object's access site is its place in ``names``.
    """
    objects = [space[name] for name in names]
    written = np.array([name in writes for name in names], dtype=np.uint8)
    longest = max(o.pages for o in objects)
    rows = max(1, SEGMENT_TOUCHES // (block * len(names))) * block
    for first in range(0, longest, rows):
        at = np.arange(first, min(first + rows, longest))
        yield _rows(space.geometry, objects, written, block, at, longest)


def _rows(
    geometry: Geometry,
    objects: Sequence[Object],
    written: np.ndarray,
    block: int,
    at: np.ndarray,
    longest: int,
) -> Segment:
    """Return the touches at pages ``at`` of the longest object; a row is a page."""
    index = np.stack([at * o.pages // longest for o in objects], axis=1)
    # -1 before the first page
    before = np.stack([(at - 1) * o.pages // longest for o in objects], axis=1)
    new = index != before  # a shorter object stays on its page for several rows, which is one touch
    touches_before = np.concatenate([[0], np.cumsum(new.sum(axis=1))])
    starts = touches_before[np.append(np.arange(0, len(at), block), len(at))]
    pairs = zip(objects, index.T, strict=True)
    used = np.stack([bytes_within(o, i, geometry) for o, i in pairs], axis=1)
    site = np.broadcast_to(np.arange(len(objects), dtype=np.int16), new.shape)
    pages = index + np.array([o.first_page for o in objects])
    return Segment(starts, pages[new], written[site[new]], used[new], site[new])
