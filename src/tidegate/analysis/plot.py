"""The figure of an analysis: miss-ratio curve, reuse distances, footprint."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure  # not pyplot: no window, no backend, no state
from matplotlib.ticker import EngFormatter, FuncFormatter, MaxNLocator, NullFormatter

from tidegate.units import GiB, MiB, show_count, show_size

if TYPE_CHECKING:
    from tidegate.analysis.analysis import Analysis

EXACT, SAMPLED, COLD = "#1f5a8a", "#e0792b", "#9aa5b1"
MOST_POINTS = 4096  # of a drawn line; a curve may have a step per page


def figure(analysis: Analysis) -> Figure:
    """Return the figure: three panels side by side."""
    fig = Figure(figsize=(14, 4.2), layout="constrained")
    curve, reuse, footprint = fig.subplots(1, 3)
    fig.get_layout_engine().set(wspace=0.06)  # type: ignore[union-attr, call-arg]
    _draw_curve(curve, analysis)
    _draw_histogram(reuse, analysis)
    _draw_footprint(footprint, analysis)
    for axes in (curve, reuse, footprint):
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(axis="y", color="#e6e9ed", linewidth=0.8)
        axes.set_axisbelow(True)
    touches, distinct = show_count(analysis.touches), show_count(analysis.distinct)
    unit = f"{analysis.unit}s of {_short(analysis.unit_bytes)}"
    fig.suptitle(f"{analysis.name}: {touches} touches of {distinct} {unit}", fontsize=12)
    return fig


def _draw_curve(axes: Axes, analysis: Analysis) -> None:
    scale, unit = _scale(analysis)
    whole = analysis.distinct * analysis.unit_bytes / scale
    for curve, colour, style, label in (
        (analysis.curve, EXACT, "-", "LRU, exact"),
        (analysis.shards_curve, SAMPLED, "--", "LRU, SHARDS"),
    ):
        if curve is not None:
            some = np.unique(np.linspace(0, len(curve.sizes) - 1, MOST_POINTS).astype(np.int64))
            size = np.append(curve.sizes[some] / scale, whole)
            ratio = np.append(curve.ratios[some], curve.ratios[-1])
            axes.step(
                size, ratio, where="post", color=colour, linestyle=style, linewidth=1.8, label=label
            )
    cold = analysis.distinct / analysis.touches
    axes.axhline(cold, color=COLD, linestyle=":", linewidth=1.2, label="first touches")
    axes.set(title="Misses by memory size", xlabel=f"memory ({unit})", ylabel="miss ratio")
    axes.set_xlim(0, whole * 1.02)
    axes.set_yscale("log")  # a miss costs thousands of hits: ratios far below 1 % still matter
    axes.set_ylim(cold / 2, 1.5)
    axes.yaxis.set_minor_formatter(NullFormatter())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda ratio, _: f"{100 * ratio:g}%"))
    axes.legend(frameon=False)


def _draw_histogram(axes: Axes, analysis: Analysis) -> None:
    table = analysis.histogram
    sizes, touches = table["bytes"].to_list(), table["touches"].to_numpy()
    places = np.arange(len(touches), dtype=np.float64)
    places[-1] += 0.6  # first touches have no distance, so they are apart
    axes.bar(places, touches, width=0.86, color=[EXACT] * (len(touches) - 1) + [COLD])
    every = -(-(len(sizes) - 1) // 8)
    shown = [*range(0, max(len(sizes) - 2, 1), every), len(sizes) - 1]
    labels = ["first" if sizes[i] is None else _short(sizes[i]) for i in shown]
    axes.set_xticks(places[shown], labels, rotation=35)
    axes.set_yscale("log")
    axes.set_ylim(bottom=0.5)
    axes.yaxis.set_major_formatter(EngFormatter())
    axes.set(
        title="Reuse distances", xlabel="other memory touched since (at least)", ylabel="touches"
    )


def _draw_footprint(axes: Axes, analysis: Analysis) -> None:
    scale, unit = _scale(analysis)
    touches = np.append(0, analysis.footprint["touches"].to_numpy())
    size = np.append(0, analysis.footprint["bytes"].to_numpy() / scale)
    axes.plot(touches, size, color=EXACT, linewidth=1.8)
    axes.fill_between(touches, size, color=EXACT, alpha=0.12, linewidth=0)
    axes.set(title="Footprint", xlabel="touches", ylabel=f"memory touched so far ({unit})")
    axes.set_xlim(0, analysis.touches)
    axes.set_ylim(bottom=0)
    axes.xaxis.set_major_locator(MaxNLocator(6, integer=True))
    axes.xaxis.set_major_formatter(EngFormatter())


def _scale(analysis: Analysis) -> tuple[int, str]:
    return (GiB, "GiB") if analysis.distinct * analysis.unit_bytes >= GiB else (MiB, "MiB")


def _short(size: int) -> str:
    """Return a size without trailing zeros: bucket edges are powers of two.

    >>> _short(65536), _short(0)
    ('64 KiB', '0 B')
    """
    number, unit = show_size(size).split()
    return f"{float(number):g} {unit}"
