"""Advice as one HTML file: words, pictures, tables and the code."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tidegate.advice.advice import Advice
from tidegate.advice.words import sentences, tables
from tidegate.display.figures import COLOURS, svg_text
from tidegate.units import show_size


def page(found: Sequence[Advice], code: Mapping[str, str]) -> str:
    """Return the page of advice for one or several machines; ``code`` by the name of its file."""
    title = f"Advice on {found[0].subject.name}"
    parts = [body(advice) for advice in found]
    parts += [
        f"<h2>{html.escape(name)}</h2><details><summary>the code</summary>"
        f"<pre>{html.escape(text)}</pre></details>"
        for name, text in code.items()
    ]
    return _PAGE.format(title=html.escape(title), body="\n".join(parts))


def body(advice: Advice) -> str:
    """Return the advice for one machine, as a part of a page."""
    head = f"{advice.machine.name}, {show_size(advice.near)} of near memory"
    words = "".join(f"<p>{html.escape(text)}</p>" for text in sentences(advice))
    drawn = "".join(f"<figure>{svg_text(figure)}</figure>" for figure in draw_all(advice))
    shown = "".join(table.html() for table in tables(advice))
    notes = "".join(f"<li>{html.escape(note)}</li>" for note in advice.notes)
    return f"<h2>{html.escape(head)}</h2>{words}{drawn}{shown}<ul class=notes>{notes}</ul>"


_PAGE = """<!doctype html>
<html lang="en"><meta charset="utf-8"><title>{title}</title>
<style>
body {{ font: 15px/1.5 system-ui, sans-serif; max-width: 70rem }}
body {{ margin: 2rem auto; padding: 0 1rem }}
svg {{ max-width: 100%; height: auto }}
figure {{ margin: 1rem 0 }}
table {{ border-collapse: collapse; margin: 1rem 0 }}
caption {{ text-align: left; font-weight: 600; padding: .3rem 0 }}
td, th {{ padding: .2rem .8rem .2rem 0; text-align: left; vertical-align: top }}
tr + tr td {{ border-top: 1px solid #ddd }}
pre {{ background: #f6f6f6; padding: 1rem; overflow-x: auto }}
.notes {{ color: #555 }}
</style>
<h1>{title}</h1>
{body}
</html>
"""


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
