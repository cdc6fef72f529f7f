"""Why? The tensors or arrays that cost most under the plain driver, with the story of each."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tidegate import units
from tidegate.experiments.runs import Run
from tidegate.machine.machine import Machine
from tidegate.policies.interface.forecast import Forecast

MOST = 5


@dataclass(frozen=True)
class Cause:
    """One object: its share of the time that the driver and the link took, and why."""

    name: str
    bytes: int
    cost: float  # ns, of the driver and both directions of the link
    launches: int  # that use it
    faults: int
    moved_in: int  # bytes
    evictions: int
    written: bool  # whether a launch writes it

    @property
    def times_moved(self) -> float:
        return self.moved_in / self.bytes

    def story(self) -> str:
        """Return what happened to it, in one sentence."""
        size = units.show_size(self.bytes)
        used = f"{size}, used by {units.counted(self.launches, 'launch')}"
        moved = f"moved in {self.times_moved:.1f} times by {self.faults:,} faults"
        vain = ""
        if self.evictions and not self.written:
            vain = "; it is only read, so each copy out was in vain"
        elif self.times_moved > self.launches:
            vain = "; more often than it was used, so part of it left before its use"
        return f"{used}; {moved}, evicted in {self.evictions:,} regions{vain}"


def find_causes(run: Run, forecast: Forecast, machine: Machine) -> list[Cause]:
    """Return the objects that cost most in a run, the costliest first."""
    page, region = run.facts["page_bytes"], run.facts["region_bytes"]
    uses = _launches_by_object(forecast, len(run.tables["objects"]["name"]))
    written = np.zeros(len(uses), np.bool_)
    written[forecast.object[forecast.ever_written]] = True
    per_fault = run.busy["driver"] - run.busy["link_in"] - run.busy["link_out"]
    per_fault = max(0.0, per_fault) / max(1, run.counts["faults"])
    causes = []
    for number, row in enumerate(run.objects.iter_rows(named=True)):
        moved_in = row["pages_in"] * page
        cost = (
            moved_in / machine.link.inward
            + row["evictions"] * region / machine.link.outward
            + row["faults"] * per_fault
        )
        if cost:
            causes.append(
                Cause(
                    row["name"],
                    row["bytes"],
                    cost,
                    int(uses[number]),
                    row["faults"],
                    moved_in,
                    row["evictions"],
                    bool(written[number]),
                )
            )
    return sorted(causes, key=lambda cause: -cause.cost)[:MOST]


def _launches_by_object(f: Forecast, objects: int) -> np.ndarray:
    """Return by how many launches each object is used."""
    pairs = np.unique(f.launch * objects + f.object[f.piece])
    return np.bincount(pairs % objects, minlength=objects)
