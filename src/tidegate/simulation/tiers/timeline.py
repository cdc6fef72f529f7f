"""The timeline of a run over three tiers: its counters, every so many touches."""

from __future__ import annotations

from typing import Any

ROWS = 1024
FIRST_STRIDE = 1024  # touches between two rows, while there are few
COLUMNS = (
    "touches",
    "hits",
    "middle_hits",
    "far_reads",
    "evictions",
    "to_middle",
    "dropped",
    "near_written",
    "middle_written",
    "near_flushed",
    "middle_flushed",
    "near_used",
    "middle_used",
)


class Timeline:
    """Rows of counters; when there are too many, every other one is dropped."""

    def __init__(self) -> None:
        self._rows: list[tuple[float, ...]] = []
        self._stride = FIRST_STRIDE

    def until_row(self, touches: int) -> int:
        """Return how many touches are left until the next row."""
        return self._stride - int(touches) % self._stride

    def add(self, time: float, counts: dict[str, int]) -> None:
        """Add a row if one is due."""
        if counts["touches"] % self._stride:
            return
        if len(self._rows) == ROWS:
            del self._rows[::2]
            self._stride *= 2
            if counts["touches"] % self._stride:
                return
        self._append(time, counts)

    def end(self, time: float, counts: dict[str, int]) -> None:
        """Add the last row, or replace it by what was flushed behind it."""
        if self._rows and self._rows[-1][1] == counts["touches"]:
            self._rows.pop()
        self._append(time, counts)

    def table(self) -> dict[str, list[Any]]:
        """Return its columns."""
        columns = zip(*self._rows, strict=True)
        return dict(zip(("time", *COLUMNS), map(list, columns), strict=True))

    def _append(self, time: float, counts: dict[str, int]) -> None:
        self._rows.append((time, *(counts[name] for name in COLUMNS)))
