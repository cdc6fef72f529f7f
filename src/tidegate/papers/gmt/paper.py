"""The reproduction of GMT, and what the paper leaves open (--robustness).

docs/gmt.md has the source of each open point.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from tidegate.experiments.specification import RunSpec
from tidegate.options import parse_spec
from tidegate.papers import paper
from tidegate.papers.gmt.figures import figures_of, sweep_figures
from tidegate.papers.gmt.findings import findings_of
from tidegate.papers.gmt.grid import grid_of, specify
from tidegate.papers.gmt.setup import PAGE, Setup
from tidegate.papers.ledger import Finding
from tidegate.papers.readings import Reading, Readings, own_options, spell_policy
from tidegate.papers.report import Exhibit
from tidegate.papers.results import Groups, Key

# Option → values, the default first.
OPEN = {
    # medium reuse is below the size of Tier-2 (equation 1), or of both (Figure 7)
    "tier-reuse.reach": ("middle", "both"),
    # a full Tier-2: the newcomer is discarded (2.1.3), or the oldest leaves (2.2)
    "tier-reuse.full": ("discard", "fifo"),
    "tier-reuse.weights": ("page", "shared"),  # the Markov chain's (Figure 5)
    "tier-reuse.unknown": ("middle", "far"),  # where a page without a history goes
    "tier-reuse.window": (64, 16, 256),  # how many are "the last evictions" (2.2)
    "stays.most": (64, 8),  # candidates that may stay before one has to go
    "tiers.shared": (True, False),  # the SSD reads and writes from one queue, or has one for each
    "tiers.flush": (True, False),  # what is dirty at the end is written, or left
    # misses under way: as many less as sizes are smaller, or the GPU's 864
    "tiers.slots": ("scaled", "machine"),
    # Tier-1 has one page more: results should not depend on that
    "tiers.pages": (0, 1),
    # misses under way are in no order, or in the trace's; then MultiVectorAdd's victims alternate
    "tiers.jitter": (True, False),
    "tiers.spare": (False, True),  # a page waits for its victim, or frames are set apart
    "tiers.transfers": ("hybrid", "zero-copy"),  # Hybrid-32T (2.3), or 50 µs always (3.4)
    # the page cache reads ahead, so that only the SSD's bandwidth shows
    "cpu.read_ahead": (False, True),
    "hmm.cached": ("inclusive", "exclusive"),  # the page cache keeps copies of near pages
    # 40 % of Table 2 are 5; 3.3's "larger reuse distances" than the tiers are 2 or 3
    "MultiVectorAdd.inputs": (5, 2, 3),
}
DEPENDS = {"tier-reuse": ("tier-reuse", "stays"), "hmm": ("cpu", "hmm")}


def specify_reading(setup: Setup, key: Key, options: Reading) -> RunSpec:
    """Return a run of the grid under a reading's options."""
    run = specify(setup, *key)
    tiering, application = str(run.tiering), str(key[0])
    workload = str(run.workload)
    if parse_spec(workload)[0] == f"gmt-{application}":
        workload = spell_policy(workload, own_options(application, options))
    assert isinstance(run.near, int)
    return run.change(
        workload=workload,
        jitter=run.tiers.jitter if options["tiers.jitter"] else 0,
        spare=options["tiers.spare"],
        transfers=options["tiers.transfers"],
        tiering=spell_policy(tiering, own_options(tiering, options)),
        near=run.near + PAGE * options["tiers.pages"],
        shared=options["tiers.shared"],
        slots=run.slots if options["tiers.slots"] == "scaled" else None,
        flush=options["tiers.flush"],
        most_stays=options.get("stays.most", run.tiers.most_stays),
        read_ahead=options.get("cpu.read_ahead", False),
    )


READINGS: Readings[Setup] = Readings(
    OPEN,
    ("tiers",),
    DEPENDS,
    specify_reading,
    # the bound has no open points
    includes=lambda setup, key, number: key[2] in setup.sizes and key[1] != "tier-belady",
)


class GMT(paper.Paper[Setup]):
    """Figures 4, 6 to 10 and 14, those of sensitivity from lists, and the claims G1 to G8, each at
    the size it was made for.
    """

    name = "gmt"
    setup = Setup
    readings = READINGS

    def grid(self, setup: Setup) -> Mapping[Key, object]:
        return grid_of(setup)

    def findings(self, setup: Setup, results: Groups) -> Iterable[Finding]:
        return findings_of(setup, results)

    def exhibits(self, setup: Setup, results: Groups) -> Iterable[Exhibit]:
        yield from figures_of({size: results[size] for size in setup.sizes})
        yield from sweep_figures(setup, results)

    def remarks(self, setup: Setup, results: Groups) -> Iterator[str]:
        if not setup.factor:
            both = len(setup.sizes) > 1
            beside = (
                "; the stated factor of 2, which contradicts them, is beside them" if both else ""
            )
            yield f"Sizes come from Table 2 and Figure 7 alone{beside}."
        if setup.as_published:
            yield (
                "What Figures 8 to 14 show is judged at the factor of 2 that they state; what "
                "Table 2 and Figure 7 show (G4, G5) at the sizes that follow from them."
            )
        yield "The paper's means are geometric: only so do its nine speed-ups make 1.50."


PAPER = GMT()
