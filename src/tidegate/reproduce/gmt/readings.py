"""What GMT leaves open (--robustness). docs/gmt.md has the source of each point."""

from __future__ import annotations

from dataclasses import replace

from tidegate.experiments.specification import RunSpec
from tidegate.reproduce.gmt.grid import specify
from tidegate.reproduce.gmt.setup import PAGE, Setup
from tidegate.reproduce.readings import Reading, Readings, own_options, spell_policy
from tidegate.reproduce.results import Key

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
    # Tier-1 has one page more: results should not depend on that, and MultiVectorAdd's do
    "tiers.pages": (0, 1),
    # the page cache reads ahead, so that only the SSD's bandwidth shows
    "cpu.read_ahead": (False, True),
}
DEPENDS = {
    "tier-reuse": ("tier-reuse", "stays"),
    "hmm": ("cpu",),
    "hmm-optimistic": ("cpu",),  # with GMT-Reuse's decisions under the default reading
}


def specify_reading(setup: Setup, key: Key, options: Reading) -> RunSpec:
    """Return a run of the grid under a reading's options."""
    run = specify(setup, *key)
    tiering = str(run.tiering)
    assert isinstance(run.near, int)
    return replace(
        run,
        tiering=spell_policy(tiering, own_options(tiering, options)),
        near=run.near + PAGE * options["tiers.pages"],
        shared=options["tiers.shared"],
        slots=run.slots if options["tiers.slots"] == "scaled" else None,
        flush=options["tiers.flush"],
        most_stays=options.get("stays.most", run.most_stays),
        read_ahead=options.get("cpu.read_ahead", False),
    )


READINGS: Readings[Setup] = Readings(
    OPEN,
    ("tiers",),
    DEPENDS,
    specify_reading,
    # at the first size; the bound has no open points
    includes=lambda setup, key, number: key[2] == setup.sizes[0] and key[1] != "tier-belady",
)
