"""Building segments: from blocks of equal length, and block by block."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tidegate.errors import TidegateError
from tidegate.trace.trace import Segment, as_column

SEGMENT_TOUCHES = 1 << 20  # small enough for memory, large enough for the compiled loop


def blocks_of(
    length: int,
    page: ArrayLike,
    *,
    bytes: ArrayLike,
    write: ArrayLike = 0,
    reference: ArrayLike = 0,
) -> Segment:
    """Return a segment whose blocks have ``length`` touches each (the last may be shorter).

    >>> blocks_of(2, [0, 1, 2, 3, 4], bytes=4096).starts
    array([0, 2, 4, 5])
    """
    if length < 1:
        raise TidegateError(f"length must be at least 1, got {length}")
    columns = _columns(page, write, bytes, reference)
    n = len(columns[0])
    return Segment(np.append(np.arange(0, n, length, dtype=np.int64), n), *columns)


class SegmentBuilder:
    """Collects blocks and returns them as segments.

    >>> build = SegmentBuilder()
    >>> build.block([0, 1], bytes=4096)
    >>> [s.touches for s in build.segments()]
    [2]
    """

    def __init__(self) -> None:
        self._columns: list[tuple[NDArray[Any], ...]] = []
        self._touches = 0

    def block(
        self, page: ArrayLike, *, bytes: ArrayLike, write: ArrayLike = 0, reference: ArrayLike = 0
    ) -> None:
        """Add one block."""
        self._columns.append(_columns(page, write, bytes, reference))
        self._touches += len(self._columns[-1][0])

    @property
    def full(self) -> bool:
        """Whether the blocks make a segment of a good size."""
        return self._touches >= SEGMENT_TOUCHES

    def segments(self) -> Iterator[Segment]:
        """Yield the blocks as one segment, if there are any, and empty the builder."""
        if self._columns:
            starts = np.cumsum([0] + [len(c[0]) for c in self._columns])
            columns = [np.concatenate(parts) for parts in zip(*self._columns, strict=True)]
            self._columns, self._touches = [], 0
            yield Segment(starts, *columns)


def _columns(
    page: ArrayLike, write: ArrayLike, bytes: ArrayLike, reference: ArrayLike
) -> tuple[NDArray[Any], ...]:
    pages = as_column("page", page, np.int32)
    if pages.ndim != 1:
        raise TidegateError(f"page must be one row of page numbers, got {page!r:.80}")
    given = {"write": (write, np.uint8), "bytes": (bytes, np.int32)}
    given["reference"] = (reference, np.int16)
    columns = [pages]
    for name, (numbers, kind) in given.items():
        column = as_column(name, numbers, kind)
        if column.shape not in ((), (1,), pages.shape):
            raise TidegateError(
                f"{name} must be one number, or one for each of {len(pages)} pages, "
                f"got {len(column)}"
            )
        columns.append(np.ascontiguousarray(np.broadcast_to(column, len(pages))))
    return tuple(columns)
