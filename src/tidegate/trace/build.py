"""Ways to make segments: from blocks of equal length, and block by block."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tidegate.errors import TidegateError
from tidegate.trace.trace import Segment

# a segment of about this many touches keeps memory small and the compiled loop busy
SEGMENT_TOUCHES = 1 << 20


def blocks_of(
    length: int,
    page: ArrayLike,
    *,
    bytes: ArrayLike,
    write: ArrayLike = 0,
    reference: ArrayLike = 0,
) -> Segment:
    """A segment whose blocks have ``length`` touches each (the last may be shorter).

    >>> blocks_of(2, [0, 1, 2, 3, 4], bytes=4096).starts
    array([0, 2, 4, 5])
    """
    if length < 1:
        raise TidegateError(f"blocks of {length} touches cannot be; expected at least 1")
    pages = np.asarray(page, dtype=np.int32)
    n = len(pages)
    starts = np.append(np.arange(0, n, length, dtype=np.int64), n)
    return Segment(
        starts,
        pages,
        _column(write, n, np.uint8),
        _column(bytes, n, np.int32),
        _column(reference, n, np.int16),
    )


class SegmentBuilder:
    """Collects blocks and gives them back as segments of a good size.

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
        pages = np.asarray(page, dtype=np.int32)
        n = len(pages)
        self._columns.append(
            (
                pages,
                _column(write, n, np.uint8),
                _column(bytes, n, np.int32),
                _column(reference, n, np.int16),
            )
        )
        self._touches += n

    @property
    def full(self) -> bool:
        return self._touches >= SEGMENT_TOUCHES

    def segments(self) -> Iterator[Segment]:
        """What was collected, as one segment; nothing if there is nothing.

        The builder is empty afterwards.
        """
        if self._columns:
            starts = np.cumsum([0] + [len(c[0]) for c in self._columns])
            columns = [np.concatenate(parts) for parts in zip(*self._columns, strict=True)]
            self._columns, self._touches = [], 0
            yield Segment(starts, *columns)


def _column(given: ArrayLike, n: int, kind: type) -> NDArray[Any]:
    return np.ascontiguousarray(np.broadcast_to(np.asarray(given, dtype=kind), n))
