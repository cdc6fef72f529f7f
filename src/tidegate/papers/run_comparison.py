"""Why one run takes longer than another, as far as their books show."""

from __future__ import annotations

from tidegate.experiments.runs import Run
from tidegate.papers.ledger import TIE_WITHIN, percent, signed

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
