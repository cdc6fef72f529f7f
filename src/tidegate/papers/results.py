"""Results: the runs of a grid by application and system, their ratios, and the findings on them.

    grid: (application, system, group) → run ──▶ Groups: group → Results ──▶ measures ──▶ findings

A group is a part of the grid that is looked at by itself: a level, a size, the runs of a figure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import polars as pl

from tidegate.experiments.runs import Run
from tidegate.papers.comparisons import compare_runs
from tidegate.papers.ledger import Claims, Finding

Key = tuple[Any, str, str]  # application (a name, or a tuple that names it), system, group


class NotRun(Exception):
    """A result that a finding or a figure needs was not run."""


@dataclass(frozen=True)
class Results:
    """Runs by (application, system)."""

    runs: Mapping[tuple[Any, str], Run]

    @cached_property
    def applications(self) -> list[Any]:
        return list(dict.fromkeys(application for application, _ in self.runs))

    @cached_property
    def systems(self) -> list[str]:
        return list(dict.fromkeys(system for _, system in self.runs))

    def run(self, application: Any, system: str) -> Run:
        found = self.runs.get((application, system))
        if found is None:
            raise NotRun(f"{application} was not run under {system}")
        return found

    def ratio(self, application: Any, system: str, base: str, what: str = "time") -> float:
        """Return time, or a count, under ``system`` over that under ``base``.

        A count of 0 is taken for 1, so that means exist.
        """
        top, bottom = (measure(self.run(application, s), what) for s in (system, base))
        return top / bottom if what == "time" else max(top, 1) / max(bottom, 1)

    def ratios(
        self, system: str, base: str, what: str = "time", among: Iterable[Any] = ()
    ) -> dict[Any, float]:
        """Return the ratio of every application, or of those ``among``, that was run under both."""
        wanted = list(among) or self.applications
        both = [a for a in wanted if (a, system) in self.runs and (a, base) in self.runs]
        if not both:
            named = ", ".join(map(str, among)) or "no application"
            raise NotRun(f"{named} was not run under both {system} and {base}")
        return {a: self.ratio(a, system, base, what) for a in both}

    def table(self, systems: Iterable[str], base: str, what: str = "time") -> pl.DataFrame:
        """Return a row per application: the value of ``base`` and each system's ratio to it.

        Cells of what was not run are empty.
        """
        rows: list[dict[str, Any]] = []
        for a in self.applications:
            if (a, base) in self.runs:
                absolute = measure(self.run(a, base), what)
                shown = absolute / 1e9 if what == "time" else int(absolute)
                row = {"application": a, f"{what} of {base}": shown}
                rows.append(row | self.row(a, systems, lambda a, s: self.ratio(a, s, base, what)))
        return pl.DataFrame(rows, infer_schema_length=None)

    def row(
        self, application: Any, systems: Iterable[str], value: Callable[[Any, str], Any]
    ) -> dict[str, Any]:
        """Return a value by system; None for those that were not run."""
        return {
            s: value(application, s) if (application, s) in self.runs else None for s in systems
        }

    def because(self, application: Any, system: str, base: str) -> str:
        """Return how the run under ``system`` differs from that under ``base``."""
        one, other = self.run(application, system), self.run(application, base)
        return f"{application}: {compare_runs(one, system, other, base)}"

    @property
    def notes(self) -> list[str]:
        """The notes of all runs, each once."""
        return list(dict.fromkeys(note for run in self.runs.values() for note in run.notes))


def measure(run: Run, what: str) -> float:
    """Return time in ns, or one of the run's counts."""
    return run.time if what == "time" else float(run.counts[what])


class Groups(dict[str, Results]):
    """Results by group. A group that was not run raises ``NotRun`` when it is looked up."""

    @classmethod
    def from_runs(cls, runs: Mapping[Key, Any]) -> Groups:
        """Sort the results of a grid by group; the order of the grid is kept."""
        sorted_: dict[str, dict[tuple[Any, str], Any]] = {}
        for (application, system, group), run in runs.items():
            sorted_.setdefault(group, {})[application, system] = run
        return cls({group: Results(own) for group, own in sorted_.items()})

    def __missing__(self, group: str) -> Results:
        raise NotRun(f"nothing was run for {group}")

    @property
    def first(self) -> Results:
        """The first group, or none."""
        return next(iter(self.values()), Results({}))


@dataclass(frozen=True)
class Measure:
    """How one part of a claim is measured: ``make(claim, results, *given, **named)``.

    With a group, ``results`` are that group's.
    """

    claim: str
    part: str
    make: Callable[..., Finding]
    given: tuple[Any, ...]
    group: str
    named: Mapping[str, Any]


def part(
    claim: str, part: str, make: Callable[..., Finding], *given: Any, group: str = "", **named: Any
) -> Measure:
    """Return the measure of one part of a claim; a claim that says one thing has the part ""."""
    return Measure(claim, part, make, given, group, named)


def find(claims: Claims, measures: Iterable[Measure], results: Any) -> list[Finding]:
    """Return the finding of every measure; one whose runs are missing is not measured."""
    found = []
    for m in measures:
        claim = claims[m.claim].for_part(m.part)
        try:
            own = results[m.group] if m.group else results
            found.append(m.make(claim, own, *m.given, **m.named))
        except NotRun as missing:
            found.append(claim.unmeasured(str(missing)))
    return found
