"""The findings on T1 to T6, and their figures."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from statistics import geometric_mean

import polars as pl
from matplotlib.figure import Figure

from tidegate.display.figures import COLOURS
from tidegate.papers.ledger import Claims, Finding, load_claims, percent
from tidegate.papers.pictures import LINE, new_axes
from tidegate.papers.report import Exhibit, make_exhibit
from tidegate.papers.results import Groups, Results
from tidegate.papers.tide.grid import CONSTANTS, MOVED, tried
from tidegate.papers.tide.setup import (
    BASE,
    BEST,
    DEVELOPED,
    HELD_BACK,
    OURS,
    SUITES,
    Application,
    Setup,
)

MOST_BEHIND, MOST_MOVED, WORST_MOVED = 1.05, 1.2, 2.5  # the targets


def among(results: Results, suite: str, half: str) -> list[Application]:
    """Return the applications of one half of a suite."""
    return [at for at in results.applications if (at.suite, at.half) == (suite, half)]


def means(results: Results, suite: str, half: str) -> dict[str, float]:
    """Return the geometric mean of time over uvm's, by system, the best published one first."""
    applications = among(results, suite, half)
    found = {
        system: geometric_mean(results.ratios(system, BASE, among=applications).values())
        for system in (OURS, *SUITES[suite].rivals)
        if applications
    }
    return dict(sorted(found.items(), key=lambda item: (item[0] == OURS, item[1])))


def moved(results: Results, policy: str) -> dict[Application, float]:
    """Return the pages that a policy brings in over Belady's."""
    return results.ratios(policy, BEST, "pages_in")


def all_findings(setup: Setup, results: Groups) -> Iterator[Finding]:
    """Yield the findings on all claims."""
    claims = load_claims(OURS)
    for level in setup.levels:
        yield from time_findings(claims, level, results[level])
    yield from moved_findings(claims, results[MOVED])
    if not setup.recorded:
        how = "give --recorded FOLDER; benchmarks.own_programs records programs into one"
        yield claims["T1"].for_part("recorded").unmeasured(how)
    yield claims["T5"].unmeasured(
        "benchmarks.live_patterns measures it; figures in docs/live-costs.md"
    )
    yield claims["T6"].unmeasured("benchmarks.policy_events measures it; figures in docs/tide.md")


def time_findings(claims: Claims, level: str, results: Results) -> Iterable[Finding]:
    """Yield T1 for each half of each suite, and T2 for all."""
    for suite in SUITES:
        for half in (DEVELOPED, HELD_BACK):
            own = means(results, suite, half)
            if not own:
                continue
            best = next(iter(own))
            ahead = 1 - own[OURS] / own[best]
            show = f"{percent(ahead)}: {own[OURS]:.2f} of uvm's time, {best} {own[best]:.2f}"
            claim = claims["T1"].for_part(f"{suite} {half} {level}")
            yield claim.ratio(ahead, "ahead by", at_least=True, show=show)
    ratios = results.ratios(OURS, BASE)
    worst = max(ratios, key=lambda at: ratios[at])
    behind = [at.name for at in ratios if ratios[at] > MOST_BEHIND]
    why = f"behind on {', '.join(behind)}" if behind else ""
    ours = f"{ratios[worst]:.2f} ({worst.suite} {worst.name})"
    yield claims["T2"].for_part(level).holds(not behind, f"at most {MOST_BEHIND}", ours, why=why)


def moved_findings(claims: Claims, results: Results) -> Iterable[Finding]:
    """Yield T3, for all and each half, and T4."""
    gaps = moved(results, OURS)
    halves = {half: [at for at in gaps if at.half == half] for half in (DEVELOPED, HELD_BACK)}
    for name, wanted in {"all": list(gaps), **halves}.items():
        if wanted:
            mean = geometric_mean(gaps[at] for at in wanted)
            beside = geometric_mean(moved(results, "leu-observed")[at] for at in wanted)
            ours = f"{mean:.2f}; leu-observed {beside:.2f}"
            yield (
                claims["T3"].for_part(name).holds(mean <= MOST_MOVED, f"at most {MOST_MOVED}", ours)
            )
    worst = max(gaps, key=lambda at: gaps[at])
    ours = f"{gaps[worst]:.2f} ({worst.suite} {worst.name})"
    yield claims["T4"].holds(gaps[worst] <= WORST_MOVED, f"at most {WORST_MOVED}", ours)


def all_figures(setup: Setup, results: Groups) -> Iterator[Exhibit]:
    """Yield a figure of times for each level, and the gap to Belady."""
    for level in setup.levels:
        title = f"time over uvm's, {level} more than fits: tide beside the best published system"
        table = time_table(results[level])
        yield make_exhibit(OURS, f"Time {level}", title, table, partial(draw_ratios, table, BASE))
    gaps = {p: moved(results[MOVED], p) for p in (OURS, "leu-observed")}
    rows = [
        {"suite": at.suite, "half": at.half, "application": at.name}
        | {policy: gaps[policy][at] for policy in gaps}
        for at in gaps[OURS]
    ]
    table, title = pl.DataFrame(rows), "pages brought in over Belady's, by eviction alone"
    yield make_exhibit(OURS, "Gap", title, table, partial(draw_ratios, table, "belady"))
    if tried(setup):
        table = constants_table(setup, results[CONSTANTS])
        title = f"tide with a constant halved or doubled: time over uvm's, {setup.levels[0]}"
        yield make_exhibit(OURS, "Constants", title, table, partial(draw_constants, table))


def constants_table(setup: Setup, results: Results) -> pl.DataFrame:
    """Return the geometric mean and the worst of time over uvm's, by changed constant."""
    systems = [OURS, *(f"{part} {name}={value:g}" for part, name, value in setup.changed())]
    rows = []
    for system in systems:
        ratios = results.ratios(system, BASE)
        mean, worst = geometric_mean(ratios.values()), max(ratios, key=lambda at: ratios[at])
        rows.append({"tide with": system, "mean": mean, "worst": ratios[worst], "at": worst.name})
    return pl.DataFrame(rows)


def draw_constants(table: pl.DataFrame) -> Figure:
    """Draw a bar for each changed constant; a line marks the defaults."""
    figure, axes = new_axes(8, 5, xlabel="time over uvm's, geometric mean")
    names, means = table["tide with"].to_list(), table["mean"].to_list()
    axes.barh(names[1:], means[1:], color=COLOURS[1])
    axes.axvline(means[0], color=COLOURS[0], label="defaults")
    axes.invert_yaxis()
    axes.tick_params(axis="y", labelsize=8)
    axes.legend(frameon=False, fontsize=8)
    return figure


def time_table(results: Results) -> pl.DataFrame:
    """Return each application's time over uvm's, under tide and the half's best published one."""
    rows = []
    for suite in SUITES:
        for half in (DEVELOPED, HELD_BACK):
            if not (own := means(results, suite, half)):
                continue
            best = next(name for name in own if name != OURS)
            for at in among(results, suite, half):
                ratios = {OURS: OURS, "published": best}
                rows.append(
                    {"suite": suite, "half": half, "application": at.name, "best": best}
                    | {column: results.ratio(at, s, BASE) for column, s in ratios.items()}
                )
    return pl.DataFrame(rows)


def draw_ratios(table: pl.DataFrame, base: str) -> Figure:
    """Draw a column per application, those developed on first; ours as discs."""
    table = table.sort("suite", "half", maintain_order=True)
    limits = (-0.7, len(table) - 0.3)
    figure, axes = new_axes(12, 4.2, ylabel=f"over {base}'s", xlim=limits)
    other = table.columns[-1]
    axes.plot(table[other], "s", color=COLOURS[1], markersize=5, label=other)
    axes.plot(table[OURS], "o", color=COLOURS[0], markersize=6, label=OURS, zorder=5)
    halves = [f"{row['suite']}, {row['half']}" for row in table.to_dicts()]
    for i, name in enumerate(halves):
        if i == 0 or name != halves[i - 1]:
            axes.axvline(i - 0.5, color="#bbbbbb", linewidth=0.8, linestyle=":")
            axes.text(i - 0.4, 1.01, name, fontsize=7, transform=axes.get_xaxis_transform())
    axes.set_yscale("log")
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.yaxis.set_minor_formatter(lambda value, _: f"{value:g}" if value in (0.2, 0.5, 2) else "")
    axes.axhline(1, **LINE)
    axes.grid(axis="x", color="#eeeeee", linewidth=0.6)
    axes.set_xticks(range(len(table)), table["application"], rotation=90, fontsize=8)
    axes.legend(frameon=False, fontsize=8, loc="lower left")
    return figure
