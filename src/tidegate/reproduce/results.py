"""Results: the runs of a grid by application and system, and their ratios."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import polars as pl

from tidegate.experiments.runs import Run


class NotRun(Exception):
    """This application was not run under this system, so what depends on it cannot be said."""


@dataclass(frozen=True)
class Results:
    """Runs by (application, system)."""

    runs: Mapping[tuple[str, str], Run]

    @cached_property
    def applications(self) -> list[str]:
        return list(dict.fromkeys(application for application, _ in self.runs))

    def run(self, application: str, system: str) -> Run:
        found = self.runs.get((application, system))
        if found is None:
            raise NotRun(f"{application} was not run under {system}")
        return found

    def ratio(self, application: str, system: str, base: str, what: str = "time") -> float:
        """Time, or a count, under ``system`` over that under ``base``.

        A count of 0 is taken for 1, so that means exist.
        """
        top, bottom = (measure(self.run(application, s), what) for s in (system, base))
        return top / bottom if what == "time" else max(top, 1) / max(bottom, 1)

    def ratios(
        self, system: str, base: str, what: str = "time", among: Iterable[str] = ()
    ) -> dict[str, float]:
        """The ratio of every application, or of those ``among``, that was run under both."""
        wanted = list(among) or self.applications
        both = [a for a in wanted if (a, system) in self.runs and (a, base) in self.runs]
        if not both:
            named = ", ".join(among) or "no application"
            raise NotRun(f"{named} was not run under both {system} and {base}")
        return {a: self.ratio(a, system, base, what) for a in both}

    def table(self, systems: Iterable[str], base: str, what: str = "time") -> pl.DataFrame:
        """A row per application: what ``base`` has, and each system's ratio to it.

        What was not run is empty.
        """
        rows: list[dict[str, Any]] = []
        for a in self.applications:
            if (a, base) not in self.runs:
                continue
            absolute = measure(self.run(a, base), what)
            row: dict[str, Any] = {
                "application": a,
                f"{what} of {base}": absolute / 1e9 if what == "time" else int(absolute),
            }
            row |= {
                s: self.ratio(a, s, base, what) if (a, s) in self.runs else None for s in systems
            }
            rows.append(row)
        return pl.DataFrame(rows, infer_schema_length=None)


def measure(run: Run, what: str) -> float:
    """Time in ns, or one of the run's counts."""
    return run.time if what == "time" else float(run.counts[what])
