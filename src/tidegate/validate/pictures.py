"""Pictures: simulated over measured values of all cards, and one program on a card and here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tidegate.display.figures import COLOURS
from tidegate.validate.ledger import Validation
from tidegate.validate.nsight import Beside, Copies
from tidegate.validate.points import Quantity, Role

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_GIB, _MS = 1 << 30, 1e6
_MARKS = {Role.TEST: "o", Role.FITTED: "x", Role.READ_OFF: "+"}
_BLUE, _ORANGE, *_ = COLOURS


def draw_ledger(validation: Validation) -> Figure:
    """Draw each measured time and the simulated one, with the tolerances as bands."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.5, 6.5), layout="constrained")
    axes = figure.add_subplot()
    times = [row for row in validation.rows if row.point.quantity is Quantity.TIME]
    ends = [float(v) / _MS for row in times for v in (row.point.measured, row.simulated)]  # type: ignore[arg-type]
    line = np.array([min(ends, default=0.1) / 2, max(ends, default=10) * 2])
    axes.fill_between(line, line * 0.65, line * 1.35, color="0.92", label="± 35 %")
    axes.fill_between(line, line * 0.75, line * 1.25, color="0.84", label="± 25 %")
    axes.plot(line, line, color="0.5", linewidth=1)
    for machine, colour in zip(validation.machines, COLOURS, strict=False):
        for role, mark in _MARKS.items():
            mine = [r for r in times if r.point.source.machine == machine and r.point.role is role]
            if mine:
                axes.plot(
                    [float(r.point.measured) / _MS for r in mine],  # type: ignore[arg-type]
                    [float(r.simulated) / _MS for r in mine],  # type: ignore[arg-type]
                    mark,
                    color=colour,
                    label=f"{machine}, {role.value}",
                    markersize=7,
                    fillstyle="none",
                )
    axes.set(xscale="log", yscale="log", xlim=line, ylim=line)
    axes.set(xlabel="measured, ms", ylabel="simulated, ms")
    axes.legend(fontsize=8, loc="upper left")
    return figure


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
