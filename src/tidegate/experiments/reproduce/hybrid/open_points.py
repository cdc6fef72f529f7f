"""What the paper leaves open, and the runs of its readings (--robustness)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from tidegate.experiments.ask import Ask
from tidegate.experiments.ledger import Finding
from tidegate.experiments.reproduce.hybrid.findings import findings_of
from tidegate.experiments.reproduce.hybrid.grid import Grid
from tidegate.experiments.reproduce.hybrid.setup import BASELINES, PARTS, Key, Setup, grid_of
from tidegate.experiments.reproduce.readings import Variant, choose, run_variants, variant_of, with_shares

# Option → values, the default first.
OPEN = {
    "um.counters": (False, True),  # do access counters, which the paper had on, map evicted regions remotely? (2.3)
    "rlm.remember": (False, True),  # an unused object's priority: none, or its last (3.2)
    "rlm.partial": ("no", "rest"),  # is partial mapping RDM's alone? (3.4)
    "glm.partial": ("no", "rest"),
    "rdm.partial": ("rest", "at once"),  # when an object's part is mapped (3.4)
    "machine.dirty_only": (False, True),  # are clean pages copied back?
    "machine.pipelined": (True, False),  # do both directions of the link overlap?
}
DEPENDS = {"um": ("machine", "um"), "rlm": ("machine", "rlm"), "glm": ("machine", "glm"), "rdm": ("machine", "rdm")}

ROBUST_SCALE = 1 / 64  # of all sizes, for the readings


def ask_variant(variant: Variant, setup: Setup) -> Ask:
    """The ask of one variant; its application is spelt "cfd 19"."""
    o = dict(variant.options)
    application, size = variant.application.split(" ")
    base = setup.ask(application, float(size), variant.system)
    clean = bool(o["machine.dirty_only"]) or variant.system in BASELINES
    ask = replace(base, dirty_only=clean, pipelined=bool(o["machine.pipelined"]))
    if o.get("um.counters"):
        return replace(ask, placement="acbm")
    own = [f"{k.partition('.')[2]}={v}" for k, v in o.items() if k.partition(".")[0] == variant.system]
    if own and variant.system != "um":
        given = str(base.placement)
        spelt = f"{given[:-1]}, {', '.join(own)})" if "(" in given else f"{given}({', '.join(own)})"
        return replace(ask, placement=spelt)
    return ask


def readings_of(setup: Setup) -> list[dict[Key, Variant]]:
    """Every reading as a grid of variants."""
    small = replace(setup, scale=min(setup.scale, ROBUST_SCALE))
    keys = [key for key in grid_of(small) if key[2] not in PARTS or key[2] in ("rdm", "rdm whole")]
    return [
        {(a, size, s): variant_of(f"{a} {size:g}", s, reading, DEPENDS.get(s, ("machine",))) for a, size, s in keys}
        for reading in choose(OPEN, setup.readings)
    ]


def variants_of(setup: Setup) -> list[Variant]:
    """All variants that differ."""
    return sorted(dict.fromkeys(v for grid in readings_of(setup) for v in grid.values()), key=lambda v: v.application)


def robust_findings(
    findings: list[Finding], setup: Setup, workers: int | None, cache: bool, progress: Callable[[int], None]
) -> list[Finding]:
    """The findings, each with the share of open readings under which it holds."""
    small = replace(setup, scale=min(setup.scale, ROBUST_SCALE))
    make = partial(ask_variant, setup=small)
    runs = run_variants(variants_of(setup), make, repr(small), workers=workers, cache=cache, progress=progress)
    tried = [findings_of(Grid({key: runs[v] for key, v in grid.items()})) for grid in readings_of(setup)]
    return with_shares(findings, tried)
