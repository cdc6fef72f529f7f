"""Advice: will it fit, what is memory worth, what to do, how sure, and why.

    advise ──▶ fit ──▶ recorded with less ──▶ every candidate, simulated ──▶ choose
           ──▶ worth · confidence · causes

Each step adds to the advice. After Ctrl-C it holds what is known until then.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from tidegate import units
from tidegate.advice import confidence as sure
from tidegate.advice import worth as curve
from tidegate.advice.bound import Bound, find_bound
from tidegate.advice.candidates import BASELINE, candidates
from tidegate.advice.causes import Cause, find_causes
from tidegate.advice.confidence import Confidence
from tidegate.advice.fit import Fit, measure_fit
from tidegate.advice.shrink import Smaller, changes, record_smaller
from tidegate.advice.simulate import Outcome, Simulator, StoppedEarly, Trial
from tidegate.advice.subject import Subject, find_subject
from tidegate.advice.worth import Worth
from tidegate.errors import TidegateError
from tidegate.experiments.specification import RunSpec
from tidegate.experiments.trace_cache import shared_traces
from tidegate.machine.machine import Machine, load_machine
from tidegate.simulation.gpu.forecast import forecast

CLOSE = 0.05  # a candidate must be faster than the driver by this share to be recommended
MACHINE = "rtx3090-pcie4"  # where none is given
ALIKE = 0.02  # of candidates this close the simplest is taken


@dataclass(repr=False)
class Advice:
    """What is known of a program on one machine."""

    subject: Subject
    machine: Machine
    near: int
    fit: Fit
    outcomes: list[Outcome] = field(default_factory=list)
    bound: Bound | None = None
    worth: Worth | None = None
    confidence: Confidence | None = None
    causes: list[Cause] = field(default_factory=list)
    smaller: list[Smaller] = field(default_factory=list)
    whole: bool = False  # False: it was stopped

    def __repr__(self) -> str:
        from tidegate.advice.words import sentences

        return "\n".join(sentences(self))

    def _repr_html_(self) -> str:
        from tidegate.advice.page import body

        return body(self)

    def code(self, kind: str) -> str:
        """Return code that does what is advised: torch, cuda, openmp or preload (its plan)."""
        from tidegate.advice.emit import emit

        return next(iter(emit(self, kind).values()))

    @property
    def baseline(self) -> Outcome | None:
        """The plain driver."""
        return next((o for o in self.outcomes if o.name == BASELINE and o.run), None)

    @property
    def ranked(self) -> list[Outcome]:
        """Candidates with a run, the fastest first."""
        return sorted((o for o in self.outcomes if o.run), key=lambda o: o.time)

    @property
    def failed(self) -> list[Outcome]:
        return [o for o in self.outcomes if o.run is None]

    @property
    def best(self) -> Outcome | None:
        """The candidate to take: the simplest of the fastest that people can use."""
        usable = [o for o in self.outcomes if o.run and o.trial.candidate.usable]
        if not usable:
            return None
        least = min(o.time for o in usable)
        return next(o for o in usable if o.time <= least * (1 + ALIKE))

    @property
    def speed_up(self) -> float:
        """How many times as fast as the driver the best candidate is."""
        if self.baseline is None or self.best is None:
            return 1.0
        return self.baseline.time / self.best.time

    @property
    def recommended(self) -> Outcome | None:
        """The best candidate; None if the plain driver is as good."""
        return self.best if self.speed_up > 1 + CLOSE else None

    @cached_property
    def notes(self) -> list[str]:
        """What was assumed of the program, and in the runs of the driver and of the advice."""
        runs = [o.run for o in (self.baseline, self.best) if o is not None and o.run]
        said = [*self.subject.notes, *(note for run in runs for note in run.notes)]
        return [note for note in dict.fromkeys(said) if "runs in Python" not in note]


def advise(
    program: str | Path,
    *,
    near: str | int | None = None,
    machine: str | Machine = MACHINE,
    values: Mapping[str, int] | None = None,
    workers: int | None = None,
    cache: bool = True,
) -> Advice:
    """Say whether a program fits, what more memory is worth and what to do. ``print`` shows it.

    ``program``: a recording or trace, a PyTorch script, a ready model (``gpt-1.3b(batch=4)``), a
    source in C or CUDA (``values``: of its variables), or a workload. ``near``: near memory, by
    default the machine's own.

    >>> advise("cyclic(bytes=16MiB)", near="24MiB").fit.fits
    True
    """
    on = load_machine(machine)
    room = on.near.bytes if near is None else units.size(near)
    subject = find_subject(str(program), room, on, values or {})
    return advise_on(subject, on, room, Simulator(workers, cache))


def advise_on(
    subject: Subject,
    machine: Machine,
    near: int,
    simulator: Simulator,
    begin: Callable[[str, int], None] = lambda what, trials: None,
) -> Advice:
    """Return the advice on a program. ``begin`` is called with each step's name and its trials."""
    _check_near(near, machine)
    trace = subject.trace(machine)
    advice = Advice(subject, machine, near, measure_fit(trace, near))
    try:
        _record_smaller(advice, simulator, begin)
        with shared_traces(), simulator.with_processes() as kept:
            _compare(advice, kept, begin)
            _weigh(advice, kept, begin)
        advice.whole = True
    except KeyboardInterrupt:  # outside of simulations
        pass
    except StoppedEarly as stopped:
        known = {(o.name, o.trial.near) for o in advice.outcomes}
        here = [o for o in stopped.outcomes if o.trial.near == near and o.trial.machine is machine]
        advice.outcomes += [o for o in here if (o.name, o.trial.near) not in known]
    return advice


def _check_near(near: int, machine: Machine) -> None:
    if near < machine.geometry.region:
        region = units.show_size(machine.geometry.region)
        raise TidegateError(
            f"near memory must hold at least one region of {region}, "
            f"got {units.show_size(near)}; give it more"
        )


def _record_smaller(
    advice: Advice, simulator: Simulator, begin: Callable[[str, int], None]
) -> None:
    """Record the program again with less, if it can be; recomputation is a candidate, too."""
    changed = [] if advice.fit.fits else changes(advice.subject)
    if changed:
        begin("recordings with less", len(changed))
        for smaller in record_smaller(advice.subject, simulator.progress):
            advice.smaller.append(smaller)
            if smaller.change.recomputes:
                advice.subject = replace(advice.subject, recomputed=smaller.program)


def _compare(advice: Advice, simulator: Simulator, begin: Callable[[str, int], None]) -> None:
    """Simulate every candidate, and find the bound and the causes."""
    trace, machine, near = advice.subject.trace(advice.machine), advice.machine, advice.near
    tried = candidates(advice.subject.recomputed is not None)
    if advice.fit.fits:  # there is nothing to choose
        tried = [c for c in tried if c.name == BASELINE]
    begin("candidates", len(tried))
    trials = [Trial(c, machine, near) for c in tried]
    advice.outcomes = simulator.simulate(advice.subject, trials)
    read = forecast(RunSpec(trace).trace(), machine)  # as the runs left it
    advice.bound = find_bound(read, machine, near)
    if advice.baseline is not None and advice.baseline.run is not None:
        advice.causes = find_causes(advice.baseline.run, read, machine)


def _weigh(advice: Advice, simulator: Simulator, begin: Callable[[str, int], None]) -> None:
    """Simulate the best candidate and the driver at other sizes and on other machines."""
    if advice.best is None or advice.baseline is None or advice.fit.fits:
        return
    subject, machine, near = advice.subject, advice.machine, advice.near
    both = (advice.best.trial.candidate, advice.baseline.trial.candidate)
    compared = list(dict.fromkeys(both))
    region = machine.geometry.region
    trials = curve.trials(compared, machine, near, advice.fit.peak, region)
    begin("sizes", len(trials))
    there = [o for o in advice.outcomes if o.trial.candidate in compared]
    advice.worth = curve.find_worth([*there, *simulator.simulate(subject, trials)])
    if advice.recommended is not None:
        trials = sure.trials(compared, machine, near)
        begin("machines", len(trials))
        outcomes = simulator.simulate(subject, trials)
        advice.confidence = sure.find_confidence(BASELINE, advice.best.name, machine, outcomes)
