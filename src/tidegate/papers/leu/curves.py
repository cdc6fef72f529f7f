"""Figure 1 and L5: misses over size under LRU and others, LEU, OSL, and the bounds OPT and VMIN.

An application is the sequence of regions it touches, in the order of its trace; touches of the
region just touched are left out, since they never miss. OSL and VMIN have no fixed size: their
average is the size.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from statistics import geometric_mean
from typing import Any

import numpy as np
import polars as pl
from matplotlib.figure import Figure
from numpy.typing import NDArray

from tidegate.analysis import (
    arc_misses,
    belady_misses,
    lru_misses,
    s3_fifo_misses,
    two_q_misses,
    vmin_misses,
)
from tidegate.analysis.exact import TouchSequence, leu_curve, leu_misses, osl_misses
from tidegate.analysis.exact.osl import lease_misses, mean_interval_misses
from tidegate.display.figures import COLOURS
from tidegate.experiments.specification import RunSpec
from tidegate.papers.ledger import Finding, load_claims, percent, signed
from tidegate.papers.leu.setup import SHARES, Application
from tidegate.papers.pictures import legend_of, new_panels
from tidegate.papers.report import Exhibit, make_exhibit

FLAT = {
    "LRU": lru_misses,
    "ARC": arc_misses,
    "2Q": two_q_misses,
    "S3-FIFO": s3_fifo_misses,
    "OPT": belady_misses,
    "mean interval": mean_interval_misses,
    "OSL lease": lease_misses,
}
LEU, LEU_REFERENCES, OSL, VMIN, OPT, LRU = "LEU", "LEU, references", "OSL", "VMIN", "OPT", "LRU"
MEAN, LEASE = "mean interval", "OSL lease"  # the rankings that 4.2 argues against
ALGORITHMS = ("LRU", "ARC", "2Q", "S3-FIFO", MEAN, LEASE, LEU_REFERENCES, LEU, OSL, OPT, VMIN)
# three of each suite: tiled, sparse and graph; a loop, thrashing and a tree; graph, stencil and
# streams. Chosen unseen.
PANELS = ("MM", "SPM", "BFS", "NW", "SRD", "B+T", "PageRank", "Srad", "Hotspot")
ONE_PASS = 2000  # regions up to which one pass over LEU's stack is quicker than nine sizes
_WHY = {
    LRU: (
        "one lease serves all touches of a block, so a block used in two ways is kept too long or "
        "not at all, where LRU keeps what is used now; and a step that does not fit leaves room "
        "unused"
    ),
    OPT: "distributions say how often, not when: OPT knows the next use of every touch",
}


@dataclass(frozen=True)
class Curves:
    """Misses of one application under every algorithm at every capacity."""

    touches: int
    regions: int  # that are touched
    references: int
    capacities: tuple[int, ...]
    misses: Mapping[str, tuple[int, ...]]
    fits: int  # regions that fit in the runs
    exact: Mapping[str, int]  # misses of exact LEU with so many

    def ratios(self, algorithm: str, base: str) -> NDArray[Any]:
        """Return one algorithm's misses over another's, at each capacity."""
        return np.array(self.misses[algorithm]) / np.array(self.misses[base])


def curves_of(run: RunSpec) -> Curves:
    """Return the misses of one application, whose sequence and memory size are those of a run."""
    simulation = run.prepare()
    touches = TouchSequence.of_trace(simulation.trace)
    ids, owners = touches.ids, touches.owners
    regions = len(np.unique(ids))
    capacities = sorted({max(1, round(share * regions)) for share in SHARES})
    misses = {name: tuple(int(count(ids, c)) for c in capacities) for name, count in FLAT.items()}
    by_block, by_reference = _leu(ids, None, regions), _leu(ids, owners, regions)
    misses[LEU] = tuple(map(by_block, capacities))
    misses[LEU_REFERENCES] = tuple(map(by_reference, capacities))
    misses[OSL] = tuple(osl_misses(ids, capacities).tolist())
    misses[VMIN] = tuple(vmin_misses(ids, capacities).tolist())
    by_page = simulation.machine.near.frame == "page"
    fits = simulation.frames // (simulation.trace.geometry.pages_per_region if by_page else 1)
    exact = {
        LEU: by_block(fits),
        LEU_REFERENCES: by_reference(fits),
        OPT: int(belady_misses(ids, fits)),
    }
    return Curves(len(ids), regions, len(np.unique(owners)), tuple(capacities), misses, fits, exact)


def _leu(ids: NDArray[Any], owners: NDArray[Any] | None, regions: int) -> Callable[[int], int]:
    """Return LEU's misses by capacity: in one pass where the stack is short, else size by size."""
    if regions > ONE_PASS:
        return lambda capacity: leu_misses(ids, capacity, owners)
    curve = leu_curve(ids, owners)
    return lambda capacity: int(curve.misses_at(capacity))


def curve_findings(curves: Mapping[Application, Curves]) -> Iterator[Finding]:
    """Yield the findings on L5.

    The paper's curve is of one trace, which is not here. So it is judged on the mean over
    applications: at each size beside LRU, over all sizes beside OPT.
    """
    claim = load_claims("leu")["L5"]
    if not curves:
        return
    for base, said in ((LRU, "below LRU's at every size"), (OPT, "at or below OPT's on average")):
        points = [
            (at, c.capacities[i], r)
            for at, c in curves.items()
            for i, r in enumerate(c.ratios(OSL, base))
        ]
        mean = geometric_mean(r for _, _, r in points)
        above = [p for p in points if p[2] > 1]
        at, capacity, most = max(points, key=lambda p: p[2])
        ours = f"{signed(mean - 1)} on average, above it at {len(above)} of {len(points)} sizes"
        why = (
            f"most above in {at.name} with {capacity} of {curves[at].regions} regions: "
            f"{signed(most - 1)}; {_WHY[base]}"
        )
        gap = 1 - (max(_by_share(curves, OSL, base)) if base == LRU else mean)
        yield claim.for_part(base).sign(gap, f"OSL {said}", ours, strict=False, why=why)
    each = (c.ratios(VMIN, name) > 1 for c in curves.values() for name in ALGORITHMS)
    broken = sum(int(below.sum()) for below in each)
    ours = f"{broken} sizes with fewer misses than VMIN"
    yield claim.for_part(VMIN).holds(broken == 0, "VMIN is the bound", ours)


def _by_share(curves: Mapping[Application, Curves], one: str, other: str) -> list[float]:
    """Return the ratio of two algorithms' misses at each size, as a mean over applications."""
    found: dict[float, list[float]] = {}
    for c in curves.values():
        for capacity, ratio in zip(c.capacities, c.ratios(one, other), strict=True):
            found.setdefault(round(capacity / c.regions, 1), []).append(float(ratio))
    return [geometric_mean(ratios) for ratios in found.values()]


def curves_figure(curves: Mapping[Application, Curves]) -> Exhibit:
    """Return a row per application: each algorithm's misses over OPT's, as a mean over sizes."""
    others = [name for name in ALGORITHMS if name != OPT]
    rows: list[dict[str, Any]] = [
        {"suite": at.suite, "application": at.name, "touches": c.touches}
        | {"regions": c.regions, "references": c.references}
        | {name: geometric_mean(c.ratios(name, OPT)) for name in others}
        for at, c in curves.items()
    ]
    means = {name: geometric_mean(r[name] for r in rows) for name in others}
    ranked = sorted(means.items(), key=lambda item: item[1])
    notes = [
        f"Misses over OPT's, geometric mean over {len(SHARES)} sizes and all applications: "
        f"{', '.join(f'{name} {mean:.2f}' for name, mean in ranked)}. LEU is exact here, with the "
        "distributions of blocks, or of references, of the whole sequence."
    ]
    drawn = chosen(curves)
    if len(drawn) < len(rows):
        notes.append(f"{len(drawn)} of {len(rows)} applications are drawn; the table has all.")
    draw = partial(draw_curves, drawn)
    return make_exhibit("leu", "Figure 1", "misses over size", pl.DataFrame(rows), draw, notes)


def chosen(curves: Mapping[Application, Curves]) -> dict[Application, Curves]:
    """Return the panels, or the first applications if most panels were not run.

    Three suites have a BFS; ObservUVM's is drawn.
    """
    named = {
        at: c
        for at, c in curves.items()
        if at.name in PANELS and (at.name != "BFS" or at.suite == "observuvm")
    }
    return named if len(named) >= len(PANELS) // 2 else dict(list(curves.items())[: len(PANELS)])


_STYLES = {
    LRU: (COLOURS[6], "-", 1.6),
    "ARC": (COLOURS[1], "-", 1.1),
    "2Q": (COLOURS[4], "-", 1.1),
    "S3-FIFO": (COLOURS[5], "-", 1.1),
    MEAN: (COLOURS[3], "--", 1.1),
    LEASE: (COLOURS[2], "--", 1.1),
    LEU: (COLOURS[0], "-", 2.0),
    LEU_REFERENCES: (COLOURS[0], "--", 1.4),
    OSL: (COLOURS[2], "-", 1.6),
    OPT: (COLOURS[7], "-", 1.2),
    VMIN: (COLOURS[7], ":", 1.2),
}


def draw_curves(curves: Mapping[Application, Curves]) -> Figure:
    """Draw a panel for each application."""
    figure, panels = new_panels(list(curves), 3, 3.9, 2.6, more=0.7)
    for axes, (at, c) in zip(panels, curves.items(), strict=True):
        share = np.array(c.capacities) / c.regions
        for name in ALGORITHMS:
            colour, dashes, width = _STYLES[name]
            style: dict[str, Any] = {"color": colour, "linestyle": dashes, "linewidth": width}
            axes.plot(share, np.array(c.misses[name]) / c.touches, label=name, **style)
        title = f"{at.name} ({at.suite}): {c.regions} regions, {c.references} references"
        axes.set_title(title, fontsize=8)
        axes.set(xlim=(0, 1), ylim=(0, None))
        axes.xaxis.set_major_formatter(lambda share, _: percent(share))
        axes.tick_params(labelsize=7)
        axes.spines[["top", "right"]].set_visible(False)
    label = "memory, as a share of the regions touched (OSL, VMIN: on average)"
    figure.supxlabel(label, fontsize=9)
    figure.supylabel("miss ratio", fontsize=9)
    legend_of(figure, panels[0], 3 * min(3, len(curves)), "upper")
    return figure
