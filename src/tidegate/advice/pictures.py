"""Pictures of advice: the candidates, live memory over the program, and time over near memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tidegate.advice.advice import Advice
from tidegate.display.figures import COLOURS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_GIB = 1 << 30
_BLUE, _ORANGE, _GREEN, _RED, *_, _GREY, _BLACK = COLOURS


def _figure(height: float) -> tuple[Figure, Any]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, height), layout="constrained")
    return figure, figure.add_subplot()


def draw_all(advice: Advice) -> list[Figure]:
    """Return the pictures of what is known."""
    drawn = (draw_candidates(advice), draw_fit(advice), draw_worth(advice))
    return [figure for figure in drawn if figure is not None]


def draw_candidates(advice: Advice) -> Figure | None:
    """Draw each candidate's time as a bar, with the bound as a line."""
    if not advice.ranked:
        return None
    ranked = advice.ranked[::-1]
    figure, axes = _figure(0.8 + 0.28 * len(ranked))
    chosen = advice.recommended.name if advice.recommended else ""
    colours = [
        _GREEN if o.name == chosen else _BLUE if o.trial.candidate.usable else _GREY for o in ranked
    ]
    axes.barh([o.name for o in ranked], [o.time / 1e6 for o in ranked], color=colours)
    if advice.bound is not None:
        axes.axvline(advice.bound.time / 1e6, color=_BLACK, linestyle="--")
        axes.set_xlabel("ms; dashed: no way is faster; grey: needs another driver")
    return figure


def draw_fit(advice: Advice) -> Figure | None:
    """Draw live bytes over the launches, with near memory as a line."""
    if not advice.fit.curve:
        return None
    figure, axes = _figure(2.6)
    launches, live = zip(*advice.fit.curve, strict=True)
    axes.fill_between(launches, [size / _GIB for size in live], color=_BLUE, alpha=0.5, step="post")
    axes.axhline(advice.near / _GIB, color=_RED, label="near memory")
    axes.set_xlabel("launch")
    axes.set_ylabel("live, GiB")
    axes.set_ylim(bottom=0)
    axes.legend(loc="lower right")
    return figure


def draw_worth(advice: Advice) -> Figure | None:
    """Draw the best time over near memory, with the size at hand."""
    if advice.worth is None or len(advice.worth.points) < 2:
        return None
    figure, axes = _figure(2.6)
    points = advice.worth.points
    sizes, times = [p.near / _GIB for p in points], [p.time / 1e6 for p in points]
    axes.plot(sizes, times, "o-", color=_BLUE)
    axes.axvline(advice.near / _GIB, color=_RED, label="near memory")
    axes.set_xlabel("near memory, GiB")
    axes.set_ylabel("best time, ms")
    axes.set_ylim(bottom=0)
    axes.legend()
    return figure
