"""Row: one line of the table, the answer to one question."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Row:
    """``figure`` in ``unit``; ``target`` is its bound, or None if it is for information only."""

    question: str
    figure: float
    unit: str
    against: str  # a peer or a limit, measured in the same run, or how the figure came about
    target: float | None = None
    at_least: bool = False  # the target is a lower bound; otherwise it is an upper one

    @property
    def reached(self) -> bool | None:
        if self.target is None:
            return None
        return self.figure >= self.target if self.at_least else self.figure <= self.target


Benchmark = Callable[[], list[Row]]
