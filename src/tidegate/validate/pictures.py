"""Pictures: simulated over measured values of all cards, and one program on a card and here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tidegate.display.figures import COLOURS
from tidegate.units import duration
from tidegate.validate.nsight import Beside, Copies
from tidegate.validate.points import Quantity, Role

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_GIB, _MS = 1 << 30, 1e6
_MARKS = {Role.TEST: "o", Role.FITTED: "x", Role.READ_OFF: "+"}
_BLUE, _ORANGE, *_ = COLOURS


def draw_ledger(rows: Sequence[Mapping[str, Any]]) -> Figure:
    """Draw each measured time and the simulated one, with the tolerances as bands.

    ``rows``: as ``Row.to_json`` makes them, or as the saved ledger has them.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.5, 6.5), layout="constrained")
    axes = figure.add_subplot()
    points = [_point(row) for row in rows if row["quantity"] == Quantity.TIME]
    values = [value for point in points for value in point[2:]] or [1.0]
    line = np.array([min(values) / 2, max(values) * 2])
    axes.fill_between(line, line * 0.65, line * 1.35, color="0.92", label="± 35 %")
    axes.fill_between(line, line * 0.75, line * 1.25, color="0.84", label="± 25 %")
    axes.plot(line, line, color="0.5", linewidth=1)
    colours = dict(zip(sorted({point[0] for point in points}), COLOURS, strict=False))
    for machine, role in sorted({point[:2] for point in points}):
        measured, simulated = zip(*(p[2:] for p in points if p[:2] == (machine, role)), strict=True)
        label, mark = f"{machine}, {role}", _MARKS[Role(role)]
        axes.plot(measured, simulated, mark, color=colours[machine], label=label, fillstyle="none")
    axes.set(xscale="log", yscale="log", xlim=line, ylim=line)
    axes.set(xlabel="measured, ms", ylabel="simulated, ms")
    axes.legend(fontsize=8, loc="upper left")
    return figure


def _point(row: Mapping[str, Any]) -> tuple[str, str, float, float]:
    """Return a row's machine and role, and its measured and simulated times in ms."""
    measured = duration(row["measured"]) / _MS
    return row["machine"], row["role"], measured, measured * float(row["ratio"])


def draw_beside(beside: Beside) -> Figure:
    """Draw where and when a card copied, where and when we do, and the bytes that add up."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 7), layout="constrained")
    grid = figure.add_gridspec(2, 2, height_ratios=(3, 2))
    left = figure.add_subplot(grid[0, 0])
    right = figure.add_subplot(grid[0, 1], sharex=left, sharey=left)
    below = figure.add_subplot(grid[1, :], sharex=left)
    sides = ((left, beside.card, "the card", "-"), (right, beside.ours, "simulated", "--"))
    for axes, copies, title, line in sides:
        _draw_places(axes, copies, title)
        for inward, colour in ((True, _BLUE), (False, _ORANGE)):
            mine = copies.inward == inward
            way = "in" if inward else "out"
            moved = np.cumsum(copies.bytes[mine]) / _GIB
            if len(moved):
                label = f"{title}, {way}"
                below.plot(copies.end[mine] / _MS, moved, line, color=colour, label=label)
    left.set_ylabel("place in managed memory, GiB")
    below.set(xlabel="ms from the first copy or kernel", ylabel="copied, GiB")
    below.legend(fontsize=8)
    return figure


def _draw_places(axes: Any, copies: Copies, title: str) -> None:
    for inward, colour in ((True, _BLUE), (False, _ORANGE)):
        mine = copies.inward == inward
        label = "in" if inward else "out"
        place = copies.place[mine] / _GIB
        axes.plot(copies.end[mine] / _MS, place, ".", color=colour, markersize=2, label=label)
    axes.set_title(title)
    axes.legend(fontsize=8, markerscale=4)
