"""Comparisons of runs: geometric means of ratios, with and without the applications that dominate
them, and why one run takes longer than another, as far as their counts and times show.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from tidegate.experiments.runs import Run
from tidegate.papers.ledger import TIE_WITHIN, percent, signed

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


_COUNTS = {
    "evictions": "evictions",
    "faults": "faults",
    "pages_in": "pages moved in",
    "notifications": "notifications",
}


def compare_runs(one: Run, name: str, other: Run, other_name: str) -> str:
    """Return how ``one`` differs from ``other``, in a sentence: time, counts, and the part of time
    that makes most of the difference.
    """
    gap = one.time / other.time - 1
    if abs(gap) <= 0.005:
        return f"{name} and {other_name} take the same time"
    changes = filter(None, (_change(one, other, key, word) for key, word in _COUNTS.items()))
    counted = ", ".join(changes) or "with the same counts"
    how = f"{percent(abs(gap))} {'more' if gap > 0 else 'less'}"
    return f"{name} takes {how} time than {other_name}: {counted}; {_largest_part(one, other)}"


def _largest_part(one: Run, other: Run) -> str:
    """Return the part of time that differs most, in the direction of the whole."""
    whole = one.time - other.time
    shares = {part: (one.parts[part] - other.parts[part]) / whole for part in one.parts}
    part = max(shares, key=lambda p: shares[p])
    share = percent(shares[part]) if shares[part] < 1 else "all"
    return f"{share} of the difference is {part.replace('_', ' ')}"


def _change(one: Run, other: Run, key: str, word: str) -> str:
    a, b = one.counts[key], other.counts[key]
    if b == 0 or abs(a / b - 1) <= TIE_WITHIN:
        return ""
    return f"{a / b:.1f} times the {word}" if a >= 2 * b else f"{signed(a / b - 1)} {word}"
