"""The findings on H1 to H10, from the grid and from cfd's analysis."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from tidegate.reproduce.causes import compare_runs
from tidegate.reproduce.hybrid.edges import implicit_over_explicit
from tidegate.reproduce.hybrid.grid import Grid, by_application, mean_gain, ranked, traffic
from tidegate.reproduce.hybrid.inner_loop import kept_by, locality_order
from tidegate.reproduce.hybrid.setup import BASE, BASELINES, PARTS
from tidegate.reproduce.ledger import Claim, Finding, Verdict, load_claims
from tidegate.reproduce.results import NotRun

CLAIMS = load_claims("hybrid")
PUBLISHED = {"host": 8.2, "lru": 8.5, "rlm": 3.7, "glm": 15.7, "rdm": 18.7}  # H1
MIXED = ("louvain", "backprop", "hotspot", "kmeans")  # those for which implicit transfer pays (5.2)
EQUAL = 0.05  # H3's "within 5 %"
THRASHES = 1.5  # times the traffic of each byte once each way; the paper has no number
PARTIAL = 0.7  # H5: what partial mapping adds
PUBLISHED_EDGES = {0.0: 0.29, 1.0: 3.03}  # H7: share of edges accessed → implicit over explicit
MINIVITE = "louvain"


# What the books of a run cannot tell: what is likely to be different on the paper's machine, or in
# its programs.
LIKELY = {
    "H1": "UM that thrashes is several times slower on the paper's machine than the driver's costs here, measured on "
    "another, make it; and what is used once or twice gains nothing from being near (--loops and --unmap change less)",
    "H1 host": "UM that thrashes is slower there; kernels here take nothing but bandwidth, so remote access is dear",
    "H2 rdm > glm": "partial mapping brings near what is used once, at 0.15 µs per KiB, a guess (--unmap)",
    "H3": "neither reading of the baseline is the paper's for all applications; and a copy takes the link's time only, "
    "where RDM's memory is unmapped from the CPU at 0.15 µs per KiB, a guess (--unmap)",
    "H4": "neither reading of the baseline is the paper's for all applications; one target data moves what RDM moves",
    "H5": "as H1; where all fits, UM has only its first faults to lose",
    "H5 partial": "it pays where programs loop (srad, cfd), and costs where they do not",
    "H7 100%": "0.15 µs per KiB of unmapping, a guess, is paid by faults and prefetches alike and hides their difference",
    "H8": "kernels here take nothing but bandwidth; the paper's are busy with something else",
    "H10": "miniVite's kernel does more than its shape here; as H1",
}


def findings_of(grid: Grid) -> list[Finding]:
    """Every finding that the grid allows; what was not run is said not to be measured."""
    return [
        _likely(finding)
        for claim, measure in _MEASURES.items()
        for finding in measure(CLAIMS[claim], grid)
    ]


def _likely(finding: Finding) -> Finding:
    """What differs also has its likely cause, by the longest beginning of its label that is known."""
    known = [
        label
        for label in LIKELY
        if f"{finding.label} ".startswith(label if label.endswith("%") else f"{label} ")
    ]
    if finding.verdict is not Verdict.DIFFERS or not known:
        return finding
    return replace(finding, why=f"{finding.why}. Likely: {LIKELY[max(known, key=len)]}")


def attempt(claim: Claim, part: str, make: Callable[[], Finding]) -> Finding:
    """The finding, or a note that something it needs was not run."""
    try:
        return make()
    except NotRun as missing:
        return claim.unmeasured(str(missing), part=part)


def _cause(
    grid: Grid, scheme: str, base: str = BASE, fits: bool | None = False, against: str = ""
) -> str:
    """Where a mean comes from: each application's, and the books of the workload with most and
    least gain.
    """
    gains = grid.gains(scheme, base, fits)
    least = min(gains, key=lambda at: gains[at])
    told = compare_runs(grid.run(*least, scheme), scheme, grid.run(*least, base), base)
    return f"{ranked(by_application(gains))}; {least[0]} of {least[1]:g} GB: {told}{against}"


def mean_gains(claim: Claim, grid: Grid) -> Iterator[Finding]:
    """H1"""
    for scheme, value in PUBLISHED.items():
        yield attempt(
            claim,
            scheme,
            lambda s=scheme, v=value: claim.ratio(  # type: ignore[misc]
                mean_gain(grid.gains(s, fits=False)),
                part=s,
                value=v,
                unit=_times,
                why=lambda: _cause(grid, s),
            ),
        )


def order(claim: Claim, grid: Grid) -> Iterator[Finding]:
    """H2"""
    pairs = (
        ("rdm", "glm"),
        ("glm", "lru"),
        ("glm", "host"),
        ("lru", "rlm"),
        ("host", "rlm"),
        ("rlm", "um"),
    )
    for better, worse in pairs:
        part = f"{better} > {worse}"
        yield attempt(claim, part, lambda b=better, w=worse, p=part: _above(claim, grid, b, w, p))  # type: ignore[misc]
    yield attempt(claim, "nn", lambda: _no_thrash(claim, grid))


def _above(claim: Claim, grid: Grid, better: str, worse: str, part: str) -> Finding:
    gain = mean_gain(grid.gains(better, worse, fits=False))
    return claim.sign(
        gain - 1,
        f"{better} is faster",
        f"{gain:.2f}×",
        part=part,
        why=lambda: _cause(grid, better, worse),
    )


def _no_thrash(claim: Claim, grid: Grid) -> Finding:
    """Data cross the link little more than once each way under UM."""
    sizes = grid.workloads(False, ["nn"])
    if not sizes:
        raise NotRun("no nn larger than near memory was run")
    runs = [grid.run(*at, BASE) for at in sizes]
    times = max(
        run.counts["pages_in"] * run.facts["page_bytes"] / run.facts["footprint_bytes"]
        for run in runs
    )
    return claim.holds(
        times <= THRASHES,
        "does not thrash under UM",
        f"{times:.2f} times its size moved in",
        part="nn",
        why="regions come in more than once",
    )


def over_baseline(claim: Claim, grid: Grid) -> Iterator[Finding]:
    """H3, against both readings of the baseline."""
    for base in BASELINES:
        yield attempt(claim, base, lambda b=base: _over(claim, grid, b))  # type: ignore[misc]
        part = f"others, {base}"
        yield attempt(claim, part, lambda b=base, p=part: _equal(claim, grid, b, p))  # type: ignore[misc]


def _over(claim: Claim, grid: Grid, base: str) -> Finding:
    gains = grid.gains("rdm", base, True, MIXED)
    return claim.ratio(
        mean_gain(gains), part=base, unit=_times, why=lambda: ranked(by_application(gains))
    )


def _equal(claim: Claim, grid: Grid, base: str, part: str) -> Finding:
    others = {a for a, _ in grid.workloads(True)} - set(MIXED)
    gains = by_application(grid.gains("rdm", base, True, sorted(others) or ["none"]))
    within = all(abs(g - 1) <= EQUAL for g in gains.values())
    return claim.holds(
        within,
        f"each within {EQUAL:.0%}",
        ranked(gains),
        part=part,
        why="the baseline copies at each launch what RDM brings once"
        if base != "baseline"
        else "both move the same; RDM's memory is managed, and unmapping it takes longer than moving",
    )


def less_traffic(claim: Claim, grid: Grid) -> Iterator[Finding]:
    """H4, against both readings of the baseline."""
    for base in BASELINES:
        for application in ("backprop", "kmeans"):
            part = f"{application}, {base}"
            yield attempt(
                claim,
                part,
                lambda a=application, b=base, p=part: _eliminated(claim, grid, a, b, p),  # type: ignore[misc]
            )


def _eliminated(claim: Claim, grid: Grid, application: str, base: str, part: str) -> Finding:
    share = 1 - 1 / mean_gain(grid.gains("rdm", base, True, [application], traffic))
    size = grid.workloads(True, [application])[-1]
    return claim.ratio(share, part=part, why=lambda: _moved(grid, size, base))


def _moved(grid: Grid, at: tuple[str, float], base: str) -> str:
    gb = {s: traffic(grid.run(*at, s)) / 1e9 for s in ("rdm", base)}
    return f"{at[0]} of {at[1]:g} GB: " + ", ".join(
        f"{s} {v:.1f} GB over the link" for s, v in gb.items()
    )


def components(claim: Claim, grid: Grid) -> Iterator[Finding]:
    """H5"""
    yield attempt(
        claim,
        "",
        lambda: claim.ratio(
            mean_gain(grid.gains("rdm")), unit=_times, why=lambda: _cause(grid, "rdm", fits=None)
        ),
    )
    yield attempt(claim, "mixing", lambda: _mixing(claim, grid))
    yield attempt(claim, "partial", lambda: _partial(claim, grid))


def _mixing(claim: Claim, grid: Grid) -> Finding:
    gains = {part: mean_gain(grid.gains(part)) for part in PARTS}
    gap = gains["rdm whole"] / max(gains["rdm implicit"], gains["rdm explicit"]) - 1
    ours = ", ".join(f"{part} {gain:.2f}×" for part, gain in gains.items())
    return claim.sign(
        gap, "both ways beat either alone", ours, part="mixing", why=lambda: _by_density(grid)
    )


def _by_density(grid: Grid) -> str:
    ratios = by_application(grid.gains("rdm whole", "rdm explicit"))
    few = ", ".join(f"{a} {g:.2f}×" for a, g in ratios.items() if abs(g - 1) > 0.005) or "none"
    return f"by application, both ways against explicit alone: {few}"


def _partial(claim: Claim, grid: Grid) -> Finding:
    added = mean_gain(grid.gains("rdm")) - mean_gain(grid.gains("rdm whole"))
    return claim.ratio(
        added,
        "adds",
        part="partial",
        value=PARTIAL,
        unit=_times,
        why=lambda: ranked(by_application(grid.gains("rdm", "rdm whole", False))),
    )


def example(claim: Claim, grid: Grid) -> Iterator[Finding]:
    """H6: no run is needed."""
    yield claim.exact(locality_order(), "V > N > F > O", part="order")
    yield claim.exact(kept_by("glm"), "VN", part="GLM")
    yield claim.exact(kept_by("rdm"), "VF", part="RDM")


def edge_density(claim: Claim, grid: Grid) -> Iterator[Finding]:
    """H7: the ends of the paper's range."""
    for share, value in PUBLISHED_EDGES.items():
        part = f"{share:.0%} accessed"
        yield attempt(claim, part, lambda s=share, v=value, p=part: _edges(claim, grid, s, v, p))  # type: ignore[misc]


def _edges(claim: Claim, grid: Grid, share: float, value: float, part: str) -> Finding:
    ratio = implicit_over_explicit(grid.edges)[share]

    def why() -> str:
        one, other = (grid.edges[share, way] for way in ("implicit", "explicit"))
        return compare_runs(one, "implicit", other, "explicit")

    return claim.ratio(ratio, part=part, value=value, unit=_times, why=why)


def host_beside(claim: Claim, grid: Grid) -> Iterator[Finding]:
    """H8, against both readings of the baseline."""
    for base, value in (*((base, 1.15) for base in BASELINES), (BASE, 1.19)):
        yield attempt(
            claim,
            f"host over {base}",
            lambda b=base, v=value: claim.ratio(  # type: ignore[misc]
                1 / mean_gain(grid.gains("host", b, True, [MINIVITE])),
                part=f"host over {b}",
                value=v,
                unit=_times,
                why=lambda: _minivite(grid, "host", b, True),
            ),
        )


def prefetch_all(claim: Claim, grid: Grid) -> Iterator[Finding]:
    """H9"""
    yield attempt(claim, "fits", lambda: _faster(claim, grid, "um-pf", BASE, True, "fits"))
    for slow in (BASE, "um-pf"):
        part = f"host > {slow}"
        yield attempt(claim, part, lambda s=slow, p=part: _faster(claim, grid, "host", s, False, p))  # type: ignore[misc]
    yield attempt(claim, "traffic", lambda: _more_traffic(claim, grid))


def _faster(claim: Claim, grid: Grid, better: str, worse: str, fits: bool, part: str) -> Finding:
    gain = mean_gain(grid.gains(better, worse, fits, [MINIVITE]))
    return claim.sign(
        gain - 1,
        f"{better} is faster than {worse}",
        f"{gain:.2f}×",
        part=part,
        why=lambda: _minivite(grid, better, worse, fits),
    )


def _more_traffic(claim: Claim, grid: Grid) -> Finding:
    more = mean_gain(grid.gains("um-pf", BASE, False, [MINIVITE], lambda run: 1 / traffic(run)))
    return claim.sign(
        more - 1,
        "um-pf moves more",
        f"{more:.2f} times as much",
        part="traffic",
        why=lambda: _minivite(grid, "um-pf", BASE, False),
    )


def _minivite(grid: Grid, scheme: str, base: str, fits: bool) -> str:
    at = grid.workloads(fits, [MINIVITE])[-1]
    return f"{at[1]:g} GB: {compare_runs(grid.run(*at, scheme), scheme, grid.run(*at, base), base)}"


def minivite_gain(claim: Claim, grid: Grid) -> Iterator[Finding]:
    """H10: over all sizes, as the paper does not say which."""
    yield attempt(claim, "", lambda: _gain_of_minivite(claim, grid))


def _gain_of_minivite(claim: Claim, grid: Grid) -> Finding:
    gains = grid.gains("rdm", among=[MINIVITE])
    by_size = ", ".join(f"{size:g} GB {gain:.2f}×" for (_, size), gain in gains.items())
    return claim.ratio(mean_gain(gains), unit=_times, why=by_size)


def _times(value: float) -> str:
    return f"{value:.2f}×"


_MEASURES: dict[str, Callable[[Claim, Grid], Iterator[Finding]]] = {
    "H1": mean_gains,
    "H2": order,
    "H3": over_baseline,
    "H4": less_traffic,
    "H5": components,
    "H6": example,
    "H7": edge_density,
    "H8": host_beside,
    "H9": prefetch_all,
    "H10": minivite_gain,
}
