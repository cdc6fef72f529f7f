"""How sure is it? The advice again, on machines whose constants are 30 % larger or smaller."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from tidegate.advice.candidates import Candidate
from tidegate.advice.simulate import Outcome, Trial
from tidegate.machine.machine import Machine, Rates

SPREAD = 0.3


@dataclass(frozen=True)
class VariedMachine:
    """How often the recommended candidate is faster than the driver, if a constant differs."""

    name: str
    speed_up: float


@dataclass(frozen=True)
class Confidence:
    """The speed-ups over all variants."""

    variants: tuple[VariedMachine, ...]

    @property
    def least(self) -> float:
        return min(v.speed_up for v in self.variants)

    @property
    def most(self) -> float:
        return max(v.speed_up for v in self.variants)


def _link(machine: Machine, by: float) -> Machine:
    link = machine.link
    rates = {"inward": link.inward * by, "outward": link.outward * by, "both": link.both * by}
    return replace(machine, link=replace(link, **rates))


def _driver(machine: Machine, by: float) -> Machine:
    d = machine.driver
    times = ("batch_overhead", "region_overhead", "unmap_per_kib")
    return replace(machine, driver=replace(d, **{name: getattr(d, name) * by for name in times}))


def _compute(machine: Machine, by: float) -> Machine:
    rates = Rates(**{name: rate * by for name, rate in vars(machine.rates).items()})
    near = machine.near
    faster = replace(near, flops=near.flops * by, bandwidth=near.bandwidth * by)
    return replace(machine, near=faster, rates=rates)


_GROUPS = {"the link": _link, "the driver's overheads": _driver, "the GPU": _compute}


def variants(machine: Machine) -> Iterator[tuple[str, Machine, bool]]:
    """Yield the name of each variant, its machine, and whether only dirty pages are written back.

    The last one is a reading: it is not documented which pages the driver writes back.
    """
    for name, change in _GROUPS.items():
        for by in (1 - SPREAD, 1 + SPREAD):
            yield f"{name} {by - 1:+.0%}", change(machine, by), False
    yield "only dirty pages are written back", machine, True


def trials(candidates: Sequence[Candidate], machine: Machine, near: int) -> list[Trial]:
    """Return the trials: each candidate in each variant."""
    return [Trial(c, on, near, dirty) for _, on, dirty in variants(machine) for c in candidates]


def find_confidence(
    baseline: str, chosen: str, machine: Machine, outcomes: Sequence[Outcome]
) -> Confidence | None:
    """Return the speed-ups of ``chosen`` over ``baseline``; None if there are none."""
    times = {(o.name, o.trial.machine, o.trial.dirty_only): o.time for o in outcomes if o.run}
    found = []
    for name, on, dirty in variants(machine):
        keys = (baseline, on, dirty), (chosen, on, dirty)
        if all(key in times for key in keys):
            found.append(VariedMachine(name, times[keys[0]] / times[keys[1]]))
    return Confidence(tuple(found)) if found else None
