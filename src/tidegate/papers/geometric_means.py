"""Geometric means of ratios, with and without the applications that dominate them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from tidegate.papers.ledger import percent, signed

DOMINATES = 2.0  # times an even share of all changes, as logarithms


@dataclass(frozen=True)
class Mean:
    """A geometric mean of ratios, and the mean without the applications that dominate it."""

    value: float
    without: float  # equal to ``value`` if none dominates
    dominators: tuple[str, ...]

    @property
    def reduction(self) -> float:
        return 1 - self.value

    @property
    def text(self) -> str:
        """The reduction as text: ``31 % (22 % without SPM)``."""
        if not self.dominators:
            return percent(self.reduction)
        without = f"{percent(1 - self.without)} without {', '.join(self.dominators)}"
        return f"{percent(self.reduction)} ({without})"


def mean_of(ratios: Mapping[str, float]) -> Mean:
    """Return the geometric mean of these ratios.

    >>> mean_of({"a": 0.9, "b": 0.9, "c": 0.9, "d": 0.2}).text
    '38 % (10 % without d)'
    """
    logs = {name: math.log(ratio) for name, ratio in ratios.items()}
    even = sum(map(abs, logs.values())) / len(logs)
    dominators = tuple(name for name, log in logs.items() if abs(log) > DOMINATES * even)
    rest = {name: log for name, log in logs.items() if name not in dominators}
    return Mean(_mean(logs), _mean(rest), dominators)


def _mean(logs: Mapping[str, float]) -> float:
    return math.exp(sum(logs.values()) / len(logs))


def extremes(ratios: Mapping[str, float], most: int = 2) -> str:
    """Return the applications that change most and least.

    >>> extremes({"a": 0.5, "b": 0.9, "c": 1.1})
    'a -50 %, b -10 % … c +10 %'
    """
    ranked = sorted(ratios, key=lambda name: ratios[name])
    words = [f"{name} {signed(ratios[name] - 1)}" for name in ranked]
    if len(words) == 1:
        return words[0]
    if len(words) <= 2 * most:
        most = len(words) - 1
        return f"{', '.join(words[:most])} … {', '.join(words[most:])}"
    return f"{', '.join(words[:most])} … {', '.join(words[-most:])}"
