"""What the paper leaves open, and the runs of its readings (--robustness)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from tidegate.experiments.specification import RunSpec
from tidegate.reproduce.hybrid.findings import findings_of
from tidegate.reproduce.hybrid.grid import Grid
from tidegate.reproduce.hybrid.setup import LOOPS, NEAR, Key, Setup, grid_of
from tidegate.reproduce.ledger import Finding
from tidegate.reproduce.readings import Variant, choose, run_variants, variant_of, with_shares

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
_ALL = ("machine", "program")
DEPENDS = {
    **{scheme: (*_ALL, scheme) for scheme in ("um", "rlm", "glm")},
    "rdm": (*_ALL, "rdm", "plan"),
}

ROBUST_SCALE = 1 / 128  # of all sizes, for the readings
ROBUST_SIZES = (9.0, 25.0)  # GB
ROBUST_READINGS = 16  # of 2,304


def ask_variant(variant: Variant, setup: Setup) -> RunSpec:
    """The ask of one variant; its application is spelt "cfd 19"."""
    o = dict(variant.options)
    application, size = variant.application.split(" ")
    read = replace(
        setup,
        loops=o["program.loops"],
        distances=o.get("plan.distances", "launches"),
        unmap=o["machine.unmap"],
    )
    base = read.ask(application, float(size), variant.system)
    ask = replace(
        base, dirty_only=bool(o["machine.dirty_only"]), pipelined=bool(o["machine.pipelined"])
    )
    if o.get("um.counters"):
        return replace(ask, placement="acbm")
    own = [
        f"{k.partition('.')[2]}={v}" for k, v in o.items() if k.partition(".")[0] == variant.system
    ]
    if own and variant.system != "um":
        given = str(base.placement)
        spelt = f"{given[:-1]}, {', '.join(own)})" if "(" in given else f"{given}({', '.join(own)})"
        return replace(ask, placement=spelt)
    return ask


def reduced(setup: Setup) -> Setup:
    """What the readings are tried with: fewer sizes, and smaller ones."""
    fitting, larger = (
        tuple(s for s in ROBUST_SIZES if (s < NEAR) == fits) for fits in (True, False)
    )
    return replace(
        setup, scale=min(setup.scale, ROBUST_SCALE), fitting=fitting, larger=larger, largest=()
    )


def readings_of(setup: Setup) -> list[dict[Key, Variant]]:
    """Every reading as a grid of variants."""
    return [
        {
            (a, size, s): variant_of(f"{a} {size:g}", s, reading, DEPENDS.get(s, _ALL))
            for a, size, s in grid_of(reduced(setup))
        }
        for reading in choose(OPEN, setup.readings)
    ]


def variants_of(setup: Setup) -> list[Variant]:
    """All variants that differ."""
    return sorted(
        dict.fromkeys(v for grid in readings_of(setup) for v in grid.values()),
        key=lambda v: v.application,
    )


def robust_findings(
    findings: list[Finding],
    setup: Setup,
    workers: int | None,
    cache: bool,
    progress: Callable[[int], None],
) -> list[Finding]:
    """The findings, each with the share of open readings under which it holds."""
    small = reduced(setup)
    make = partial(ask_variant, setup=small)
    runs = run_variants(
        variants_of(setup), make, repr(small), workers=workers, cache=cache, progress=progress
    )
    tried = [
        findings_of(Grid({key: runs[v] for key, v in grid.items()})) for grid in readings_of(setup)
    ]
    return with_shares(findings, tried)
