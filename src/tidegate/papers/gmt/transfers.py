"""Figure 6: transfers between GPU and host, from the machine's constants alone."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import polars as pl
from matplotlib.figure import Figure

from tidegate.display.figures import COLOURS
from tidegate.machine import load_machine
from tidegate.papers.gmt.setup import MACHINE
from tidegate.papers.pictures import new_axes
from tidegate.papers.report import Exhibit, make_exhibit
from tidegate.simulation.tiers.transfers import Transfers, crossing, delivered

PAGES = (1, 2, 4, 6, 8, 12, 16, 32, 64, 128)
SKEWS = (1.0, 0.8, 0.6, 0.4, 0.2, 0.0)


def transfer_figures() -> Iterator[Exhibit]:
    """Yield Figures 6a and 6b."""
    t = Transfers.of(load_machine(MACHINE))
    table = pl.DataFrame([{"pages": n} | _bandwidths(t, n) for n in PAGES])
    title = "transfers of pages that lie apart"
    note = (
        f"GB/s. Zero-copy by a warp is quicker from {crossing(t)} pages on; nothing was fitted to "
        "that."
    )
    draw = partial(_lines, table, "pages")
    yield make_exhibit("gmt", "Figure 6a", title, table, draw, [note])
    skewed = pl.DataFrame([{"skew": skew, **delivered(t, skew)} for skew in SKEWS])
    title, draw = "delivered bandwidth for zipf accesses", partial(_lines, skewed, "skew")
    yield make_exhibit("gmt", "Figure 6b", title, skewed, draw, _notes_on_6b(t))


def _bandwidths(t: Transfers, n: int) -> dict[str, float]:
    """Return the bandwidth of every scheme for n pages."""
    zero_copy = {f"zero-copy {x}t": t.zero_copy(n, x) for x in (8, 16, 32)}
    times = {"dma": t.dma(n), **zero_copy, "hybrid-32t": t.hybrid(n, 32)}
    return {name: t.bandwidth(n, time) for name, time in times.items()}


def _notes_on_6b(t: Transfers) -> Iterator[str]:
    """Yield how often the paper's sentence holds. It gives neither the number of pages nor that of
    near pages or warps, so several are tried.
    """
    tried = (
        delivered(t, skew, pages=pages, near=int(share * pages), warps=warps, rounds=8)
        for pages in (1 << 10, 1 << 14)
        for share in (0, 1 / 16, 1 / 4)
        for warps in (4, 16, 64)
        for skew in SKEWS
    )
    close = [by["hybrid-32t"] >= 0.85 * max(by.values()) for by in tried if by["dma"]]
    yield (
        "GB/s, for 16,384 pages of which a quarter is near, and 16 warps: assumptions, as the "
        "paper gives none of them."
    )
    yield (
        f"Over {len(close)} combinations of 1,024 or 16,384 pages, none to a quarter near, and 4 "
        "to 64 warps Hybrid-32T is within 15 % of the best scheme in "
        f"{sum(close) / len(close):.0%}."
    )


def _lines(table: pl.DataFrame, x: str) -> Figure:
    figure, axes = new_axes(7, 3.6, xlabel=x, ylabel="GB/s")
    for i, column in enumerate(c for c in table.columns if c != x):
        axes.plot(table[x], table[column], marker="o", label=column, color=COLOURS[i])
    axes.set_ylim(0, None)
    if x == "pages":
        axes.set_xscale("log", base=2)
    else:
        axes.invert_xaxis()
    axes.legend(frameon=False, fontsize=8)
    return figure
