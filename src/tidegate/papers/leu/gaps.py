"""Beyond the paper: how many more regions every eviction policy brings in than Belady.

One slot and whole regions: all policies see one order of touches, and a miss is a region brought
in. Exact LEU, with the distributions of the whole sequence, has the same order and the same number
of regions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from statistics import geometric_mean
from typing import Any

import numpy as np
import polars as pl
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from tidegate.display.figures import COLOURS
from tidegate.experiments.runs import Run
from tidegate.papers.ledger import signed
from tidegate.papers.leu.curves import LEU, LEU_REFERENCES, OPT, Curves
from tidegate.papers.leu.setup import BEST, SUITES, Application
from tidegate.papers.pictures import LINE, new_axes
from tidegate.papers.report import Exhibit, make_exhibit

POLICY = "leu"
RIVALS = ("lru-ideal", "mru", "lfu", "tournament")
EXACT = {LEU: "LEU exact, blocks", LEU_REFERENCES: "LEU exact, references"}
NEARLY = 0.02  # of misses: no difference


def moved(run: Run) -> int:
    """Return the pages brought in."""
    return int(run.counts["pages_in"])


@dataclass(frozen=True)
class Gaps:
    """Misses over Belady's, by policy and application."""

    over: Mapping[str, Mapping[Application, float]]

    @classmethod
    def from_runs(
        cls, runs: Mapping[tuple[Application, str], Run], curves: Mapping[Application, Curves]
    ) -> Gaps:
        best = {at: moved(run) for (at, policy), run in runs.items() if policy == BEST}
        over: dict[str, dict[Application, float]] = {}
        for (at, policy), run in runs.items():
            if policy != BEST:
                over.setdefault(policy, {})[at] = moved(run) / best[at]
        for name, label in EXACT.items():
            over[label] = {at: c.exact[name] / c.exact[OPT] for at, c in curves.items()}
        return cls(over)

    @property
    def applications(self) -> list[Application]:
        return list(next(iter(self.over.values())))

    def mean(self, policy: str, suite: str | None = None) -> float:
        """Return the geometric mean over a suite's applications, or all."""
        gaps = self.over[policy].items()
        return geometric_mean(gap for at, gap in gaps if suite in (None, at.suite))

    @property
    def ranked(self) -> list[str]:
        """The policies, the nearest to Belady first."""
        return sorted(self.over, key=self.mean)


def gap_figures(gaps: Gaps) -> Iterator[Exhibit]:
    """Yield the table of all policies, and LEU beside its rivals by application."""
    suites = [s for s in SUITES if any(at.suite == s for at in gaps.applications)]
    rows = [
        {"policy": p, **{s: gaps.mean(p, s) for s in suites}}
        | {"all": gaps.mean(p), "worst": max(gaps.over[p].values())}
        for p in gaps.ranked
    ]
    title = "pages brought in, over Belady's"
    name, by_suite = "Gap to Belady", f"{title}: geometric means by suite"
    draw = partial(draw_means, gaps, suites)
    yield make_exhibit("leu", name, by_suite, pl.DataFrame(rows), draw, statement(gaps))
    if POLICY not in gaps.over:
        return
    wanted = (POLICY, "leu-observed", EXACT[LEU_REFERENCES], EXACT[LEU], *RIVALS)
    shown = [p for p in wanted if p in gaps.over]
    each = [
        {"suite": at.suite, "application": at.name, **{p: gaps.over[p][at] for p in shown}}
        for at in gaps.applications
    ]
    name, rivals = "Gap by application", f"{title}: LEU beside its rivals"
    yield make_exhibit("leu", name, rivals, pl.DataFrame(each), partial(draw_each, gaps))


def statement(gaps: Gaps) -> Iterator[str]:
    """Yield where LEU wins and where it loses."""
    if POLICY not in gaps.over:
        return
    rank, mean = gaps.ranked.index(POLICY) + 1, gaps.mean(POLICY)
    yield f"leu is number {rank} of {len(gaps.ranked)}, {mean:.2f} times Belady."
    for rival in (r for r in RIVALS if r in gaps.over):
        ratio = {at: gaps.over[POLICY][at] / gaps.over[rival][at] for at in gaps.applications}
        wins = sorted((at for at in ratio if ratio[at] < 1 - NEARLY), key=lambda at: ratio[at])
        losses = sorted((at for at in ratio if ratio[at] > 1 + NEARLY), key=lambda at: -ratio[at])
        yield (
            f"Against {rival}: better in {len(wins)}{_most(wins, ratio)}, worse in "
            f"{len(losses)}{_most(losses, ratio)}, alike in {len(ratio) - len(wins) - len(losses)}."
        )


def _most(which: list[Application], ratio: Mapping[Application, float]) -> str:
    named = ", ".join(f"{at.name} {signed(ratio[at] - 1)}" for at in which[:3])
    return f" ({named})" if named else ""


def draw_means(gaps: Gaps, suites: list[str]) -> Figure:
    """Draw a row per policy, a mark per suite."""
    ranked = gaps.ranked
    label = "pages brought in, over Belady's (geometric mean)"
    figure, axes = new_axes(9, 0.27 * len(ranked) + 1.3, xlabel=label)
    at = np.arange(len(ranked))
    axes.barh(at, [gaps.mean(p) - 1 for p in ranked], 0.62, left=1, color="#dddddd", label="all")
    for suite, marker, colour in zip(suites, "os^", COLOURS, strict=False):
        means = [gaps.mean(p, suite) for p in ranked]
        axes.plot(means, at, marker, color=colour, label=suite, markersize=5)
    axes.set_yticks(at, ranked, fontsize=8)
    for tick, policy in zip(axes.get_yticklabels(), ranked, strict=True):
        tick.set_fontweight("bold" if policy.lower().startswith("leu") else "normal")
    axes.invert_yaxis()
    axes.axvline(1, **LINE)
    axes.set_xscale("log")
    axes.set_xticks([1, 1.2, 1.5, 2, 3, 5, 10, 20])
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.xaxis.set_minor_locator(NullLocator())
    # outside, because the worst policy's marks may be anywhere
    figure.legend(frameon=False, fontsize=8, loc="outside upper center", ncols=4)
    axes.spines[["top", "right"]].set_visible(False)
    return figure


def draw_each(gaps: Gaps) -> Figure:
    """Draw a column per application: LEU, exact LEU and the rivals."""
    names = gaps.applications
    limits = (-0.7, len(names) - 0.3)
    figure, axes = new_axes(12, 4.2, ylabel="pages brought in, over Belady's", xlim=limits)

    def plot(policy: str, marker: str, colour: str, size: int, **more: Any) -> None:
        heights = [gaps.over[policy][at] for at in names]
        axes.plot(heights, marker, color=colour, markersize=size, label=policy, **more)

    colours = (COLOURS[6], COLOURS[1], COLOURS[4], COLOURS[5])
    rivals = [r for r in RIVALS if r in gaps.over]
    for rival, marker, colour in zip(rivals, "s^vD", colours, strict=False):
        plot(rival, marker, colour, 4)
    plot(EXACT[LEU], "_", "#000000", 9)
    plot(EXACT[LEU_REFERENCES], "|", "#000000", 9)
    plot(POLICY, "o", COLOURS[0], 6, zorder=5)
    for i in range(1, len(names)):
        if names[i].suite != names[i - 1].suite:
            axes.axvline(i - 0.5, color="#bbbbbb", linewidth=0.8, linestyle=":")
    axes.set_xticks(range(len(names)), [at.name for at in names], rotation=90, fontsize=8)
    axes.set_yscale("log")
    axes.axhline(1, **LINE)
    axes.grid(axis="x", color="#eeeeee", linewidth=0.6)
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.yaxis.set_minor_formatter(lambda value, _: f"{value:g}" if value in (2, 3, 5) else "")
    axes.legend(frameon=False, fontsize=8, ncols=7, loc="upper center", bbox_to_anchor=(0.5, 1.12))
    return figure
