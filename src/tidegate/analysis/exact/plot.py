"""The figure of an analysis by access sites: reuse intervals, and shares of memory and hits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator
from matplotlib.transforms import ScaledTranslation

from tidegate.display.figures import COLOURS
from tidegate.units import show_count, show_size

if TYPE_CHECKING:
    from tidegate.analysis.exact.access_sites import AccessSiteAnalysis, AccessSiteWorth

MOST = 8  # sites that are drawn: those with the most hits
_BELOW = 0.45  # inches for the labels of an axis


def figure(found: AccessSiteAnalysis) -> Figure:
    """Return the figure. Left: the share of reuses within an interval. Right: shares of touches,
    memory and hits.
    """
    shown = found.sites[:MOST]
    fig = Figure(figsize=(12, 0.5 * len(shown) + 3.5), layout="constrained")
    waits, shares = fig.subplots(1, 2)
    for i, one in enumerate(shown):
        _draw_waits(waits, one, COLOURS[i % len(COLOURS)])
    waits.set_xscale("log", base=2)
    waits.xaxis.set_major_formatter(lambda interval, _: show_count(round(interval)))
    waits.xaxis.set_minor_locator(NullLocator())
    waits.set(
        xlabel=f"reuse interval (touches of other {found.unit}s)",
        ylabel="share of the access site's touches",
        ylim=(0, 1.03),
    )
    waits.set_title("How long data wait for the next use; ○ best lease", fontsize=10)
    _legend_below(fig, waits, 2)
    _draw_shares(shares, shown)
    _legend_below(fig, shares, 3)
    for axes in (waits, shares):
        axes.spines[["top", "right"]].set_visible(False)
    left_out = len(found.sites) - len(shown)
    more = f"; {left_out} with fewer hits are not drawn" if left_out else ""
    near = show_size(found.capacity * found.unit_bytes)
    title = f"{found.name}: which access sites deserve memory, with {near} under LEU{more}"
    fig.suptitle(title, fontsize=11)
    return fig


def _draw_waits(axes: Axes, one: AccessSiteWorth, colour: str) -> None:
    label = f"{one.site}: {one.object}" + ("" if len(one.intervals) else ", never reused")
    interval, counts = np.unique(one.intervals, return_counts=True)
    share = np.cumsum(counts) / one.touches
    # the step begins at 0: a site with one interval would otherwise be an invisible point
    x, y = np.append(interval[:1], interval), np.append(np.zeros(len(interval[:1])), share)
    axes.step(x, y, where="post", color=colour, linewidth=1.6, label=label)
    if one.lease is not None:
        style: dict[str, Any] = {"color": colour, "markerfacecolor": "none", "markersize": 8}
        axes.plot([one.lease], [one.lease_hits], "o", **style)


def _draw_shares(axes: Axes, shown: tuple[AccessSiteWorth, ...]) -> None:
    at = np.arange(len(shown))
    every = sum(r.touches for r in shown)
    bars = {
        "touches": [r.touches / every for r in shown],
        "memory": [r.memory for r in shown],
        "hits": [r.hits for r in shown],
    }
    for i, (name, colour) in enumerate(zip(bars, (6, 1, 0), strict=True)):
        axes.barh(at + (i - 1) * 0.26, bars[name], 0.24, label=name, color=COLOURS[colour])
    axes.set_yticks(at, [f"{r.site}: {r.object}" for r in shown], fontsize=8)
    axes.invert_yaxis()
    axes.set(xlabel="share")
    axes.xaxis.set_major_formatter(lambda share, _: f"{share:.0%}")
    axes.set_title("What it takes and what it brings", fontsize=10)


def _legend_below(fig: Figure, axes: Axes, columns: int) -> None:
    """Put the legend below the axis's labels, where it covers neither curve nor bar."""
    below = axes.transAxes + ScaledTranslation(0, -_BELOW, fig.dpi_scale_trans)
    axes.legend(
        frameon=False,
        fontsize=8,
        ncols=columns,
        loc="upper center",
        bbox_to_anchor=(0.5, 0),
        bbox_transform=below,
    )
