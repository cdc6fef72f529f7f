"""The reproduction of CPPE, and what the paper leaves open (--robustness)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from tidegate.experiments.specification import RunSpec
from tidegate.machine.machine import load_machine
from tidegate.options import parse_spec
from tidegate.papers import paper
from tidegate.papers.cppe.crossing import crossed_of, crossing_figures
from tidegate.papers.cppe.figures import FIGURE_3, FIGURE_7, figures_of, sweep_figures
from tidegate.papers.cppe.findings import PATTERNED, findings_of
from tidegate.papers.cppe.grid import grid_of, specify
from tidegate.papers.cppe.setup import BASE, MACHINE, OWN, Setup
from tidegate.papers.ledger import Finding
from tidegate.papers.readings import Reading, Readings, own_options, spell_policy
from tidegate.papers.report import Exhibit
from tidegate.papers.results import Groups, Key

# Option → values, the default first.
OPEN = {
    "mhpe.counts": ("pages", "faults"),  # what an interval counts
    "mhpe.skip": ("new", "nothing"),  # what the MRU search passes over before the forward distance
    "mhpe.head": ("mru", "both"),  # when wrongly evicted chunks return to the LRU end
    "mhpe.patterns": ("lru", "always"),  # when patterns are recorded
    "lru.recency": ("migration", "access"),  # of the baseline
    "machine.faults": (16, 64),  # served together
    "machine.blocks": (4, 8),  # resident in an SM
    "machine.jitter": (0.0, 0.05),  # do SMs run in step, or drift apart?
    # How long programs run: Table II has footprints only, and long runs were cut short (V). The
    # defaults are those of the benchmarks' scripts and inputs.
    "HIS.iterations": (20, 4),
    "HSD.iterations": (100, 10),
    "HWL.frames": (20, 5),
    "KMN.iterations": (2, 5),
    "MRQ.samples": (2048, 1024, 3072),  # two launches over all points, one, three
    "SPV.iterations": (50, 5),
    "SRD.iterations": (2, 10),
    "STN.iterations": (100, 10),
    # inputs that are drawn here
    "B+T.seed": (1, 2),
    "BFS.seed": (1, 2),
    "HYB.seed": (1, 2),
}
DEPENDS = {BASE: ("lru",), **dict.fromkeys(OWN, ("mhpe",))}
# Applications that some finding looks at, by system; all of them under the baseline and CPPE.
# Readings run no others.
LOOKED_AT: dict[str, tuple[str, ...]] = {
    "cppe-scheme1": FIGURE_7,
    "sl+mhpe": PATTERNED,
    **dict.fromkeys(("sl+random", "sl+lru-10%", "sl+lru-20%"), FIGURE_3),
}


def specify_reading(setup: Setup, key: Key, options: Reading) -> RunSpec:
    """Return a run of the grid under a reading's options."""
    application, system, level = key
    workload = setup.applications[application]
    if parse_spec(workload)[0] == f"cppe-{application}":
        workload = spell_policy(workload, own_options(application, options))
    run = specify(setup, workload, system, level)
    machine = load_machine(MACHINE)
    driver = replace(machine.driver, batch_faults=options["machine.faults"])
    near = replace(
        machine.near, blocks_per_sm=options["machine.blocks"], jitter=options["machine.jitter"]
    )
    run = replace(run, machine=replace(machine, driver=driver, near=near))
    if system in OWN:
        mhpe = spell_policy(str(run.eviction), own_options("mhpe", options))
        return replace(run, eviction=mhpe)
    return replace(run, eviction="lru-ideal") if options.get("lru.recency") == "access" else run


def includes(setup: Setup, key: Key, number: int) -> bool:
    """Return whether a finding looks at a run; the crossing has none."""
    application, system, level = key
    everywhere = system in (BASE, "cppe")
    return level in setup.levels and (everywhere or application in LOOKED_AT.get(system, ()))


READINGS: Readings[Setup] = Readings(
    OPEN, ("machine",), DEPENDS, specify_reading, includes=includes
)


class CPPE(paper.Paper[Setup]):
    """Figures 3, 4, 7, 8 and 9, Tables III and IV, VI-C's structures, sensitivity from lists, the
    claims C1 to C7, and both papers crossed.
    """

    name = "cppe"
    setup = Setup
    readings = READINGS

    def grid(self, setup: Setup) -> Mapping[Key, object]:
        return grid_of(setup) | crossed_of(setup)

    def findings(self, setup: Setup, results: Groups) -> Iterable[Finding]:
        return findings_of(results)

    def exhibits(self, setup: Setup, results: Groups) -> Iterable[Exhibit]:
        yield from figures_of({level: results[level] for level in setup.levels})
        yield from sweep_figures(setup, results)
        yield from crossing_figures(results)

    def remarks(self, setup: Setup, results: Groups) -> Iterator[str]:
        yield (
            "MVT and BIC crashed in the paper's baseline and are left out of its means; here they "
            "run, and the means are given without them, as there."
        )
        yield from dict.fromkeys(n for level in setup.levels for n in results[level].notes)


PAPER = CPPE()
