"""What SC'19 leaves open (--robustness)."""

from __future__ import annotations

from dataclasses import replace

from tidegate.experiments.specification import RunSpec
from tidegate.reproduce.hybrid.grid import GRID, specify
from tidegate.reproduce.hybrid.setup import LOOPS, NEAR, Setup
from tidegate.reproduce.readings import Reading, Readings, own_options, spell_policy
from tidegate.reproduce.results import Key

# Option → values, the default first.
OPEN = {
    "program.loops": tuple(LOOPS),  # how often the programs loop: nothing is said
    # µs per KiB: a guess of low confidence; as on PCIe; nothing
    "machine.unmap": (0.15, 0.05, 0.0),
    "machine.dirty_only": (False, True),  # are clean pages copied back?
    "machine.pipelined": (False, True),  # do both directions of the link overlap?
    # of reuse: to the next use, or to the nearest region that has one (4.3)
    "plan.distances": ("launches", "regions"),
    # do access counters, which the paper had on, map evicted regions remotely? (2.3)
    "um.counters": (False, True),
    "rlm.remember": (False, True),  # an unused object's priority: none, or its last (3.2)
    "rlm.partial": ("no", "rest"),  # is partial mapping RDM's alone? (3.4)
    "glm.partial": ("no", "rest"),
    "rdm.partial": ("rest", "at once"),  # when an object's part is mapped (3.4)
}
DEPENDS = {"um": ("um",), "rlm": ("rlm",), "glm": ("glm",), "rdm": ("rdm", "plan")}

ROBUST_SCALE = 1 / 128  # of all sizes, for the readings
ROBUST_SIZES = (9.0, 25.0)  # GB


def specify_reading(setup: Setup, key: Key, options: Reading) -> RunSpec:
    """Return a run of the grid under a reading's options."""
    workload, scheme, _ = key
    read = replace(
        setup,
        loops=options["program.loops"],
        distances=options.get("plan.distances", "launches"),
        unmap=options["machine.unmap"],
    )
    run = replace(
        specify(read, workload, scheme),
        dirty_only=options["machine.dirty_only"],
        pipelined=options["machine.pipelined"],
    )
    if scheme == "um":
        return replace(run, placement="acbm") if options["um.counters"] else run
    return replace(run, placement=spell_policy(str(run.placement), own_options(scheme, options)))


def reduced(setup: Setup) -> Setup:
    """Return what the readings are tried with: fewer sizes, and smaller ones."""
    return replace(
        setup,
        scale=min(setup.scale, ROBUST_SCALE),
        fitting=tuple(s for s in ROBUST_SIZES if s < NEAR),
        larger=tuple(s for s in ROBUST_SIZES if s >= NEAR),
        largest=(),
    )


READINGS: Readings[Setup] = Readings(
    OPEN,
    ("machine", "program"),
    DEPENDS,
    specify_reading,
    reduce=reduced,
    includes=lambda setup, key, number: key[2] == GRID,
    remark=(
        f", for {' and '.join(f'{s:g}' for s in ROBUST_SIZES)} GB, at {ROBUST_SCALE:g} of all sizes"
    ),
)
