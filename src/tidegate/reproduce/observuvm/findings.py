"""The findings on O1 to O13 and O16: what can be said from the grid of applications and systems."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from statistics import mean as average
from typing import Any

from tidegate.experiments.runs import Run
from tidegate.machine.machine import load_machine
from tidegate.policies.registries import prefetch
from tidegate.reproduce.causes import compare_runs
from tidegate.reproduce.ledger import TIE_WITHIN, Claim, Finding, load_claims, percent, signed
from tidegate.reproduce.means import extremes, mean_of
from tidegate.reproduce.results import NotRun, Results

CLAIMS = load_claims("observuvm")
SINGLE = ("lru", "lfu", "cp")
BEST = {
    "lru": ("MM", "GMM", "HEL", "AN", "SN"),
    "lfu": ("SRK", "SR2", "GMV", "LU", "SPM", "BTR"),
    "cp": ("2DC", "BLK", "BFS"),
}
LRU_GAINS, CP_GAINS, LFU_GAINS = (
    ("MM", "GMM", "HEL"),
    ("2DC", "BLK"),
    ("SRK", "SR2", "GMV", "LU", "SPM"),
)
SHY, BOLD = 51, 1  # FDP's thresholds
SAME = 0.03  # O9's "within 3 %"


def findings_of(results: Results) -> list[Finding]:
    """Every finding that the grid allows; what was not run is said not to be measured."""
    return [
        finding
        for claim, measure in _MEASURES.items()
        for finding in measure(CLAIMS[claim], results)
    ]


def attempt(
    claim: Claim, part: str, make: Callable[..., Finding], *given: Any, **named: Any
) -> Finding:
    """The finding, or a note that something it needs was not run."""
    try:
        return make(claim, part, *given, **named)
    except NotRun as missing:
        return claim.unmeasured(str(missing), part=part)


# Building blocks


def reduction(
    claim: Claim,
    part: str,
    r: Results,
    system: str,
    base: str,
    what: str = "time",
    among: Iterable[str] = (),
    value: float | None = None,
) -> Finding:
    """The geometric mean reduction of time or a count, near the paper's."""
    ratios = r.ratios(system, base, what, among)
    mean = mean_of(ratios)
    left_out = [a for a in among if a not in ratios]
    shown = mean.text + (f"; not run: {', '.join(left_out)}" if left_out else "")
    return claim.ratio(
        mean.reduction,
        f"{what} less by",
        part=part,
        value=value,
        show=shown,
        why=lambda: f"by application: {extremes(ratios)}",
    )


def largest(
    claim: Claim,
    part: str,
    r: Results,
    system: str,
    base: str,
    value: float,
    among: Iterable[str] = (),
) -> Finding:
    """The largest reduction of time, near the paper's."""
    ratios = r.ratios(system, base, "time", among)
    best = min(ratios, key=lambda a: ratios[a])
    return claim.ratio(
        1 - ratios[best],
        "up to",
        part=part,
        value=value,
        show=f"{percent(1 - ratios[best])} ({best})",
        why=lambda: f"by application: {extremes(ratios)}",
    )


def faster_on_average(
    claim: Claim, part: str, r: Results, system: str, base: str, paper: str
) -> Finding:
    ratios = r.ratios(system, base)
    mean, best = mean_of(ratios), min(ratios, key=lambda a: ratios[a])
    ours = f"{mean.text}, up to {percent(1 - ratios[best])} ({best})"
    return claim.sign(
        mean.reduction, paper, ours, part=part, why=lambda: f"by application: {extremes(ratios)}"
    )


def none_slower(
    claim: Claim, part: str, r: Results, system: str, base: str, paper: str, strict: bool
) -> Finding:
    """No application takes longer (``strict``: each takes less)."""
    ratios = r.ratios(system, base)
    worst = max(ratios, key=lambda a: ratios[a])
    slower = {a: x for a, x in ratios.items() if x > 1}
    ours = f"{len(ratios) - len(slower)} of {len(ratios)}; the slowest is {worst} {signed(ratios[worst] - 1)}"
    return claim.sign(
        1 - ratios[worst],
        paper,
        ours,
        part=part,
        strict=strict,
        why=lambda: because(r, worst, system, base),
    )


def slower(claim: Claim, application: str, r: Results, system: str, base: str) -> Finding:
    """One application takes longer."""
    gap = r.ratio(application, system, base) - 1
    return claim.sign(
        gap,
        f"{system} slower than {base}",
        signed(gap),
        part=application,
        why=lambda: because(r, application, system, base),
    )


def because(r: Results, application: str, system: str, base: str) -> str:
    return f"{application}: " + compare_runs(
        r.run(application, system), system, r.run(application, base), base
    )


# Claim by claim


def best_eviction(claim: Claim, r: Results) -> Iterator[Finding]:
    """O1"""
    for named, applications in BEST.items():
        for a in applications:
            yield attempt(claim, a, _best_of, r, named)


def _best_of(claim: Claim, application: str, r: Results, named: str) -> Finding:
    times = {s: r.run(application, s).time for s in SINGLE}
    best = min(times, key=lambda s: times[s])
    uvm = r.run(application, "uvm").time / times[best] - 1
    # the driver's own policy is better than all three
    beside = f"; uvm {signed(uvm)}" if uvm < -TIE_WITHIN else ""
    return claim.winner(
        named,
        times,
        part=application,
        beside=beside,
        why=lambda: because(r, application, named, best),
    )


def tournament_gains(claim: Claim, r: Results) -> Iterator[Finding]:
    """O2"""
    yield attempt(claim, "", reduction, r, "tm", "uvm")


def all_gains(claim: Claim, r: Results) -> Iterator[Finding]:
    """O3"""
    yield attempt(claim, "", reduction, r, "tm++", "uvm")
    yield attempt(claim, "SPM", reduction, r, "tm++", "uvm", among=("SPM",), value=0.64)
    yield attempt(claim, "largest", _largest_is, r)


def _largest_is(claim: Claim, part: str, r: Results) -> Finding:
    ratios = r.ratios("tm++", "uvm")
    best = min(ratios, key=lambda a: ratios[a])
    return claim.winner(
        "SPM",
        {"SPM": r.ratio("SPM", "tm++", "uvm"), best: ratios[best], **_second(ratios)},
        part=part,
        why=lambda: because(r, best, "tm++", "uvm"),
    )


def _second(ratios: dict[str, float]) -> dict[str, float]:
    return dict(sorted(ratios.items(), key=lambda item: item[1])[:2])


def each_step_helps(claim: Claim, r: Results) -> Iterator[Finding]:
    """O4"""
    yield attempt(claim, "order", _order_of_means, r)
    yield attempt(
        claim,
        "none slower",
        none_slower,
        r,
        "tm++",
        "uvm",
        "no application slower than uvm",
        strict=False,
    )


def _order_of_means(claim: Claim, part: str, r: Results) -> Finding:
    means = {s: mean_of(r.ratios(s, "uvm")).value for s in ("tm++", "tm+", "tm", "uvm")}
    return claim.order(means, part=part, why=lambda: _which_step(r, means))


def _which_step(r: Results, means: dict[str, float]) -> str:
    names = list(means)
    wrong = [(low, high) for low, high in pairwise(names) if means[low] >= means[high]]
    return "; ".join(f"{low} over {high}: {extremes(r.ratios(low, high))}" for low, high in wrong)


def tournament_costs(claim: Claim, r: Results) -> Iterator[Finding]:
    """O5"""
    yield attempt(claim, "", _over_best, r)


def _over_best(claim: Claim, part: str, r: Results) -> Finding:
    ratios = {}
    for a in r.ratios("tm", "uvm"):
        best = min(r.run(a, s).time for s in SINGLE)
        ratios[a] = r.run(a, "tm").time / best
    mean = mean_of(ratios)
    without = (
        f" ({signed(mean.without - 1)} without {', '.join(mean.dominators)})"
        if mean.dominators
        else ""
    )
    return claim.ratio(
        mean.value - 1,
        "time more by",
        part=part,
        show=f"{signed(mean.value - 1)}{without}",
        why=lambda: f"by application: {extremes(ratios)}; policies kept: {_kept(r, ratios)}",
    )


def _kept(r: Results, ratios: dict[str, float]) -> str:
    """Which policies the tournaments did not retire, where they lose time."""
    losing = [a for a, ratio in ratios.items() if ratio > 1 + TIE_WITHIN]
    left = {a: r.run(a, "tm").facts.get("policy_report", {}).get("left", ["?"]) for a in losing}
    return (
        ", ".join(f"{a} {'/'.join(names)}" for a, names in left.items()) or "the best, or as good"
    )


def gains_by_lru(claim: Claim, r: Results) -> Iterator[Finding]:
    """O6"""
    yield attempt(claim, "evictions", reduction, r, "lru", "uvm", "evictions", LRU_GAINS)
    yield attempt(claim, "time", reduction, r, "lru", "uvm", "time", LRU_GAINS, value=0.14)
    yield attempt(claim, "time at most", largest, r, "lru", "uvm", 0.20, LRU_GAINS)


def gains_by_cp(claim: Claim, r: Results) -> Iterator[Finding]:
    """O7"""
    yield attempt(claim, "evictions", reduction, r, "cp", "uvm", "evictions", CP_GAINS)
    yield attempt(claim, "time", reduction, r, "cp", "uvm", "time", CP_GAINS, value=0.34)


def gains_by_lfu(claim: Claim, r: Results) -> Iterator[Finding]:
    """O8"""
    yield attempt(claim, "evictions", reduction, r, "lfu", "uvm", "evictions", LFU_GAINS)
    yield attempt(claim, "time", reduction, r, "lfu", "uvm", "time", LFU_GAINS, value=0.16)
    yield attempt(claim, "time at most", largest, r, "lfu", "uvm", 0.58, LFU_GAINS)


def no_gain_by_lru(claim: Claim, r: Results) -> Iterator[Finding]:
    """O9"""
    for a in ("AN", "SN"):
        yield attempt(claim, a, _same_time, r)


def _same_time(claim: Claim, application: str, r: Results) -> Finding:
    gap = r.ratio(application, "lru", "uvm") - 1
    return claim.holds(
        abs(gap) <= SAME,
        f"lru within {SAME:.0%} of uvm",
        signed(gap),
        part=application,
        why=lambda: because(r, application, "lru", "uvm"),
    )


def fewer_faults(claim: Claim, r: Results) -> Iterator[Finding]:
    """O10"""
    yield attempt(claim, "tm/uvm", reduction, r, "tm", "uvm", "faults")
    yield attempt(claim, "tm+/tm", reduction, r, "tm+", "tm", "faults", value=0.36)
    yield attempt(claim, "tm++/tm+", reduction, r, "tm++", "tm+", "faults", value=0.09)


def final_threshold(claim: Claim, r: Results) -> Iterator[Finding]:
    """O11"""
    for a in (name for group in BEST.values() for name in group):
        yield attempt(claim, a, _threshold, r)


def _threshold(claim: Claim, application: str, r: Results) -> Finding:
    report = r.run(application, "tm+").facts.get("policy_report", {})
    if "threshold" not in report:
        return claim.unmeasured("the run does not say where FDP ended", part=application)
    rule = {name: option.default for name, option in prefetch.find("fdp").options().items()}
    told = (
        f"{report.get('useful', '?')} of {report.get('verdicts', '?')} watched prefetches were used; FDP is bold after more "
        f"than {rule['enough']} of them, if more than {percent(rule['share'])} were"
    )
    return claim.exact(
        report["threshold"], SHY if application == "GMM" else BOLD, part=application, why=told
    )


def against_acbm(claim: Claim, r: Results) -> Iterator[Finding]:
    """O12"""
    for a in ("MM", "GMM"):
        yield attempt(claim, a, slower, r, "acbm", "uvm")
    yield attempt(
        claim,
        "each",
        none_slower,
        r,
        "tm++",
        "acbm",
        "tm++ faster for every application",
        strict=True,
    )
    yield attempt(claim, "mean", faster_on_average, r, "tm++", "acbm", "tm++ faster, about 20 %")


def against_ea(claim: Claim, r: Results) -> Iterator[Finding]:
    """O13"""
    yield attempt(claim, "GMM prefetch", _unused, r)
    yield attempt(claim, "GMM", slower, r, "ea", "uvm")
    yield attempt(
        claim, "mean", faster_on_average, r, "tm++", "ea", "tm++ faster, about 20 %, up to 36 %"
    )


def _unused(claim: Claim, part: str, r: Results) -> Finding:
    ea, uvm = (unused_share(r.run("GMM", s)) for s in ("ea", "uvm"))
    ours = f"{ea:.1%} of evicted pages, {uvm:.1%} under uvm"
    return claim.sign(
        ea - uvm,
        "more pages come in vain than under uvm",
        ours,
        part=part,
        why=lambda: because(r, "GMM", "ea", "uvm"),
    )


def unused_share(run: Run) -> float:
    """The share of evicted pages that were never touched while near."""
    return run.counts["pages_unused"] / max(run.counts["pages_evicted"], 1)


def overhead(claim: Claim, r: Results) -> Iterator[Finding]:
    """O16"""
    for part, value, which in (
        ("", None, 0),
        ("moving pages", 0.024, 1),
        ("telling and asking", 0.018, 2),
    ):
        yield attempt(claim, part, _overhead, r, value, which)


def _overhead(claim: Claim, part: str, r: Results, value: float | None, which: int) -> Finding:
    shares = {a: overheads(r.run(a, "tm++"))[which] for a in r.ratios("tm++", "uvm")}
    most = max(shares, key=lambda a: shares[a])
    return claim.ratio(
        average(shares.values()),
        "of time",
        part=part,
        value=value,
        why=lambda: f"most in {most} ({percent(shares[most])})",
    )


def overheads(run: Run) -> tuple[float, float, float]:
    """Policy overhead as a share of time: all of it, for moving sampled pages, and for the rest.

    The run's books have the whole; it is divided by what the counts cost at the machine's
    constants.
    """
    machine, c, page = load_machine(run.facts["machine"]), run.counts, run.facts["page_bytes"]
    out = machine.driver.sample + page / machine.link.outward
    home = machine.link.run_overhead + page / machine.link.inward
    moving = c["pages_sampled"] * out + c["pages_home"] * home
    telling = (
        c["decisions"] * machine.driver.decision + c["notifications"] * machine.driver.notification
    )
    whole = run.parts["policy_overhead"] / run.time
    share = moving / (moving + telling) if moving + telling else 0.0
    return whole, whole * share, whole * (1 - share)


_MEASURES: dict[str, Callable[[Claim, Results], Iterator[Finding]]] = {
    "O1": best_eviction,
    "O2": tournament_gains,
    "O3": all_gains,
    "O4": each_step_helps,
    "O5": tournament_costs,
    "O6": gains_by_lru,
    "O7": gains_by_cp,
    "O8": gains_by_lfu,
    "O9": no_gain_by_lru,
    "O10": fewer_faults,
    "O11": final_threshold,
    "O12": against_acbm,
    "O13": against_ea,
    "O16": overhead,
}
