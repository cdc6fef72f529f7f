"""What GMT leaves open, and the runs of its readings (--robustness). docs/gmt.md says where each
comes from.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from tidegate.experiments.specification import RunSpec
from tidegate.reproduce.gmt.findings import findings_of
from tidegate.reproduce.gmt.setup import PAGE, Setup
from tidegate.reproduce.ledger import Finding
from tidegate.reproduce.readings import (
    Variant,
    choose,
    distinct,
    run_variants,
    spell_policy,
    variant_of,
    with_shares,
)
from tidegate.reproduce.results import Results

# Option → values, the default first.
OPEN = {
    # medium reuse is below the size of Tier-2 (equation 1), or of both (Figure 7)
    "tier-reuse.reach": ("middle", "both"),
    # a full Tier-2: the newcomer is discarded (2.1.3), or the oldest leaves (2.2)
    "tier-reuse.full": ("discard", "fifo"),
    "tier-reuse.unknown": ("middle", "far"),  # where a page without a history goes
    "tier-reuse.window": (64, 16, 256),  # how many are "the last evictions" (2.2)
    "stays.most": (64, 8),  # candidates that may stay before one has to go
    "tiers.shared": (True, False),  # the SSD reads and writes from one queue, or has one for each
    "tiers.flush": (True, False),  # what is dirty at the end is written, or left
    # misses under way: as many less as sizes are smaller, or the GPU's 864
    "tiers.slots": ("scaled", "machine"),
    # Tier-1 has one page more: results should not hang on that, and MultiVectorAdd's do
    "tiers.pages": (0, 1),
    # the page cache reads ahead, so that only the SSD's bandwidth shows
    "cpu.read_ahead": (False, True),
}
_ALL = ("tiers",)
DEPENDS = {
    "tier-reuse": (*_ALL, "tier-reuse", "stays"),
    "hmm": (*_ALL, "cpu"),
    "hmm-optimistic": (*_ALL, "cpu"),  # with GMT-Reuse's decisions under the default reading
}

TRIED = 256  # readings at most: each runs all applications

Grid = dict[tuple[str, str], Variant]


def ask_variant(variant: Variant, setup: Setup) -> RunSpec:
    """The ask of one variant, at the first of the sizes."""
    o = dict(variant.options)
    ask = setup.ask(variant.application, variant.system, setup.sizes[0])
    assert isinstance(ask.near, int)
    return replace(
        ask,
        tiering=spell_policy(str(ask.tiering), o),
        near=ask.near + PAGE * o["tiers.pages"],
        shared=o["tiers.shared"],
        slots=ask.slots if o["tiers.slots"] == "scaled" else None,
        flush=o["tiers.flush"],
        most_stays=o.get("stays.most", ask.most_stays),
        read_ahead=o.get("cpu.read_ahead", False),
    )


def readings_of(setup: Setup) -> list[Grid]:
    """Every reading as a grid of variants. The bound has no open points, so it is left out."""
    systems = [s for s in setup.systems if s != "tier-belady"]
    return [
        {
            (a, s): variant_of(a, s, reading, DEPENDS.get(s, _ALL))
            for a in setup.applications
            for s in systems
        }
        for reading in choose(OPEN, min(TRIED, setup.readings))
    ]


def variants_of(setup: Setup) -> list[Variant]:
    """All variants of all readings."""
    return distinct(readings_of(setup))


def robust_findings(
    findings: list[Finding],
    setup: Setup,
    workers: int | None,
    cache: bool,
    progress: Callable[[int], None],
) -> list[Finding]:
    """The findings, each with the share of open readings under which it holds."""
    make = partial(ask_variant, setup=setup)
    runs = run_variants(
        variants_of(setup), make, repr(setup), workers=workers, cache=cache, progress=progress
    )
    tried = [
        findings_of(Results({at: runs[v] for at, v in grid.items()})) for grid in readings_of(setup)
    ]
    return with_shares(findings, tried)
