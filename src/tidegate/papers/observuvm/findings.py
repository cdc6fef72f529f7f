"""The findings on O1 to O13 and O16, from the grid of applications and systems."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from itertools import pairwise
from statistics import mean as average

from tidegate.experiments.runs import Run
from tidegate.machine.machine import load_machine
from tidegate.papers.comparisons import extremes, mean_of
from tidegate.papers.ledger import (
    TIE_WITHIN,
    Claim,
    Finding,
    find_dependence,
    load_claims,
    percent,
    signed,
)
from tidegate.papers.results import Measure, Results, find, part
from tidegate.policies.registries import prefetch

CLAIMS = load_claims("observuvm")
SINGLE = ("lru", "lfu", "cp")
BEST = {
    "lru": ("MM", "GMM", "HEL", "AN", "SN"),
    "lfu": ("SRK", "SR2", "GMV", "LU", "SPM", "BTR"),
    "cp": ("2DC", "BLK", "BFS"),
}
LRU_GAINS, CP_GAINS = ("MM", "GMM", "HEL"), ("2DC", "BLK")
LFU_GAINS = ("SRK", "SR2", "GMV", "LU", "SPM")
SHY, BOLD = 51, 1  # FDP's thresholds
SAME = 0.03  # O9's "within 3 %"
ABOUT = 0.5  # how far off "about 20 %" may be: a direction alone is not what was claimed


def grid_findings(results: Results) -> list[Finding]:
    """Return every finding that the grid allows."""
    return find(CLAIMS, _measures(), results)


def _measures() -> Iterator[Measure]:
    for named, applications in BEST.items():
        for a in applications:
            yield part("O1", a, best_eviction, a, named)
    yield part("O2", "", reduction, "tm", "uvm")
    yield part("O3", "", reduction, "tm++", "uvm")
    yield part("O3", "SPM", reduction, "tm++", "uvm", among=("SPM",), value=0.64)
    yield part("O3", "largest", largest_application)
    yield part("O4", "order", order_of_means)
    slower_than_none = "no application slower than uvm"
    yield part("O4", "none slower", none_slower, "tm++", "uvm", slower_than_none, strict=False)
    yield part("O5", "", over_best)
    yield part("O6", "evictions", reduction, "lru", "uvm", "evictions", LRU_GAINS)
    yield part("O6", "time", reduction, "lru", "uvm", "time", LRU_GAINS, 0.14)
    yield part("O6", "time at most", largest, "lru", "uvm", 0.20, LRU_GAINS)
    yield part("O7", "evictions", reduction, "cp", "uvm", "evictions", CP_GAINS)
    yield part("O7", "time", reduction, "cp", "uvm", "time", CP_GAINS, 0.34)
    yield part("O8", "evictions", reduction, "lfu", "uvm", "evictions", LFU_GAINS)
    yield part("O8", "time", reduction, "lfu", "uvm", "time", LFU_GAINS, 0.16)
    yield part("O8", "time at most", largest, "lfu", "uvm", 0.58, LFU_GAINS)
    for a in ("AN", "SN"):
        yield part("O9", a, same_time, a)
    yield part("O10", "tm/uvm", reduction, "tm", "uvm", "faults")
    yield part("O10", "tm+/tm", reduction, "tm+", "tm", "faults", value=0.36)
    yield part("O10", "tm++/tm+", reduction, "tm++", "tm+", "faults", value=0.09)
    for a in (name for group in BEST.values() for name in group):
        yield part("O11", a, final_threshold, a)
    for a in ("MM", "GMM"):
        yield part("O12", a, slower, a, "acbm", "uvm")
    each = "tm++ faster for every application"
    yield part("O12", "each", none_slower, "tm++", "acbm", each, strict=True)
    yield part("O12", "mean", faster_on_average, "tm++", "acbm", 0.20)
    yield part("O13", "GMM prefetch", more_unused)
    yield part("O13", "GMM", slower, "GMM", "ea", "uvm")
    yield part("O13", "mean", faster_on_average, "tm++", "ea", 0.20)
    yield part("O13", "largest", largest, "tm++", "ea", 0.36, within=ABOUT)
    yield part("O16", "", overhead, None, 0)
    yield part("O16", "moving pages", overhead, 0.024, 1)
    yield part("O16", "telling and asking", overhead, 0.018, 2)


# Findings on any two systems


def reduction(
    claim: Claim,
    r: Results,
    system: str,
    base: str,
    what: str = "time",
    among: Iterable[str] = (),
    value: float | None = None,
) -> Finding:
    """Compare the geometric mean reduction of time or a count."""
    every = r.ratios(system, base, what, among)
    left_out = [a for a in among if a not in every]
    missing = f"; not run: {', '.join(left_out)}" if left_out else ""

    def judge(ratios: Mapping[str, float]) -> Finding:
        mean, why = mean_of(ratios), f"by application: {extremes(ratios)}"
        shown = mean.text + missing
        return claim.ratio(mean.reduction, f"{what} less by", value=value, show=shown, why=why)

    return find_dependence(judge, every)


def largest(
    claim: Claim,
    r: Results,
    system: str,
    base: str,
    value: float,
    among: Iterable[str] = (),
    within: float | None = None,
) -> Finding:
    """Compare the largest reduction of time."""
    ratios = r.ratios(system, base, "time", among)
    best = min(ratios, key=lambda a: ratios[a])
    less, why = 1 - ratios[best], f"by application: {extremes(ratios)}"
    show = f"{percent(less)} ({best})"
    return claim.ratio(less, "up to", value=value, within=within, show=show, why=why)


def faster_on_average(claim: Claim, r: Results, system: str, base: str, value: float) -> Finding:
    """Compare the mean reduction with one that the paper gives as "about" so much."""
    said = f"{system} faster by about"

    def judge(ratios: Mapping[str, float]) -> Finding:
        mean, why = mean_of(ratios), f"by application: {extremes(ratios)}"
        show = mean.text
        return claim.ratio(mean.reduction, said, value=value, within=ABOUT, show=show, why=why)

    return find_dependence(judge, r.ratios(system, base))


def none_slower(
    claim: Claim, r: Results, system: str, base: str, paper: str, strict: bool
) -> Finding:
    """Compare that no application takes longer (``strict``: each takes less)."""
    ratios = r.ratios(system, base)
    worst = max(ratios, key=lambda a: ratios[a])
    faster = sum(ratio <= 1 for ratio in ratios.values())
    ours = f"{faster} of {len(ratios)}; the slowest is {worst} {signed(ratios[worst] - 1)}"
    why = partial(r.because, worst, system, base)
    return claim.sign(1 - ratios[worst], paper, ours, strict=strict, why=why)


def slower(claim: Claim, r: Results, application: str, system: str, base: str) -> Finding:
    """Compare that one application takes longer."""
    gap = r.ratio(application, system, base) - 1
    said, why = f"{system} slower than {base}", partial(r.because, application, system, base)
    return claim.sign(gap, said, signed(gap), why=why)


# Findings on one claim


def best_eviction(claim: Claim, r: Results, application: str, named: str) -> Finding:
    """O1"""
    times = {s: r.run(application, s).time for s in SINGLE}
    best = min(times, key=lambda s: times[s])
    uvm = r.run(application, "uvm").time / times[best] - 1
    # the driver's own policy is better than all three
    beside = f"; uvm {signed(uvm)}" if uvm < -TIE_WITHIN else ""
    why = partial(r.because, application, named, best)
    return claim.winner(named, times, beside=beside, why=why)


def largest_application(claim: Claim, r: Results) -> Finding:
    """O3: SPM gains most."""
    ratios = r.ratios("tm++", "uvm")
    first_two = dict(sorted(ratios.items(), key=lambda item: item[1])[:2])
    times = {"SPM": r.ratio("SPM", "tm++", "uvm"), **first_two}
    why = partial(r.because, next(iter(first_two)), "tm++", "uvm")
    return claim.winner("SPM", times, why=why)


def order_of_means(claim: Claim, r: Results) -> Finding:
    """O4"""
    means = {s: mean_of(r.ratios(s, "uvm")).value for s in ("tm++", "tm+", "tm", "uvm")}
    wrong = [(low, high) for low, high in pairwise(means) if means[low] >= means[high]]
    why = (f"{low} over {high}: {extremes(r.ratios(low, high))}" for low, high in wrong)
    return claim.order(means, why="; ".join(why))


def over_best(claim: Claim, r: Results) -> Finding:
    """O5: the tournament's time over that of its best member."""
    every = {}
    for a in r.ratios("tm", "uvm"):
        every[a] = r.run(a, "tm").time / min(r.run(a, s).time for s in SINGLE)
    losing = [a for a, ratio in every.items() if ratio > 1 + TIE_WITHIN]
    kept = ", ".join(f"{a} {contestants_left(r, a) or '?'}" for a in losing)

    def judge(ratios: Mapping[str, float]) -> Finding:
        mean = mean_of(ratios)
        names = ", ".join(mean.dominators)
        without = f" ({signed(mean.without - 1)} without {names})" if names else ""
        why = f"by application: {extremes(ratios)}; policies kept: {kept or 'the best, or as good'}"
        show = f"{signed(mean.value - 1)}{without}"
        return claim.ratio(mean.value - 1, "time more by", show=show, why=why)

    return find_dependence(judge, every)


def same_time(claim: Claim, r: Results, application: str) -> Finding:
    """O9"""
    gap = r.ratio(application, "lru", "uvm") - 1
    said, why = f"lru within {SAME:.0%} of uvm", partial(r.because, application, "lru", "uvm")
    return claim.holds(abs(gap) <= SAME, said, signed(gap), why=why)


def final_threshold(claim: Claim, r: Results, application: str) -> Finding:
    """O11"""
    report = r.run(application, "tm+").facts.get("policy_report", {})
    if "threshold" not in report:
        return claim.unmeasured("the run does not report FDP's last threshold")
    rule = {name: option.default for name, option in prefetch.find("fdp").options().items()}
    why = (
        f"{report.get('useful', '?')} of {report.get('verdicts', '?')} watched prefetches were "
        f"used; FDP is bold after more than {rule['enough']} of them, if more than "
        f"{percent(rule['share'])} were"
    )
    return claim.exact(report["threshold"], SHY if application == "GMM" else BOLD, why=why)


def more_unused(claim: Claim, r: Results) -> Finding:
    """O13: EarlyAdaptor prefetches too much for GMM."""
    ea, uvm = (unused_share(r.run("GMM", s)) for s in ("ea", "uvm"))
    said = "more pages come in vain than under uvm"
    ours = f"{ea:.1%} of evicted pages, {uvm:.1%} under uvm"
    return claim.sign(ea - uvm, said, ours, why=partial(r.because, "GMM", "ea", "uvm"))


def unused_share(run: Run) -> float:
    """Return the share of evicted pages that were never touched while near."""
    return run.counts["pages_unused"] / max(run.counts["pages_evicted"], 1)


def overhead(claim: Claim, r: Results, value: float | None, which: int) -> Finding:
    """O16"""
    shares = {a: overheads(r.run(a, "tm++"))[which] for a in r.ratios("tm++", "uvm")}
    most = max(shares, key=lambda a: shares[a])
    why = f"most in {most} ({percent(shares[most])})"
    return claim.ratio(average(shares.values()), "of time", value=value, why=why)


def overheads(run: Run) -> tuple[float, float, float]:
    """Return policy overhead as a share of time: all, for moving sampled pages, and the rest.

    The run has the whole; it is divided by the cost of its counts at the machine's
    constants.
    """
    machine, c, page = load_machine(run.facts["machine"]), run.counts, run.facts["page_bytes"]
    driver, link = machine.driver, machine.link
    out = driver.sample + page / link.outward
    home = link.run_overhead + page / link.inward
    moving = c["pages_sampled"] * out + c["pages_home"] * home
    telling = c["decisions"] * driver.decision + c["notifications"] * driver.notification
    whole = run.parts["policy_overhead"] / run.time
    share = moving / (moving + telling) if moving + telling else 0.0
    return whole, whole * share, whole * (1 - share)


def contestants_left(results: Results, application: str) -> str:
    """Return the policies that the tournament had not retired at the end."""
    run = results.runs.get((application, "tm"))
    return "" if run is None else "/".join(run.facts.get("policy_report", {}).get("left", []))
