"""The outcome of a run: counts, times, a timeline, tables by launch and by object, and a picture.

Time is the sum of its named parts. While any slot runs, time is compute or remote access (split by
what the slots did). While all slots wait, time is the driver's (split by what its turn did).
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from tidegate import units

if TYPE_CHECKING:
    from matplotlib.figure import Figure


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
    facts: dict[str, Any]  # name, policies, sizes
    counts: dict[str, int]
    parts: dict[str, float]  # ns; they add up to ``time``
    busy: dict[str, float]  # ns: driver and both directions of the link, even if no slot waited
    tables: dict[str, dict[str, list[Any]]]  # timeline, launches, objects: columns
    notes: list[str]
    from_store: bool = field(default=False, compare=False)

    def __repr__(self) -> str:
        f = self.facts
        how = f.get("tiering", f"{f['eviction']} + {f['prefetch']} + {f['placement']}")
        sizes = f"{units.show_size(f['footprint_bytes'])} in {units.show_size(f['near_bytes'])}"
        stored = ", from the store" if self.from_store else ""
        return f"<Run of {f['workload']}, {sizes}, {how}: {units.show_duration(self.time)}{stored}>"

    @property
    def time(self) -> float:
        """Time that the program took, in ns."""
        return sum(self.parts.values())

    @cached_property
    def summary(self) -> dict[str, Any]:
        """All figures in one flat dictionary: bytes, counts, times in ns."""
        page = self.facts["page_bytes"]
        c = self.counts
        return {
            **{k: v for k, v in self.facts.items() if k not in ("policy_report", "decisions")},
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

        ``time`` is in ns. Over three tiers, a row every so many touches.
        """
        return pl.DataFrame(self.tables["timeline"])

    @cached_property
    def launches(self) -> pl.DataFrame:
        """Each launch: name, start and end in ns, touches, faults, evictions."""
        return pl.DataFrame(self.tables["launches"])

    @cached_property
    def objects(self) -> pl.DataFrame:
        """Each object: bytes, faults, evictions of its regions, pages migrated and left near."""
        return pl.DataFrame(self.tables["objects"])

    def plot(self, path: str | Path | None = None) -> Figure:
        """Draw the run: faults, evictions and traffic over time, and the parts of time."""
        from tidegate.display.figures import save_figure
        from tidegate.experiments.plots import plot_run

        figure = plot_run(self)
        if path is not None:
            title = f"{self.facts['workload']}: {self.facts['eviction']}"
            save_figure(figure, Path(path), title=title)
        return figure

    def _repr_html_(self) -> str:
        from tidegate.experiments.display import run_html

        return run_html(self)

    def to_json(self) -> dict[str, Any]:
        """Return everything as plain data."""
        return {f.name: getattr(self, f.name) for f in fields(self)}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Run:
        return cls(**data)
