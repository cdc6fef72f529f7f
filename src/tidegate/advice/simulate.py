"""Runs of candidates: simulated by experiments, on several processes, and kept after Ctrl-C."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from tidegate.advice.candidates import Candidate
from tidegate.advice.subject import Subject
from tidegate.errors import TidegateError
from tidegate.experiments.grid import attempt_grid
from tidegate.experiments.runs import Run
from tidegate.experiments.settings import GpuModel
from tidegate.experiments.specification import RunSpec
from tidegate.experiments.sweeps.processes import KeptProcesses
from tidegate.machine.machine import Machine


class StoppedEarly(Exception):
    """Ctrl-C; ``outcomes`` are those that were finished."""

    def __init__(self, outcomes: list[Outcome]):
        super().__init__("stopped")
        self.outcomes = outcomes


@dataclass(frozen=True)
class Trial:
    """A candidate on a machine with some near memory, to be simulated."""

    candidate: Candidate
    machine: Machine
    near: int
    dirty_only: bool = False

    def spec(self, subject: Subject) -> RunSpec:
        """Return the run of it on a program, or on the program that recomputes."""
        program = subject.recomputed if self.candidate.recomputes else subject
        assert program is not None, "it was not recorded with recomputation"
        return RunSpec(
            program.trace(self.machine),
            self.machine,
            near=self.near,
            gpu=GpuModel(dirty_only=self.dirty_only),
            **self.candidate.settings,
        )


@dataclass(frozen=True)
class Outcome:
    """A trial with its run, or why there is none."""

    trial: Trial
    run: Run | None
    failed: str = ""

    @property
    def name(self) -> str:
        return self.trial.candidate.name

    @property
    def time(self) -> float:
        """Time in ns; infinite if it failed."""
        return float("inf") if self.run is None else self.run.time


@dataclass(frozen=True)
class Simulator:
    """How trials are simulated. ``progress`` is called after each, and after each recording."""

    workers: int | None = None
    cache: bool = True
    progress: Callable[[], None] = lambda: None
    processes: KeptProcesses | None = None

    @contextmanager
    def with_processes(self) -> Iterator[Simulator]:
        """Yield a simulator whose processes, and what they have read, stay until the end."""
        if self.workers == 1:
            yield self
            return
        kept = KeptProcesses(self.workers)
        try:
            yield replace(self, processes=kept)
        finally:
            kept.close()

    def simulate(self, subject: Subject, trials: Sequence[Trial]) -> list[Outcome]:
        """Return the outcomes in order. Raise Stopped, with those that are there, after Ctrl-C."""
        specs = [trial.spec(subject) for trial in trials]
        number = {id(spec): n for n, spec in enumerate(specs)}
        done: list[int] = []

        def note(spec: RunSpec) -> None:
            done.append(number[id(spec)])
            self.progress()

        try:
            runs = attempt_grid(
                specs,
                workers=self.workers,
                executor=self.processes if len(specs) > 1 else None,
                cache=self.cache,
                progress=note,
            )
        except KeyboardInterrupt:
            # finished runs are in the store, unless it is not to be used
            kept = sorted(done) if self.cache else []
            again = [(n, attempt_grid([specs[n]])[0]) for n in kept]
            raise StoppedEarly([_outcome(trials[n], run) for n, run in again]) from None
        return [_outcome(trial, run) for trial, run in zip(trials, runs, strict=True)]


def _outcome(trial: Trial, run: Run | TidegateError) -> Outcome:
    return Outcome(trial, None, str(run)) if isinstance(run, TidegateError) else Outcome(trial, run)
