"""Statistical caching (MEMSYS'19): its worked examples, its stack property, and LEU on every suite
we have.

setup      what is run, and what can be varied
examples   the worked examples, to the digit (L1 to L3)
stack      the stack property on random sequences (L4)
curves     Figure 1: misses over size under LEU, OSL and others, and the bounds (L5)
gaps       beyond the paper: how far every eviction policy stays from Belady, LEU among them
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from tidegate.experiments.grid import spread
from tidegate.reproduce.kept import run_kept
from tidegate.reproduce.ledger import Ledger, load_claims
from tidegate.reproduce.leu.curves import curve_findings, curves_figure, curves_of
from tidegate.reproduce.leu.examples import example_findings, examples_figure
from tidegate.reproduce.leu.gaps import Gaps, gap_figures
from tidegate.reproduce.leu.setup import Setup, check, grid_of
from tidegate.reproduce.leu.stack import stack_findings
from tidegate.reproduce.report import Reproduction

TITLE = "Statistical Caching for Near Memory Management (MEMSYS'19)"

__all__ = ["TITLE", "Setup", "reproduce", "size"]


def size(setup: Setup) -> int:
    """How many runs it takes; the curves of an application count as one."""
    return len(grid_of(setup)) + len(setup.applications)


def reproduce(
    setup: Setup | None = None,
    *,
    workers: int | None = None,
    cache: bool = True,
    progress: Callable[[int], None] = lambda runs: None,
) -> Reproduction:
    """Run everything (or fetch it from the store) and put figures and ledger together."""
    setup = setup or Setup()
    check(setup)
    applications = setup.applications
    curves = spread(
        partial(curves_of, setup),
        list(applications),
        workers=workers,
        progress=lambda _: progress(1),
    )
    runs = run_kept(grid_of(setup), workers, cache, progress)
    by_application = dict(zip(applications, curves, strict=True))
    findings = (
        *example_findings(),
        *stack_findings(setup.sequences),
        *curve_findings(by_application),
    )
    gaps = Gaps.of(runs, by_application)
    exhibits = (examples_figure(), curves_figure(by_application), *gap_figures(gaps))
    notes = tuple(_told(setup))
    return Reproduction(
        "leu", TITLE, setup.describe(), Ledger(load_claims("leu"), findings), exhibits, notes
    )


def _told(setup: Setup) -> Iterator[str]:
    """What a reader should know before the figures."""
    yield "A position paper: it has no measurements of LEU. What is measured here is measured for the first time."
    yield (
        "Exact LEU and OSL know the distributions of the very sequence they are used on. The policy leu learns as it goes: "
        "what a system could have."
    )
    if not setup.as_shipped:
        yield "This set-up differs from the default one, whose figures are in docs/leu.md."
