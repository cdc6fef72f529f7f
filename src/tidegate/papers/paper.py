"""Paper: the protocol of a reproduction, and what is the same for all papers.

    Setup ─▶ grid: key → run specification ─▶ Groups of results ─▶ findings · exhibits · notes
                                                                   └────── Reproduction ─────┘
             readings: the same grid under other options ─▶ the share of them in which a claim holds

A paper is a subclass of ``Paper`` in its folder's ``paper.py``, and ``PAPER`` an instance of it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Generic, TypeVar

from tidegate.experiments.sweeps.batches import WholeRuns
from tidegate.experiments.sweeps.execution import run_all
from tidegate.papers.ledger import Claims, Finding, Ledger, load_claims
from tidegate.papers.readings import Readings, VariedRun, distinct, run_variants, with_shares
from tidegate.papers.report import Exhibit, Reproduction
from tidegate.papers.results import Groups, Key
from tidegate.papers.setup import Setup

S = TypeVar("S", bound=Setup)
Progress = Callable[[int], None]


class Paper(ABC, Generic[S]):
    """One paper: what is run for it, and what is made of the results.

    A run specification is anything with ``prepare()``, which looks names and numbers up, and
    ``run(cache)``, which runs it.
    """

    name: str  # of its folder
    setup: type[S]
    readings: Readings[S] | None = None  # what the paper leaves open
    caches_traces = True  # the trace of an application is kept for its other runs

    @abstractmethod
    def grid(self, setup: S) -> Mapping[Key, Any]:
        """Return the run specification of every result."""

    @abstractmethod
    def findings(self, setup: S, results: Groups) -> Iterable[Finding]:
        """Return the findings that the results allow."""

    @abstractmethod
    def exhibits(self, setup: S, results: Groups) -> Iterable[Exhibit]:
        """Return the figures and tables that the results allow."""

    def remarks(self, setup: S, results: Groups) -> Iterable[str]:
        """Return what a reader should know of this paper before the figures."""
        return ()

    # The same for all papers

    @property
    def claims(self) -> Claims:
        return load_claims(self.name)

    def size(self, setup: S) -> int:
        """Return how many results are computed."""
        return len(self.grid(setup)) + len(distinct(self.variants(setup)))

    def reproduce(
        self,
        setup: S | None = None,
        *,
        workers: int | None = None,
        cache: bool = True,
        progress: Progress = lambda runs: None,
    ) -> Reproduction:
        """Run everything, or read it from the store, and return figures and ledger."""
        setup = setup or self.setup()
        grid = self.grid(setup)
        _check(grid)
        runs = self._run(grid, workers, cache, progress)
        results, done = Groups.from_runs(runs), list(runs.values())
        findings = list(self.findings(setup, results))
        if setup.readings and self.readings:
            tried = run_variants(
                self.reading_specs(setup),
                shares_traces=self.caches_traces,
                workers=workers,
                cache=cache,
                progress=progress,
            )
            small = self.readings.reduce(setup)
            each = (
                self.findings(small, Groups.from_runs({key: tried[v] for key, v in grid.items()}))
                for grid in self.variants(setup)
            )
            findings = with_shares(findings, each)
            done += tried.values()
        findings = [replace(finding, at=setup.at) for finding in findings]
        ledger = Ledger(self.claims, tuple(findings))
        exhibits = tuple(self.exhibits(setup, results))
        notes = tuple(self.notes(setup, results))
        stored = sum(getattr(run, "from_store", False) for run in done)
        return Reproduction(
            self.name,
            setup.citation,
            setup.describe(),
            ledger,
            exhibits,
            notes,
            runs=len(done),
            from_store=stored,
        )

    def notes(self, setup: S, results: Groups) -> Iterator[str]:
        """Yield what a reader should know before the figures."""
        yield f"The paper's set-up: {self.claims.setup}."
        if not setup.as_published:
            yield (
                f"Judged {setup.at}, not as published: sizes, levels or the grid differ from those "
                "that the claims are made for. The published verdicts are those of the full one."
            )
        yield from self.remarks(setup, results)
        if setup.readings and self.readings:
            yield self.readings.note(setup)

    def _run(
        self, grid: Mapping[Key, Any], workers: int | None, cache: bool, progress: Progress
    ) -> dict[Key, Any]:
        """Run a grid; runs of one application share its trace."""
        work = WholeRuns(cache, self.caches_traces)
        done = run_all(
            list(grid.values()),
            work,
            workers=workers,
            progress=lambda spec: progress(1),
            stop_at_failure=True,
        )
        return dict(zip(grid, done, strict=True))

    # Open readings

    def variants(self, setup: S) -> list[dict[Key, VariedRun]]:
        """Return the grid of every reading that is tried."""
        if not setup.readings or not self.readings:
            return []
        small = self.readings.reduce(setup)
        return self.readings.grids(small, self.grid(small))

    def reading_specs(self, setup: S) -> dict[VariedRun, Any]:
        """Return the run specification of every variant that is tried, each once."""
        assert self.readings
        small = self.readings.reduce(setup)
        variants = distinct(self.variants(setup))
        return {v: self.readings.specification(v, small) for v in variants}


def _check(grid: Mapping[Key, Any]) -> None:
    """Look every application and system up before the first run begins."""
    seen: set[Any] = set()
    for (application, system, group), spec in grid.items():
        if not {(application, group), system} <= seen:
            seen |= {(application, group), system}
            spec.prepare()
