"""Pictures of runs over three tiers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.figure import Figure

from tidegate import units
from tidegate.experiments.plots import line_style
from tidegate.experiments.runs import Run

if TYPE_CHECKING:
    from tidegate.experiments.tier_race import TierRace

_PARTS = {
    "compute": "#009E73",
    "fault_handling": "#D55E00",
    "transfer_in": "#0072B2",
    "transfer_out": "#56B4E9",
    "storage_read": "#E69F00",
    "storage_write": "#8c8c8c",
}


def plot_run(run: Run) -> Figure:
    """The parts of time, and where touches were served."""
    return _plot([run], [str(run.facts["tiering"])], _title([run]))


def plot_race(race: TierRace) -> Figure:
    """The same for every placement, at the middle size; and time over size where there are several."""
    near = race.sizes[len(race.sizes) // 2]
    runs = [race.run(policy, near) for policy in race.policies]
    figure = _plot(runs, race.policies, _title(runs), len(race.sizes) > 1)
    if len(race.sizes) > 1:
        _over_size(figure.axes[-1], race)
    return figure


def _plot(runs: Sequence[Run], labels: Sequence[str], title: str, third: bool = False) -> Figure:
    figure = Figure(figsize=(11 + 4 * third, 0.42 * len(runs) + 2.0), layout="constrained")
    panels = figure.subplots(1, 2 + third)
    scale = units.S if max(r.time for r in runs) >= units.S else units.MS
    _stack(
        panels[0],
        runs,
        labels,
        {part: [r.parts[part] / scale for r in runs] for part in _PARTS},
        _PARTS,
    )
    panels[0].set(xlabel=f"time ({'s' if scale == units.S else 'ms'})")
    page = runs[0].facts["page_bytes"] / units.GiB
    moved = {
        "found in the middle": [r.counts["middle_hits"] * page for r in runs],
        "read from the SSD": [r.counts["far_reads"] * page for r in runs],
        "written to the SSD": [r.counts["far_writes"] * page for r in runs],
    }
    colours = dict(zip(moved, ("#0072B2", "#E69F00", "#8c8c8c"), strict=True))
    _stack(panels[1], runs, labels, moved, colours)
    panels[1].set(xlabel="GiB")
    panels[1].set_yticks(range(len(runs)), [""] * len(runs))
    for axes in panels[:2]:
        axes.legend(
            loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3, frameon=False, fontsize=8
        )
    figure.suptitle(title, fontsize=10)
    return figure


def _stack(
    axes: Any,
    runs: Sequence[Run],
    labels: Sequence[str],
    values: dict[str, list[float]],
    colours: Any,
) -> None:
    rows, left = np.arange(len(runs)), np.zeros(len(runs))
    for name, widths in values.items():
        if any(widths):
            axes.barh(rows, widths, left=left, color=colours[name], label=name.replace("_", " "))
            left += np.array(widths)
    axes.set_yticks(rows, list(labels))
    axes.invert_yaxis()


def _over_size(axes: Any, race: TierRace) -> None:
    scale, unit = (units.S, "s") if max(r.time for r in race.runs) >= units.S else (units.MS, "ms")
    for i, policy in enumerate(race.policies):
        times = [race.run(policy, near).time / scale for near in race.sizes]
        axes.plot(
            [n / units.MiB for n in race.sizes],
            times,
            label=policy,
            **line_style(i, policy == "tier-belady"),
        )
    axes.set_xticks([n / units.MiB for n in race.sizes])
    axes.set(xlabel="near memory (MiB)", ylabel=f"time ({unit})", ylim=(0, None))
    axes.legend(fontsize=8, frameon=False)


def _title(runs: Sequence[Run]) -> str:
    f = max(runs, key=lambda r: r.facts["middle_bytes"]).facts  # two tiers have none
    return (
        f"{f['workload']}: {units.show_size(f['footprint_bytes'])} over {units.show_size(f['near_bytes'])} near and "
        f"{units.show_size(f['middle_bytes'])} middle · {f['eviction']} · {f['machine']}"
    )
