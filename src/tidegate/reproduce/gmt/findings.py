"""The findings on G1 to G8, at the first of the sizes that were run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from statistics import geometric_mean

from tidegate.reproduce.gmt.setup import BASE
from tidegate.reproduce.ledger import Claim, Finding, load_claims, percent, signed
from tidegate.reproduce.results import NotRun, Results

CLAIMS = load_claims("gmt")
SPEEDUPS = {
    "LavaMD": 0.88,
    "Pathfinder": 1.25,
    "BFS": 1.28,
    "MultiVectorAdd": 1.40,
    "Srad": 2.33,
    "Backprop": 2.79,
    "PageRank": 1.18,
    "SSSP": 1.13,
    "Hotspot": 2.25,
}
REUSE = {
    "LavaMD": 0.0117,
    "Pathfinder": 0.1947,
    "BFS": 0.3286,
    "MultiVectorAdd": 0.40,
    "Srad": 0.8338,
    "Backprop": 0.9354,
    "PageRank": 0.9042,
    "SSSP": 0.7996,
    "Hotspot": 0.8133,
}


def findings_of(r: Results) -> list[Finding]:
    """Every finding that the runs allow; what was not run is said not to be measured."""
    return [
        finding for claim, measure in _MEASURES.items() for finding in measure(CLAIMS[claim], r)
    ]


def attempt(claim: Claim, part: str, make: Callable[[], Finding]) -> Finding:
    """The finding, or a note that something it needs was not run."""
    try:
        return make()
    except NotRun as missing:
        return claim.unmeasured(str(missing), part=part)


# What is known to make an application differ, beyond what its books say. From Table 2 and index
# functions; MultiVectorAdd's parity was also tried.
CAUSES = {
    "BFS": "Table 2's 87 GB of I/O over GAP-Kron's 34 GB of lists are a reuse of 62 %, its other column says 33 %; nodes of "
    "all levels share a page (8192 entries, some 256 nodes), so that every main level visits every page",
    "MultiVectorAdd": "a knife-edge: victims and misses alternate between input and output, so that an "
    "even number of Tier-1 "
    "pages keeps the output in a full Tier-2 and an odd number the inputs",
    "Hotspot": "Table 2's 279 GB are 3.5 times both tiers, which can save 80 / 279 of the reads at most; "
    "the paper's 73 % would "
    "need a grid not much larger than the tiers",
}


def because(r: Results, application: str, system: str) -> str:
    """What the books say of one application under one placement, against BaM."""
    run, base = r.run(application, system), r.run(application, BASE)
    c, f = run.counts, base.facts
    reads, moved = (
        r.ratio(application, system, BASE, what) - 1 for what in ("far_reads", "far_moved")
    )
    over = f["footprint_bytes"] / (run.facts["near_bytes"] + run.facts["middle_bytes"])
    known = f"; {CAUSES[application]}" if application in CAUSES else ""
    return (
        f"SSD reads {signed(reads)}, reads and writes {signed(moved)}; {c['middle_hits']:,} of "
        f"{c['faults']:,} misses found in "
        f"Tier-2; footprint {over:.2f} times both tiers{known}"
    )


def mean_speedup(r: Results, system: str, base: str = BASE) -> float:
    """Geometric: only so do the paper's nine speed-ups make its 1.50."""
    return geometric_mean(r.ratios(base, system).values())


def by_application(claim: Claim, r: Results) -> Iterator[Finding]:
    """G1"""
    for a, value in SPEEDUPS.items():
        yield attempt(
            claim,
            a,
            lambda a=a, value=value: claim.ratio(  # type: ignore[misc]
                r.ratio(a, BASE, "tier-reuse"),
                part=a,
                value=value,
                unit=_times,
                why=lambda: because(r, a, "tier-reuse"),
            ),
        )


def means(claim: Claim, r: Results) -> Iterator[Finding]:
    """G2"""
    for system, value in (("tier-order", 1.07), ("tier-random", 1.24), ("tier-reuse", 1.50)):
        yield attempt(
            claim,
            system,
            lambda s=system, v=value: claim.ratio(  # type: ignore[misc]
                mean_speedup(r, s),
                part=s,
                value=v,
                unit=_times,
                why=lambda: ", ".join(f"{a} {_times(g)}" for a, g in r.ratios(BASE, s).items()),
            ),
        )


def reductions(claim: Claim, r: Results) -> Iterator[Finding]:
    """G3"""
    for a, value in (("Srad", 0.73), ("Backprop", 0.81), ("Hotspot", 0.73)):
        yield attempt(
            claim,
            a,
            lambda a=a, v=value: claim.ratio(  # type: ignore[misc]
                1 - r.ratio(a, "tier-reuse", BASE, "far_moved"),
                part=a,
                value=v,
                why=lambda: because(r, a, "tier-reuse"),
            ),
        )


def reuse_shares(claim: Claim, r: Results) -> Iterator[Finding]:
    """G4"""
    for a, value in REUSE.items():
        yield attempt(
            claim,
            a,
            lambda a=a, v=value: claim.ratio(  # type: ignore[misc]
                r.run(a, BASE).facts["reuse"],
                part=a,
                value=v,
                why=CAUSES.get(a, "see the workload's own comment"),
            ),
        )


def remaining(claim: Claim, r: Results) -> Iterator[Finding]:
    """G5"""
    for a, tier, value in (
        ("Pathfinder", 1, 0.9999),
        ("PageRank", 3, 0.94),
        ("SSSP", 3, 0.97),
        ("Hotspot", 3, 1.0),
    ):
        yield attempt(
            claim,
            a,
            lambda a=a, t=tier, v=value: claim.ratio(  # type: ignore[misc]
                r.run(a, BASE).facts["remaining"][t - 1],
                f"Tier-{t}",
                part=a,
                value=v,
                why=lambda: (
                    "shares by tier "
                    + ", ".join(percent(s) for s in r.run(a, BASE).facts["remaining"])
                ),
            ),
        )


def orders(claim: Claim, r: Results) -> Iterator[Finding]:
    """G6"""

    def faster(a: str, one: str, other: str) -> Finding:
        gap = r.ratio(a, other, one) - 1
        return claim.sign(
            gap,
            f"{one} faster than {other}",
            signed(gap),
            part=f"{a}, {one}",
            why=lambda: because(r, a, one),
        )

    for a, one, other in (
        ("LavaMD", "tier-random", "tier-reuse"),
        ("MultiVectorAdd", "tier-reuse", "tier-order"),
        ("MultiVectorAdd", "tier-random", "tier-order"),
    ):
        yield attempt(claim, f"{a}, {one}", lambda a=a, one=one, other=other: faster(a, one, other))  # type: ignore[misc]


def against_others(claim: Claim, r: Results) -> Iterator[Finding]:
    """G7"""
    for other, what, value in (
        ("tier-order", "far_moved", 0.2567),
        ("tier-random", "far_moved", 0.1487),
        ("tier-order", "wasted_lookups", 0.4094),
    ):
        part = f"{other}, {what.replace('_', ' ')}"
        yield attempt(
            claim,
            part,
            lambda o=other, w=what, v=value, p=part: claim.ratio(  # type: ignore[misc]
                1 - geometric_mean(r.ratios("tier-reuse", o, w).values()),
                "less by",
                part=p,
                value=v,
                why=lambda: ", ".join(
                    f"{a} {signed(x - 1)}" for a, x in r.ratios("tier-reuse", o, w).items()
                ),
            ),
        )


def orchestration(claim: Claim, r: Results) -> Iterator[Finding]:
    """G8"""
    for one, other, said in (
        ("bam", "hmm", "BaM faster"),
        ("tier-reuse", "hmm", "4.57×"),
        ("tier-reuse", "hmm-optimistic", "1.9×"),
    ):
        part = f"{one} over {other}"
        yield attempt(
            claim,
            part,
            lambda one=one, o=other, s=said, p=part: claim.sign(  # type: ignore[misc]
                mean_speedup(r, one, o) - 1, s, _times(mean_speedup(r, one, o)), part=p
            ),
        )


def _times(value: float) -> str:
    return f"{value:.2f}×"


_MEASURES: dict[str, Callable[[Claim, Results], Iterator[Finding]]] = {
    "G1": by_application,
    "G2": means,
    "G3": reductions,
    "G4": reuse_shares,
    "G5": remaining,
    "G6": orders,
    "G7": against_others,
    "G8": orchestration,
}
