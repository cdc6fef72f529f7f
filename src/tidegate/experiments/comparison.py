"""The outcome of a comparison: an entry for each policy, workload, machine and size."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from tidegate.errors import TidegateError
from tidegate.experiments.runs import Run

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_COUNTS = ("faults", "batches", "evictions", "pages_unused", "bytes_in", "bytes_out")
_TIER_COUNTS = ("hits", "middle_hits", "far_reads", "far_writes", "to_middle", "wasted_lookups")


@dataclass(frozen=True)
class Entry:
    """One place in a comparison: a policy (or system) on a workload and a machine, at one size.

    It has a ``run``, or ``failed`` says in one line why not.
    """

    workload: str
    provenance: str
    machine: str
    near: int  # bytes
    footprint: int  # bytes
    policy: str  # its label
    run: Run | None = None
    failed: str = ""


@dataclass(frozen=True, repr=False)
class Comparison:
    """The runs of a comparison: workload by workload, policies in the order given.

    ``parts``: a comparison for each workload and machine. Policies that failed have entries, too.
    """

    entries: list[Entry]
    compared: str  # eviction, system or tiering

    def __repr__(self) -> str:
        from tidegate.experiments.display import comparison_text

        return comparison_text(self)

    def _repr_html_(self) -> str:
        from tidegate.experiments.display import comparison_html

        return comparison_html(self)

    @property
    def runs(self) -> list[Run]:
        """The runs that did not fail."""
        return [e.run for e in self.entries if e.run is not None]

    @property
    def failures(self) -> list[Entry]:
        """The entries without a run."""
        return [e for e in self.entries if e.run is None]

    @property
    def policies(self) -> list[str]:
        return list(dict.fromkeys(e.policy for e in self.entries))

    @property
    def workloads(self) -> list[str]:
        return list(dict.fromkeys(e.workload for e in self.entries))

    @property
    def sizes(self) -> list[int]:
        """Near memory, in bytes, from the largest."""
        return sorted({e.near for e in self.entries}, reverse=True)

    @cached_property
    def parts(self) -> list[Comparison]:
        """A comparison for each workload and machine."""
        found: dict[tuple[str, str], list[Entry]] = {}
        for e in self.entries:
            found.setdefault((e.workload, e.machine), []).append(e)
        return [Comparison(entries, self.compared) for entries in found.values()]

    @property
    def others(self) -> str:
        """The policies that are not compared, for titles; nothing for systems."""
        facts = [r.facts for r in self.runs]
        if self.compared == "tiering":
            return f"victims by {facts[0]['eviction']} · " if facts else ""
        names = " and ".join(dict.fromkeys(str(f["prefetch"]) for f in facts))
        return "" if self.compared == "system" or not names else f"{names} prefetch · "

    def entry(self, policy: str, near: int) -> Entry:
        """Return the entry of one policy at one size, of a comparison on one workload."""
        if len(self.parts) > 1:
            raise TidegateError(
                "this comparison has several workloads or machines; take one of its parts, "
                "such as comparison.parts[0]"
            )
        for e in self.entries:
            if (e.policy, e.near) == (policy, near):
                return e
        sizes = ", ".join(map(str, self.sizes))
        raise TidegateError(
            f"the comparison has {', '.join(self.policies)} with {sizes} bytes, "
            f"got {policy} with {near}"
        )

    def run(self, policy: str, near: int) -> Run:
        """Return the run of one policy at one size. Raise an error if it failed."""
        entry = self.entry(policy, near)
        if entry.run is None:
            raise TidegateError(f"{policy} failed: {entry.failed}")
        return entry.run

    @cached_property
    def table(self) -> pl.DataFrame:
        """A row per run. ``speedup`` is against the first policy on the same workload and machine,
        at the same size. The row of a run that failed says why in ``failed``, and has no figures.
        """
        rows = [self._row(e, part) for part in self.parts for e in part._by_size()]
        columns = max(rows, key=len)  # those of failed runs are fewer
        ordered = [{name: row.get(name) for name in columns} for row in rows]
        return pl.DataFrame(ordered, infer_schema_length=None)

    def _by_size(self) -> list[Entry]:
        return [self.entry(p, near) for near in self.sizes for p in self.policies]

    def _row(self, e: Entry, part: Comparison) -> dict[str, Any]:
        tiered = self.compared == "tiering"
        r, first = e.run, part.entry(part.policies[0], e.near).run
        row = {"workload": e.workload, "machine": e.machine, "near_bytes": e.near}
        if not tiered:
            row["oversubscription"] = e.footprint / e.near - 1
        row |= {"policy": e.policy, "failed": e.failed or None}
        if r is None:
            return row
        return {
            **row,
            **({"middle_bytes": r.facts["middle_bytes"]} if tiered else {}),
            "time_ns": r.time,
            "speedup": None if first is None else first.time / r.time,
            **{name: r.summary[name] for name in (_TIER_COUNTS if tiered else _COUNTS)},
            **{f"{part}_ns": ns for part, ns in r.parts.items()},
            "run": r.key,
            "from_store": r.from_store,
        }

    def plot(self, path: str | Path | None = None) -> Figure:
        """Draw time by parts at the middle size, and time over size where there are several; a row
        of pictures for each workload.
        """
        from tidegate.display.figures import save_figure
        from tidegate.experiments.plots import plot_comparison

        figure = plot_comparison(self)
        if path is not None:
            title = f"{', '.join(self.workloads)}: {len(self.policies)} policies"
            save_figure(figure, Path(path), title=title)
        return figure
