"""The region graph as a picture: launches from top to bottom, their objects beside them, and what follows what."""

from __future__ import annotations

from matplotlib.figure import Figure

from tidegate.compiler.model import ProgramModel
from tidegate.compiler.plan import launch_names
from tidegate.figures import COLOURS

_LEAST_SHOWN = 0.005  # less likely steps are errors' ways out


def draw_regions(model: ProgramModel) -> Figure:
    """Steps down are drawn on the left and steps back on the right; a line is as wide as its step is likely."""
    figure = Figure(figsize=(8, 1.1 * len(model.launches) + 0.8), layout="constrained")
    axes = figure.subplots()
    names = launch_names(model)
    for n, (name, launch) in enumerate(zip(names, model.launches, strict=True)):
        box = {"boxstyle": "round", "facecolor": "white", "edgecolor": COLOURS[0]}
        axes.text(0, -n, f"{name}\n× {launch.frequency:.3g}", ha="center", va="center", fontsize=8, bbox=box)
        ranked = sorted(launch.uses, key=lambda use: -model.global_locality(use.object))
        axes.text(1.3, -n, ", ".join(use.object for use in ranked), va="center", fontsize=7, color=COLOURS[3], wrap=True)
    for i, steps in enumerate(model.next_launches):
        for j, likely in enumerate(steps):
            if likely >= _LEAST_SHOWN:
                side = -0.35 if j > i else 0.35
                bend = 0.0 if j == i + 1 else 0.5
                arrow = {"arrowstyle": "->", "lw": 0.5 + 1.5 * likely, "connectionstyle": f"arc3,rad={bend}", "shrinkB": 4}
                start, end = (side, -i - 0.2), (side, -j + (0.2 if j > i else -0.3 if j < i else 0.2))
                axes.annotate("", xy=end, xytext=start, arrowprops=arrow)
                axes.text(side * 2.2, -(i + j) / 2, f"{likely:.0%}", fontsize=7, ha="center", va="center")
    axes.set(xlim=(-1.2, 4), ylim=(-len(names) + 0.4, 0.6), title=model.source)
    axes.set_axis_off()
    return figure
