"""What is made of the runs: means by suite, half and level, the worst cases, and the gap."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from statistics import geometric_mean

from tidegate.papers.ledger import Claims, Finding, load_claims, percent
from tidegate.papers.results import Groups, Results
from tidegate.papers.tide.grid import MOVED
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
        yield claims["T1"].of("recorded").unmeasured(how)
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
            claim = claims["T1"].of(f"{suite} {half} {level}")
            yield claim.ratio(ahead, "ahead by", at_least=True, show=show)
    ratios = results.ratios(OURS, BASE)
    worst = max(ratios, key=lambda at: ratios[at])
    behind = [at.name for at in ratios if ratios[at] > MOST_BEHIND]
    why = f"behind on {', '.join(behind)}" if behind else ""
    ours = f"{ratios[worst]:.2f} ({worst.suite} {worst.name})"
    yield claims["T2"].of(level).holds(not behind, f"at most {MOST_BEHIND}", ours, why=why)


def moved_findings(claims: Claims, results: Results) -> Iterable[Finding]:
    """Yield T3, for all and each half, and T4."""
    gaps = moved(results, OURS)
    halves = {half: [at for at in gaps if at.half == half] for half in (DEVELOPED, HELD_BACK)}
    for name, wanted in {"all": list(gaps), **halves}.items():
        if wanted:
            mean = geometric_mean(gaps[at] for at in wanted)
            beside = geometric_mean(moved(results, "leu-observed")[at] for at in wanted)
            ours = f"{mean:.2f}; leu-observed {beside:.2f}"
            yield claims["T3"].of(name).holds(mean <= MOST_MOVED, f"at most {MOST_MOVED}", ours)
    worst = max(gaps, key=lambda at: gaps[at])
    ours = f"{gaps[worst]:.2f} ({worst.suite} {worst.name})"
    yield claims["T4"].holds(gaps[worst] <= WORST_MOVED, f"at most {WORST_MOVED}", ours)
