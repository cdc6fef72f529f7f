"""Run: what happened. Figures, a timeline, tables by launch and by object, and a picture.

Time is the sum of its named parts. A moment in which any slot runs is compute or remote access
(split by what the slots did); a moment in which all wait belongs to the driver, split by what its
turn consisted of.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from tidegate import units
from tidegate.errors import TidegateError
from tidegate.simulation.gpu.memory import TIMELINE_COLUMNS
from tidegate.simulation.gpu.simulation import Simulation

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PARTS = (
    "compute",
    "fault_handling",
    "transfer_in",
    "transfer_out",
    "remote_access",
    "policy_overhead",
)


@dataclass(frozen=True, repr=False)
class Run:
    """The outcome of one simulation. ``key`` names it; ``inputs`` says what it was made from.

    >>> import tidegate
    >>> r = tidegate.run("cyclic(bytes=64MiB)", near="48MiB", eviction="mru")
    >>> abs(r.time - sum(r.parts.values())) < 1
    True
    """

    key: str
    inputs: dict[str, Any]
    facts: dict[str, Any]  # name, policies, sizes, as people want to read them
    counts: dict[str, int]
    parts: dict[str, float]  # ns; they add up to ``time``
    # ns: driver and both directions of the link, whether or not anybody waited
    busy: dict[str, float]
    tables: dict[str, dict[str, list[Any]]]  # timeline, launches, objects: columns
    notes: list[str]

    def __repr__(self) -> str:
        """One line; all of it would fill a prompt's screen."""
        f = self.facts
        how = (
            f["tiering"]
            if "tiering" in f
            else f"{f['eviction']} + {f['prefetch']} + {f['placement']}"
        )
        sizes = f"{units.show_size(f['footprint_bytes'])} in {units.show_size(f['near_bytes'])}"
        return f"<Run of {f['workload']}, {sizes}, {how}: {units.show_duration(self.time)}>"

    @property
    def time(self) -> float:
        """How long the program took, in ns."""
        return sum(self.parts.values())

    @cached_property
    def summary(self) -> dict[str, Any]:
        """All figures in one flat dictionary: bytes, counts, times in ns."""
        page = self.facts["page_bytes"]
        c = self.counts
        return {
            **{k: v for k, v in self.facts.items() if k != "policy_report"},
            "time_ns": self.time,
            **{f"{part}_ns": ns for part, ns in self.parts.items()},
            **c,
            "bytes_in": (c["pages_in"] + c["pages_home"]) * page,
            "bytes_out": (c["pages_written_back"] + c["pages_sampled"]) * page,
            **{f"{what}_busy_ns": ns for what, ns in self.busy.items()},
        }

    @cached_property
    def timeline(self) -> pl.DataFrame:
        """Counters over time, a row per driver's turn (or per few, when there are many turns).

        ``time`` is in ns.
        """
        if "timeline" not in self.tables:
            raise TidegateError(
                "a run over three tiers keeps no timeline; run.launches has each launch"
            )
        return pl.DataFrame(self.tables["timeline"])

    @cached_property
    def launches(self) -> pl.DataFrame:
        """Each launch: name, start and end in ns, touches, faults, evictions."""
        return pl.DataFrame(self.tables["launches"])

    @cached_property
    def objects(self) -> pl.DataFrame:
        """Each object: bytes, faults, evictions of its regions, pages migrated, pages near at the
        end.
        """
        return pl.DataFrame(self.tables["objects"])

    def plot(self, path: str | Path | None = None) -> Figure:
        """A picture of the run: faults, evictions and traffic over time, and the parts of time."""
        from tidegate.experiments import plots, tier_plots
        from tidegate.figures import save_figure

        figure = tier_plots.plot_run(self) if "tiering" in self.facts else plots.plot_run(self)
        if path is not None:
            save_figure(
                figure, Path(path), title=f"{self.facts['workload']}: {self.facts['eviction']}"
            )
        return figure

    def _repr_html_(self) -> str:
        from tidegate.experiments.plots import summary_html

        return summary_html(self)

    def to_json(self) -> dict[str, Any]:
        """Everything, as plain data."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Run:
        return cls(**data)


def describe_run(
    simulation: Simulation,
    key: str,
    inputs: dict[str, Any],
    facts: dict[str, Any],
    notes: list[str],
) -> Run:
    """Put a finished simulation's books into a Run."""
    b = simulation.books[0]
    # running time beside launches is split by what the slots spent theirs on
    near_time = max(0.0, float(b["near_time"]))
    remote_time = float(b["remote_time"])
    share = remote_time / ((near_time + remote_time) or 1.0)
    remote = float(b["running"] - b["launching"]) * share
    parts = {
        "compute": float(b["running"]) - remote,
        "fault_handling": float(b["fault_handling"]),
        "transfer_in": float(b["transfer_in"]),
        "transfer_out": float(b["transfer_out"]),
        "remote_access": remote,
        "policy_overhead": float(b["policy_overhead"]),
    }
    counted = (
        "touches",
        "faults",
        "raw_faults",
        "batches",
        "evictions",
        "decisions",
        "pages_in",
        "pages_prefetched",
        "pages_unused",
        "pages_evicted",
        "pages_written_back",
        "remote_touches",
        "remote_bytes",
        "frames_peak",
        "observations",
        "notifications",
        "pages_sampled",
        "pages_home",
    )
    counts = {name: int(b[name]) for name in counted}
    counts["hits"] = int(b["touches"] - b["stalls"] - b["remote_touches"])
    return Run(
        key=key,
        inputs=inputs,
        facts=facts,
        counts=counts,
        parts=parts,
        busy={name: float(b[f"{name}_time"]) for name in ("driver", "link_in", "link_out")},
        tables={
            "timeline": _timeline(simulation),
            "launches": _launches(simulation),
            "objects": _objects(simulation),
        },
        notes=notes,
    )


def _timeline(simulation: Simulation) -> dict[str, list[Any]]:
    rows = simulation.memory.timeline[: simulation.books[0]["timeline_n"]]
    whole = {name: rows[:, i] for i, name in enumerate(TIMELINE_COLUMNS)}
    return {
        name: (v if name in ("time", "running") else v.astype(np.int64)).tolist()
        for name, v in whole.items()
    }


def _launches(simulation: Simulation) -> dict[str, list[Any]]:
    names = ("name", "start", "end", "touches", "faults", "evictions")
    return {name: [getattr(r, name) for r in simulation.launches] for name in names}


def _objects(simulation: Simulation) -> dict[str, list[Any]]:
    m, ppr = simulation.memory, simulation.trace.geometry.pages_per_region
    table: dict[str, list[Any]] = {
        n: [] for n in ("name", "bytes", "faults", "evictions", "pages_in", "pages_near")
    }
    for o in simulation.trace.objects:
        own = slice(o.first_page // ppr, -(-(o.first_page + o.pages) // ppr))
        table["name"].append(o.name)
        table["bytes"].append(o.bytes)
        for column, array in (
            ("faults", m.region_faults),
            ("evictions", m.region_evictions),
            ("pages_in", m.region_pages_in),
            ("pages_near", m.resident),
        ):
            table[column].append(int(array[own].sum()))
    return table
