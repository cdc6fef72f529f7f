"""Which regions of an arena's addresses are taken: first fit, and neighbours that are free are one."""

from __future__ import annotations

import threading
from bisect import insort

from tidegate.errors import TidegateError


class Space:
    """Free runs of regions, as (first, how many).

    >>> space = Space(10)
    >>> space.take(4), space.take(4)
    (0, 4)
    >>> space.give_back(0, 4); space.take(3)
    0
    """

    def __init__(self, regions: int):
        self.regions = regions
        self._lock = threading.Lock()  # arrays are made in threads, too
        self._free = [(0, regions)]

    def take(self, regions: int) -> int:
        """The first of so many regions in a row."""
        assert regions > 0, regions
        with self._lock:
            for i, (first, size) in enumerate(self._free):
                if size >= regions:
                    self._free[i : i + 1] = (
                        [(first + regions, size - regions)] if size > regions else []
                    )
                    return first
        raise TidegateError(
            f"an arena of {self.regions} regions has no room for {regions} more in a row; give it a larger span"
        )

    def take_at(self, first: int, regions: int) -> None:
        """These very regions, which are free."""
        with self._lock:
            for i, (start, size) in enumerate(self._free):
                if start <= first and first + regions <= start + size:
                    parts = [
                        (start, first - start),
                        (first + regions, start + size - first - regions),
                    ]
                    self._free[i : i + 1] = [part for part in parts if part[1]]
                    return
        raise TidegateError(f"regions {first} to {first + regions - 1} are taken")

    def give_back(self, first: int, regions: int) -> None:
        """These are free again."""
        with self._lock:
            insort(self._free, (first, regions))
            joined: list[tuple[int, int]] = []
            for start, size in self._free:
                if joined and sum(joined[-1]) == start:
                    joined[-1] = (joined[-1][0], joined[-1][1] + size)
                else:
                    joined.append((start, size))
            self._free = joined
