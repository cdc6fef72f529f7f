"""What is run: every application under tide, uvm and its suite's rivals; and eviction alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tidegate.experiments.specification import RunSpec
from tidegate.papers.results import Key
from tidegate.papers.tide.setup import (
    BASE,
    BEST,
    DEVELOPED,
    OURS,
    SUITES,
    TRIED,
    Application,
    Setup,
)

MOVED = "moved"  # the group of eviction alone
CONSTANTS = "constants"  # the group of tide with other constants; the others are levels
MOVED_AT = "50%"


def grid_of(setup: Setup) -> dict[Key, RunSpec]:
    """Return all runs."""
    grid: dict[Key, RunSpec] = {
        (at, system, level): specify(setup, at, system, level)
        for level in setup.levels
        for at in setup.applications
        for system in (*setup.systems, *SUITES[at.suite].rivals)
    }
    alone: dict[Key, RunSpec] = {
        (at, policy, MOVED): eviction_alone(setup, at, policy)
        for at in setup.applications
        if at.suite != "recorded"  # Belady would read gigabytes of them
        for policy in (BEST, OURS, "leu-observed")
    }
    others: dict[Key, RunSpec] = {
        (at, system, CONSTANTS): spec
        for at in tried(setup)
        for system, spec in with_constants(setup, at)
    }
    return grid | alone | others


def tried(setup: Setup) -> list[Application]:
    """Return the applications that other constants are tried on: of those developed on."""
    return [at for at in setup.applications if at.half == DEVELOPED][::TRIED]


def with_constants(setup: Setup, at: Application) -> Iterator[tuple[str, RunSpec]]:
    """Yield uvm, tide, and tide with each constant halved and doubled, by name."""
    level = setup.levels[0]
    ours = specify(setup, at, OURS, level)
    yield BASE, specify(setup, at, BASE, level)
    yield OURS, ours
    for part, name, value in setup.changed():
        policy = f"{OURS}({name}={value})"
        yield f"{part} {name}={value:g}", replace(ours, **{part: policy})  # type: ignore[arg-type]


def specify(setup: Setup, at: Application, system: str, level: str) -> RunSpec:
    """Return one run of an application under a system."""
    machine = SUITES[at.suite].machine
    return RunSpec(
        setup.applications[at], machine, system, oversubscribe=level, scale=setup.share(at)
    )


def eviction_alone(setup: Setup, at: Application, policy: str) -> RunSpec:
    """Return a run with one slot, so that all policies see the touches in one order, and whole
    regions, so that only eviction differs; at half the size.
    """
    share = setup.share(at)
    return RunSpec(
        setup.applications[at],
        SUITES[at.suite].machine,
        eviction=policy,
        prefetch="region",
        slots=1,
        oversubscribe=MOVED_AT,
        scale=None if share is None else share / 2,
    )
