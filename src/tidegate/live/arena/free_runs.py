"""Free runs of regions (or other units): first fit, and free neighbours are joined."""

from __future__ import annotations

import threading
from bisect import insort

from tidegate.errors import TidegateError


class FreeRuns:
    """Free runs as (first, length). Any thread may call.

    >>> runs = FreeRuns(10)
    >>> runs.take(4), runs.take(4)
    (0, 4)
    >>> runs.give_back(0, 4); runs.take(3)
    0
    """

    def __init__(self, size: int):
        self.size = size
        self._lock = threading.Lock()
        self._free = [(0, size)]

    def take(self, n: int) -> int:
        """Take the first run of ``n`` and return its first number."""
        assert n > 0, n
        with self._lock:
            for i, (first, size) in enumerate(self._free):
                if size >= n:
                    self._free[i : i + 1] = [(first + n, size - n)] if size > n else []
                    return first
        raise TidegateError(
            f"an arena of {self.size} regions has no room for {n} more in a row; "
            "give it a larger span"
        )

    def take_at(self, first: int, n: int) -> None:
        """Take these very numbers, which are free."""
        with self._lock:
            for i, (start, size) in enumerate(self._free):
                if start <= first and first + n <= start + size:
                    parts = [(start, first - start), (first + n, start + size - first - n)]
                    self._free[i : i + 1] = [part for part in parts if part[1]]
                    return
        raise TidegateError(f"regions {first} to {first + n - 1} are taken")

    def give_back(self, first: int, n: int) -> None:
        """Make these free again."""
        with self._lock:
            insort(self._free, (first, n))
            joined: list[tuple[int, int]] = []
            for start, size in self._free:
                if joined and sum(joined[-1]) == start:
                    joined[-1] = (joined[-1][0], joined[-1][1] + size)
                else:
                    joined.append((start, size))
            self._free = joined
