"""A picture of the region graph: launches from top to bottom, their objects beside them, and arrows
to the launches that may follow.
"""

from __future__ import annotations

from typing import Any

from matplotlib.figure import Figure

from tidegate.compiler.model import ProgramModel
from tidegate.compiler.plan.schedule import launch_names
from tidegate.display.figures import COLOURS

_LEAST_SHOWN = 0.005  # less likely steps are exits after errors
_ROOM = 1.0  # to the right of a box, for steps back


def draw_regions(model: ProgramModel) -> Figure:
    """Return the figure. Steps back bend to the right, steps over launches to the left; wide lines
    are likely steps.
    """
    figure = Figure(figsize=(8, 1.1 * len(model.launches) + 0.8), layout="constrained")
    axes = figure.subplots()
    names = launch_names(model)
    objects_at = _ROOM + 0.1 * len(names) + 0.3
    boxes = []
    for n, (name, launch) in enumerate(zip(names, model.launches, strict=True)):
        box = {"boxstyle": "round", "facecolor": "white", "edgecolor": COLOURS[0]}
        style: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": 8, "bbox": box}
        boxes.append(axes.text(0, -n, f"{name}\n× {launch.frequency:.3g}", **style))
        ranked = sorted(launch.uses, key=lambda use: -model.global_locality(use.object))
        objects = ", ".join(use.object for use in ranked)
        axes.text(objects_at, -n, objects, va="center", fontsize=7, color=COLOURS[3])
    for i, steps in enumerate(model.next_launches):
        for j, likely in enumerate(steps):
            if likely >= _LEAST_SHOWN:
                _arrow(axes, boxes, i, j, likely)
    axes.set(xlim=(-1.2, objects_at + 2.6), ylim=(-len(names) + 0.4, 0.6), title=model.source)
    axes.set_axis_off()
    return figure


def _arrow(axes: Any, boxes: list[Any], i: int, j: int, likely: float) -> None:
    """Draw an arrow from box i to box j, with its probability beside it."""
    label = {"fontsize": 7, "va": "center"}
    if i == j:
        axes.text(_ROOM / 2, -i, f"again {likely:.0%}", ha="left", **label)
        return
    far = abs(j - i)
    # how far the line would bend if it were a corner
    out = 0.0 if j == i + 1 else (_ROOM + 0.2 * far) * (1 if j < i else -1)
    how = {
        "arrowstyle": "->",
        "lw": 0.5 + 1.5 * likely,
        "connectionstyle": f"arc3,rad={abs(out) / far}",
    }
    patches = {"patchA": boxes[i].get_bbox_patch(), "patchB": boxes[j].get_bbox_patch()}
    axes.annotate("", xy=(0, -j), xytext=(0, -i), arrowprops=how | patches)
    beside, side = (0.05, "left") if out >= 0 else (-0.05, "right")
    axes.text(out / 2 + beside, -(i + j) / 2, f"{likely:.0%}", ha=side, **label)
