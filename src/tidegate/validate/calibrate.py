"""Fit the constants of a user's card to what probe.cu measured on it.

    its properties   ──▶ near memory's size and rate, its SMs
    pinned copies    ──▶ the link's rates, and the time before a copy's first byte
    a touch of near  ──▶ launch_overhead
    the programs     ──▶ the driver's constants, all at once: played on the simulator (``fit``)
    triad, stencil   ──▶ nothing: the errors that are left

A launch is measured with its overhead, and simulated without.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from tidegate import units
from tidegate.errors import TidegateError
from tidegate.experiments import Run, RunSpec
from tidegate.machine import Machine, load_machine
from tidegate.machine.machine import machine_file
from tidegate.validate.card import FALLBACK, notes_on, preset_of, with_properties
from tidegate.validate.fit import (
    Fit,
    Play,
    constant,
    fit,
    least_squares_of,
    standard_errors,
    with_constants,
)
from tidegate.validate.points import Role
from tidegate.validate.probe import COPIES, ESSENTIAL, Measured, Probe, Program

LAUNCH = "near.launch_overhead"
WINDOW = "near.block_faults"
ORDER = "near.utlb_faults"

_IN_MEMORY = ("sparse K=1 in memory", "sparse K=8 in memory", "sparse K=512 in memory")
NEEDS: dict[str, tuple[str, ...]] = {
    "link.inward": ("copy-in",),
    "link.outward": ("copy-out",),
    "link.both": ("copy-both",),
    "link.run_overhead": ("copy-in",),
    "link.run_overhead_outward": ("copy-out",),
    LAUNCH: ("page-order",),
    "driver.first_overhead": ("page-order",),
    "driver.unmap_per_kib": ("page-order",),
    "driver.batch_overhead": _IN_MEMORY,
    "driver.region_overhead": _IN_MEMORY,
    "driver.copy_overhead": _IN_MEMORY,
    "driver.evict_overhead": ("sparse K=1 over memory", "sparse K=64 over memory"),
    WINDOW: _IN_MEMORY,
    ORDER: ("sequence over memory",),
}
"""The programs without which a constant is not fitted."""

_SPARSE = "sparse K=1, 8, 512 in memory"
_POINTS = {  # all programs count; these tell most
    "link.run_overhead": f"copy-in, {_SPARSE}",
    "driver.first_overhead": "page-order",
    "driver.unmap_per_kib": "page-order",
    "driver.batch_overhead": f"page-order, {_SPARSE}",
    "driver.region_overhead": f"page-order, {_SPARSE}",
    "driver.copy_overhead": _SPARSE,
    "driver.evict_overhead": "sparse K=1, 64 and sequence over memory",
    WINDOW: f"{_SPARSE}, sequence over memory",
    ORDER: "sequence over memory",
}
_LINK = {  # rate and overhead by kind of copy
    "copy-in": ("link.inward", "link.run_overhead"),
    "copy-out": ("link.outward", "link.run_overhead_outward"),
    "copy-both": ("link.both", ""),
}
# Where the fit begins for constants of the preset that are less, in ns: logarithms cannot be 0
_LEAST_START = {
    "link.run_overhead": 100.0,
    "driver.first_overhead": 1000.0,
    "driver.unmap_per_kib": 2.0,
    "driver.batch_overhead": 1000.0,
    "driver.region_overhead": 500.0,
    "driver.copy_overhead": 300.0,
    "driver.evict_overhead": 500.0,
}
_WINDOWS = range(1, 9)  # faults of a thread block
_FIRST_WINDOW = 4
_FAR_NEARER = 0.3  # of the misfit of the preset's own order
_ORDERS = (0, 4)  # in the order of stalls; µTLBs by number, so many faults each
_LEAST_LEFT = 0.05  # of a measured time, when the launch's overhead is taken off


@dataclass(frozen=True)
class Fitted:
    """A fitted constant: its value, its relative standard error, and what it was fitted on."""

    name: str
    value: float
    error: float
    points: str

    @property
    def text(self) -> str | int:
        """Return the value as a machine file has it."""
        return show(self.name, self.value)

    @property
    def percent(self) -> int:
        """Return the error in percent."""
        return max(1, round(100 * self.error))

    @property
    def confidence(self) -> str:
        """Return H, M or L."""
        return confidence(self.error)


@dataclass(frozen=True)
class HeldOut:
    """A program that nothing was fitted on: its time, and that of the fitted machine."""

    program: Program
    measured: float
    simulated: float

    @property
    def ratio(self) -> float:
        """Return simulated over measured."""
        return self.simulated / self.measured


@dataclass(frozen=True)
class Calibration:
    """A card's machine, its fitted constants, and the errors on what was held out.

    ``like``: the preset or file that gave all other constants.
    """

    probe: Probe
    like: str
    machine: Machine
    constants: tuple[Fitted, ...]
    held_out: tuple[HeldOut, ...]
    notes: tuple[str, ...]


def calibrate(
    probe: Probe, like: str | None = None, advance: Callable[[], None] = lambda: None
) -> Calibration:
    """Return a machine with the constants that fit a probe best.

    ``like``: a preset or a user's file, whose constants the others are; None: the card's preset.
    ``advance`` is called once for each set of constants that is played.
    """
    notes = [*notes_on(probe, like), *probe.notes]
    like = like or preset_of(probe) or FALLBACK
    there = {m.program.label for m in probe.measured}
    fittable = {name for name, labels in NEEDS.items() if there.issuperset(labels)}
    machine = with_properties(load_machine(machine_file(like)), probe, like)
    machine, constants = _fit_copies(probe, machine)
    machine, launch = _fit_launch(probe, machine)
    machine, driver = _fit_driver(probe, machine, fittable, advance)
    refitted = {one.name for one in driver}
    constants = [one for one in (*constants, *launch) if one.name not in refitted]
    return Calibration(
        probe,
        like,
        machine,
        (*constants, *driver),
        tuple(_held_out(probe, machine)),
        (*notes, *_kept(fittable, like)),
    )


def _kept(fittable: set[str], like: str) -> list[str]:
    """Return a note on constants that the probe says too little of."""
    if not (kept := [name for name in NEEDS if name not in fittable]):
        return []
    return [f"not fitted, as rows are missing: {', '.join(kept)}; they are those of {like}"]


def _fit_copies(probe: Probe, machine: Machine) -> tuple[Machine, list[Fitted]]:
    """Return the machine with the link's constants: a copy takes overhead + bytes / rate."""
    constants: list[Fitted] = []
    for kind, (rate, overhead) in _LINK.items():
        copies = probe.of(kind)
        if len({m.program.bytes for m in copies}) < 2:
            if kind not in ESSENTIAL:
                continue
            raise TidegateError(
                f"rows {kind} must have at least two sizes, got one; "
                "give the whole output of the probe"
            )
        values, errors = _line(copies, 1 if overhead else 2)
        names = [name for name in (rate, overhead) if name]
        constants += map(Fitted, names, values, errors, [kind] * 2)
    return with_constants(machine, {one.name: one.value for one in constants}), constants


def _line(copies: Sequence[Measured], ways: int) -> tuple[list[float], list[float]]:
    """Return the rate of copies in bytes per ns and their overhead, and the errors of both."""
    sizes = np.array([ways * m.program.bytes for m in copies], float)
    times, errors = np.array([m.ns for m in copies]), np.array([m.error for m in copies])

    def residuals(x: np.ndarray) -> np.ndarray:
        return np.log((sizes / np.exp(x[0]) + np.exp(x[1])) / times) / errors

    start = np.log([float((sizes / times).max()), times.min()])
    found = least_squares_of()(residuals, start, loss="soft_l1", x_scale=0.1)
    return np.exp(found.x).tolist(), standard_errors(found.jac, found.fun)


def _fit_launch(probe: Probe, machine: Machine) -> tuple[Machine, list[Fitted]]:
    """Return the machine with the launch's overhead: a launch that touches what is near."""
    found = _launches_of_near(probe)
    if not found:
        return machine, []
    value = float(np.median([m.ns for m in found]))
    error = float(np.mean([m.error for m in found]))
    return with_constants(machine, {LAUNCH: value}), [
        Fitted(LAUNCH, value, error, "page-order, a page that is near")
    ]


def _launches_of_near(probe: Probe) -> list[Measured]:
    """Return the launches of page-order that touch the page of the one before."""
    return [m for m in probe.of("page-order") if _touches_near(m)]


def _touches_near(measured: Measured) -> bool:
    pages = measured.program.detail.split("+")
    place = measured.launch - 1
    return 0 < place < len(pages) and pages[place] in pages[:place]


def _fit_driver(
    probe: Probe, machine: Machine, fittable: set[str], advance: Callable[[], None]
) -> tuple[Machine, list[Fitted]]:
    """Return the machine with the driver's constants, a block's faults and their order."""
    names = [name for name in _LEAST_START if name in fittable]
    if WINDOW not in fittable:  # an overhead of runs is then what the copies say
        names.remove("link.run_overhead")
    if not names:
        return machine, []
    measured = _fitted_on(probe)
    overhead = machine.near.launch_overhead
    times = [max(m.ns - overhead, _LEAST_LEFT * m.ns) for m in measured]
    errors = [m.error for m in measured]
    begin = {name: max(constant(machine, name), _LEAST_START[name]) for name in names}
    start = with_constants(machine, begin)
    found_order: list[Fitted] = []

    def play(tried: Machine) -> list[float]:
        advance()
        return simulate(measured, tried)

    def fitted(window: int | None) -> Fit:
        return fit(_with_window(start, window), names, play, times, errors)

    if ORDER in fittable:
        start, order = _find_order(start, play, times, errors)
        found_order = [order]
    if WINDOW not in fittable:
        found = fitted(machine.near.block_faults)
        return found.machine, [*_named(found), *found_order]
    fits = _climb(fitted, machine.near.block_faults or _FIRST_WINDOW, errors)
    best = min(fits, key=lambda window: _misfit(fits[window].ratios, errors))
    window = Fitted(WINDOW, best, _window_error(fits, best, errors), _POINTS[WINDOW])
    return fits[best].machine, [*_named(fits[best]), window, *found_order]


def _find_order(
    start: Machine, play: Play, times: Sequence[float], errors: Sequence[float]
) -> tuple[Machine, Fitted]:
    """Return the machine with its order of service, or with the other if that comes far nearer.

    Nothing is fitted yet: where the orders matter they differ tenfold, so constants hardly count.
    """
    own = start.near.utlb_faults or 0
    tried = {order: _with_order(start, order) for order in _ORDERS}
    misfits = {
        order: _misfit((np.array(play(machine)) / times).tolist(), errors)
        for order, machine in tried.items()
    }
    (other,) = (order for order in _ORDERS if bool(order) is not bool(own))
    if misfits[other] < _FAR_NEARER * misfits[_ORDERS[bool(own)]]:
        return tried[other], Fitted(ORDER, other, _FAR_NEARER, _POINTS[ORDER])
    return start, Fitted(ORDER, own, 1.0, _POINTS[ORDER])


def _named(found: Fit) -> list[Fitted]:
    """Return a fit's constants with what tells most of each."""
    return [Fitted(one.name, one.value, one.error, _POINTS[one.name]) for one in found.constants]


def _climb(fitted: Callable[[int], Fit], first: int, errors: Sequence[float]) -> dict[int, Fit]:
    """Return fits for windows from ``first`` on, up and down for as long as they get better."""
    fits = {first: fitted(first)}
    for step in (-1, 1):
        window = first + step
        while window in _WINDOWS:
            fits[window] = fitted(window)
            if _misfit(fits[window].ratios, errors) > _misfit(fits[window - step].ratios, errors):
                break
            window += step
    return fits


def _fitted_on(probe: Probe) -> list[Measured]:
    """Return the launches that the driver's constants are fitted on."""
    programs = [m for m in probe.measured if m.program.kind not in COPIES]
    return [m for m in programs if m.program.role is Role.FITTED and not _touches_near(m)]


def _with_window(machine: Machine, faults: int | None) -> Machine:
    near = dataclasses.replace(machine.near, block_faults=faults)
    return dataclasses.replace(machine, near=near)


def _with_order(machine: Machine, faults: int) -> Machine:
    near = dataclasses.replace(machine.near, utlb_faults=faults or None)
    return dataclasses.replace(machine, near=near)


def _misfit(ratios: Sequence[float], errors: Sequence[float]) -> float:
    """Return how far ratios are from 1, in standard errors; few large ones count little."""
    off = np.log(ratios) / np.maximum(errors, 0.02)
    return float(np.sum(np.sqrt(1 + off**2) - 1))


def _window_error(fits: dict[int, Fit], best: int, errors: Sequence[float]) -> float:
    """Return by which share the window may be off: those that fit about as well."""
    least = _misfit(fits[best].ratios, errors)
    as_good = [w for w, one in fits.items() if _misfit(one.ratios, errors) < 1.2 * least + 1]
    return max(abs(w - best) for w in as_good) / best


def simulate(measured: Sequence[Measured], machine: Machine) -> list[float]:
    """Return the simulated time of each launch, in ns."""
    launches: dict[Program, int] = {}
    for one in measured:
        launches[one.program] = max(launches.get(one.program, 1), one.launch)
    runs = {program: _run(program, count, machine) for program, count in launches.items()}
    return [_time(runs[one.program], one.launch) for one in measured]


def _run(program: Program, launches: int, machine: Machine) -> Run:
    return RunSpec(
        workload=program.workload(launches),
        machine=machine,
        near=str(program.near),
        system="uvm",
        prefetch="tree",
    ).run(cache=False)


def _time(run: Run, launch: int) -> float:
    """Return the time of a launch without its overhead, or of all launches with theirs."""
    if not launch:
        return run.time
    row = run.launches.row(launch - 1, named=True)
    return float(row["end"] - row["start"])


def _held_out(probe: Probe, machine: Machine) -> list[HeldOut]:
    """Return the programs that nothing was fitted on."""
    programs = [m for m in probe.measured if m.program.role is Role.TEST]
    found = []
    for one, time in zip(programs, simulate(programs, machine), strict=True):
        overhead = machine.near.launch_overhead if one.launch else 0.0
        found.append(HeldOut(one.program, one.ns, time + overhead))
    return found


def show(name: str, value: float) -> str | int:
    """Return a constant's value as a machine file has it.

    >>> show("driver.batch_overhead", 16_900.0), show("link.inward", 55.9), show(WINDOW, 4)
    ('16.9us', '55.9GB/s', 4)
    """
    if name in (WINDOW, ORDER):
        return round(value)
    if name in ("link.inward", "link.outward", "link.both"):
        return f"{value:.4g}GB/s"
    return f"{value / units.US:.4g}us"


def confidence(error: float) -> str:
    """Return H, M or L for a relative standard error.

    >>> confidence(0.03), confidence(0.2), confidence(1.0)
    ('H', 'M', 'L')
    """
    return "H" if error < 0.1 else "M" if error < 0.35 else "L"
