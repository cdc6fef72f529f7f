"""What the page asks of a recorded run: charts, a cell, a region's story, and finer windows."""

from __future__ import annotations

from typing import Any

import numpy as np

from tidegate.errors import TidegateError
from tidegate.experiments.runs import Run
from tidegate.simulation.recorded import Recording
from tidegate.simulation.recording import ROWS, Window
from tidegate.studio.tiles import View, Whole, touches_of, whole_of

FINER_BELOW = 256  # bins in view: with fewer, a window is recorded in more detail


def charts(recording: Recording) -> dict[str, Any]:
    """Return the books of each bin, the first column of each being the beginning."""
    names = [name for name in recording.books if name != "batches"]
    return {name: [recording.before[name], *recording.books[name].tolist()] for name in names}


def objects_of(run: Run) -> list[dict[str, Any]]:
    """Return each object with its first region and its number of regions."""
    first, found = 0, []
    region = run.facts["region_bytes"]
    for name, size in zip(
        run.tables["objects"]["name"], run.tables["objects"]["bytes"], strict=True
    ):
        regions = -(-size // region)
        found.append({"name": name, "bytes": size, "first": first, "regions": regions})
        first += regions
    return found


def launches_of(run: Run) -> list[dict[str, Any]]:
    """Return each launch with the touches made before and after it."""
    table = run.tables["launches"]
    ends = np.cumsum(table["touches"]).tolist()
    return [
        {"name": name, "start": start, "end": end, "first_touch": last - n, "last_touch": last}
        for name, start, end, n, last in zip(
            table["name"], table["start"], table["end"], table["touches"], ends, strict=True
        )
    ]


def cell(
    recording: Recording, run: Run, whole: Whole, axis: str, x: float, y: float
) -> dict[str, Any]:
    """Return everything about the bin and the region at a point of the run."""
    if not (0 <= x < 1 and 0 <= y < 1):
        raise TidegateError(f"x and y must be from 0 to below 1, got {x} and {y}")
    touch = float(touches_of(recording, whole, View(x0=x, axis=axis))[0])
    at = int((touch - recording.first_touch) / recording.touches_per_bin)
    at = min(max(at, 0), recording.bins - 1)
    region = int(y * whole.regions)
    column = (region - recording.first_region) // recording.regions_per_cell
    if not 0 <= column < recording.cells:
        raise TidegateError(f"region must be within the recorded ones, got {region}")
    begin = recording.before["time"] if at == 0 else float(recording.books["time"][at - 1])
    owner = next((o for o in reversed(objects_of(run)) if o["first"] <= region), None)
    first = recording.first_touch + at * recording.touches_per_bin
    launch = next((x for x in launches_of(run) if x["last_touch"] > first), None)
    return {
        "region": region,
        "regions": recording.regions_per_cell,
        "object": owner["name"] if owner else "",
        "object_region": region - owner["first"] if owner else region,
        "first_touch": first,
        "touches_per_bin": recording.touches_per_bin,
        "start": begin,
        "end": float(recording.books["time"][at]),
        "launch": launch["name"] if launch else "",
        "pages": int(recording.pages[column]),
        **{name: int(layer[at, column]) for name, layer in recording.layers.items()},
    }


def finer_window(recording: Recording, view: View) -> Window | None:
    """Return the window to record for more detail than a whole recording has; None if it does.

    It is aligned, so that pans within it need no other recording.
    """
    whole = whole_of(recording)
    edges = touches_of(recording, whole, view)
    first, last = int(edges[0]), int(np.ceil(edges[-1]))
    grouped = recording.regions_per_cell > 1 and (view.y1 - view.y0) * whole.regions < 4096
    fine = recording.touches_per_bin == 1 or (last - first) >= (
        FINER_BELOW * recording.touches_per_bin
    )
    if fine and not grouped:
        return None
    size = max(ROWS, 1 << (max(1, last - first) - 1).bit_length() + 1)
    begin = max(0, min(first - (first % (size // 4)), whole.touches - 1))
    if not grouped:
        return Window(first_touch=begin, touches=size)
    low = int(view.y0 * whole.regions) // 4096 * 4096
    return Window(begin, size, low, min(8192, whole.regions - low))


def story(recording: Recording, run: Run) -> dict[str, Any]:
    """Return the story of the one region that was recorded, with who is behind each line."""
    policies = {
        "fault": "a touch",
        "prefetch": run.facts["prefetch"],
        "copy": run.facts["placement"],
        "sample": run.facts["eviction"],
        "victim": run.facts["eviction"],
        "request": "a policy's request",
        "death": "the program",
        "from host memory": "a touch",
        "from the SSD": "a touch",
        "to host memory": run.facts.get("tiering"),
        "to the SSD": run.facts.get("tiering"),
    }
    lines = [{**line, "by": policies[line["why"]]} for line in recording.story]
    return {
        "region": recording.first_region,
        "lines": lines,
        "all_lines": recording.story_lines,
        "touches": int(recording.layers["touches"].sum()),
    }
