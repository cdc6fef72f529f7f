"""The findings on C1 to C7, from the grids at both levels."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from statistics import geometric_mean, mean

from tidegate.reproduce.causes import compare_runs
from tidegate.reproduce.cppe.figures import FIGURE_7
from tidegate.reproduce.cppe.setup import BASE, KINDS
from tidegate.reproduce.ledger import TIE_WITHIN, Claim, Finding, load_claims, percent, signed
from tidegate.reproduce.means import extremes
from tidegate.reproduce.results import NotRun, Results

CLAIMS = load_claims("cppe")
CRASHED = ("MVT", "BIC")  # in the paper's baseline
SIMILAR = 0.05  # C3's "within 5 %"
SLIGHTLY = 0.15  # C6's "slightly", which the paper does not put a number to
ALIKE = ("MVT", "SPV", "B+T", "BIC", "SAD")  # Figure 7: both schemes do the same
THRASHING = ("SRD", "HSD", "MRQ", "STN")  # type IV

Levels = Mapping[str, Results]


def findings_of(levels: Levels) -> list[Finding]:
    """Every finding that the grids allow; what was not run is said not to be measured."""
    return [
        finding
        for claim, measure in _MEASURES.items()
        for finding in measure(CLAIMS[claim], levels)
    ]


def gains(r: Results, system: str, among: Iterable[str] = (), base: str = BASE) -> dict[str, float]:
    """Speed-ups by application, without those that crashed in the paper, unless they are asked for."""
    wanted = list(among) or [a for a in r.applications if a not in CRASHED]
    return r.ratios(base, system, "time", wanted)


def at(levels: Levels, level: str) -> Results:
    if level not in levels:
        raise NotRun(f"nothing was run with {level} in near memory")
    return levels[level]


def attempt(claim: Claim, part: str, make: Callable[[], Finding]) -> Finding:
    """The finding, or a note that something it needs was not run."""
    try:
        return make()
    except NotRun as missing:
        return claim.unmeasured(str(missing), part=part)


def because(r: Results, application: str, system: str, base: str = BASE) -> str:
    return f"{application}: " + compare_runs(
        r.run(application, system), system, r.run(application, base), base
    )


# Claim by claim


def _mean_gain(claim: Claim, r: Results, part: str = "") -> Finding:
    """The arithmetic mean, as the paper has it, with the geometric one and the mean without the
    largest beside it.
    """
    own = gains(r, "cppe")
    ranked = sorted(own, key=lambda a: own[a])
    rest = [own[a] for a in ranked[:-1]]
    shown = f"{mean(own.values()):.2f}× (geometric {geometric_mean(own.values()):.2f}×" + (
        f", {mean(rest):.2f}× without {ranked[-1]})" if rest else ")"
    )
    return claim.ratio(
        mean(own.values()),
        part=part,
        show=shown,
        unit=_times,
        why=lambda: f"time by application: {extremes({a: 1 / g for a, g in own.items()}, 3)}",
    )


def gain_at_75(claim: Claim, levels: Levels) -> Iterator[Finding]:
    """C1"""
    yield attempt(claim, "", lambda: _mean_gain(claim, at(levels, "75%")))


def gain_at_50(claim: Claim, levels: Levels) -> Iterator[Finding]:
    """C2"""
    yield attempt(claim, "", lambda: _mean_gain(claim, at(levels, "50%")))
    yield attempt(claim, "largest", lambda: _largest(claim, at(levels, "50%")))


def _largest(claim: Claim, r: Results) -> Finding:
    own = gains(r, "cppe")
    best = max(own, key=lambda a: own[a])
    return claim.ratio(
        own[best],
        "up to",
        part="largest",
        value=10.97,
        show=f"{own[best]:.2f}× ({best})",
        unit=_times,
        why=lambda: because(r, best, "cppe"),
    )


def by_type(claim: Claim, levels: Levels) -> Iterator[Finding]:
    """C3"""
    for level in ("75%", "50%"):
        for kind in ("I", "VI"):
            part = f"type {kind}, {level}"
            yield attempt(
                claim,
                part,
                lambda k=kind, p=part, le=level: _similar(claim, p, at(levels, le), k),  # type: ignore[misc]
            )
        part = f"most, {level}"
        yield attempt(claim, part, lambda p=part, le=level: _gains_most(claim, p, at(levels, le)))  # type: ignore[misc]


def _similar(claim: Claim, part: str, r: Results, kind: str) -> Finding:
    own = gains(r, "cppe", [a for a in r.applications if KINDS.get(a) == kind])
    off = max(own, key=lambda a: abs(own[a] - 1))
    ours = ", ".join(f"{a} {signed(g - 1)}" for a, g in own.items())
    return claim.holds(
        abs(own[off] - 1) <= SIMILAR,
        f"each within {SIMILAR:.0%} of {BASE}",
        ours,
        part=part,
        why=lambda: because(r, off, "cppe"),
    )


def _gains_most(claim: Claim, part: str, r: Results) -> Finding:
    kinds = {}
    for kind in dict.fromkeys(KINDS.values()):
        members = [a for a in r.applications if KINDS.get(a) == kind and a not in CRASHED]
        if members:
            kinds[kind] = 1 / geometric_mean(gains(r, "cppe", members).values())
    if "IV" not in kinds:
        raise NotRun("no application of type IV was run")
    return claim.winner(
        "IV", kinds, part=part, why=f"mean time over {BASE}'s, by type: {extremes(kinds)}"
    )


def patterns_help(claim: Claim, levels: Levels) -> Iterator[Finding]:
    """C4: with and without the pattern-aware prefetcher, under the same eviction policy."""
    for level in ("75%", "50%"):
        for a in ("SAD", "HIS", "NW"):
            part = f"{a}, {level}"
            yield attempt(
                claim,
                part,
                lambda a=a, p=part, le=level: _pattern(claim, p, at(levels, le), a),  # type: ignore[misc]
            )


def _pattern(claim: Claim, part: str, r: Results, application: str) -> Finding:
    gain = r.ratio(application, "sl+mhpe", "cppe") - 1
    return claim.sign(
        gain,
        "gains from patterns",
        signed(gain),
        part=part,
        why=lambda: because(r, application, "cppe", "sl+mhpe"),
    )


def schemes(claim: Claim, levels: Levels) -> Iterator[Finding]:
    """C5"""
    for level, value in (("75%", 0.03), ("50%", 0.07)):
        part = f"mean, {level}"
        yield attempt(
            claim,
            part,
            lambda p=part, le=level, v=value: _schemes(claim, p, at(levels, le), v),  # type: ignore[misc]
        )
    for a, sign in (("NW", 1), ("HIS", 1), ("BFS", -1), ("HWL", -1)):
        part = f"{a}, 50%"
        yield attempt(
            claim,
            part,
            lambda a=a, p=part, s=sign: _scheme_of(claim, p, at(levels, "50%"), a, s),  # type: ignore[misc]
        )
    for level in ("75%", "50%"):
        part = f"alike, {level}"
        yield attempt(claim, part, lambda p=part, le=level: _alike(claim, p, at(levels, le)))  # type: ignore[misc]


def _schemes(claim: Claim, part: str, r: Results, value: float) -> Finding:
    own = gains(r, "cppe", FIGURE_7, base="cppe-scheme1")
    gain = mean(own.values()) - 1
    return claim.sign(
        gain,
        f"scheme 2 better by {percent(value)}",
        signed(gain),
        part=part,
        why=lambda: f"time, scheme 2 over 1: {extremes({a: 1 / g for a, g in own.items()})}",
    )


def _scheme_of(claim: Claim, part: str, r: Results, application: str, sign: int) -> Finding:
    gain = r.ratio(application, "cppe-scheme1", "cppe") - 1
    return claim.sign(
        sign * gain,
        f"scheme {2 if sign > 0 else 1} better",
        f"scheme 2: {signed(gain)}",
        part=part,
        why=lambda: because(r, application, "cppe", "cppe-scheme1"),
    )


def _alike(claim: Claim, part: str, r: Results) -> Finding:
    own = gains(r, "cppe", ALIKE, base="cppe-scheme1")
    off = max(own, key=lambda a: abs(own[a] - 1))
    ours = ", ".join(f"{a} {signed(g - 1)}" for a, g in own.items())
    return claim.holds(
        abs(own[off] - 1) <= SIMILAR,
        "both schemes do the same",
        ours,
        part=part,
        why=lambda: because(r, off, "cppe", "cppe-scheme1"),
    )


def losers(claim: Claim, levels: Levels) -> Iterator[Finding]:
    """C6"""
    for level in ("75%", "50%"):
        part = f"MRQ, {level}"
        yield attempt(claim, part, lambda p=part, le=level: _no_gain(claim, p, at(levels, le)))  # type: ignore[misc]
    for a in ("BFS", "HWL"):
        part = f"{a}, 50%"
        yield attempt(claim, part, lambda a=a, p=part: _loses(claim, p, at(levels, "50%"), a))  # type: ignore[misc]


def _no_gain(claim: Claim, part: str, r: Results) -> Finding:
    gain = r.ratio("MRQ", BASE, "cppe") - 1
    return claim.holds(
        gain <= TIE_WITHIN,
        "no gain",
        signed(gain),
        part=part,
        why=lambda: because(r, "MRQ", "cppe"),
    )


def _loses(claim: Claim, part: str, r: Results, application: str) -> Finding:
    gain = r.ratio(application, BASE, "cppe") - 1
    if gain < -SLIGHTLY:
        return claim.holds(
            False,
            "slightly slower",
            signed(gain),
            part=part,
            why=lambda: because(r, application, "cppe"),
        )
    return claim.sign(
        -gain,
        "slightly slower",
        signed(gain),
        part=part,
        why=lambda: because(r, application, "cppe"),
    )


def reserved(claim: Claim, levels: Levels) -> Iterator[Finding]:
    """C7"""

    def half() -> Results:
        return at(levels, "50%")

    yield attempt(claim, "thrashing", lambda: _at_most(claim, half()))
    for a in ("SRD", "STN"):
        yield attempt(
            claim,
            f"Random, {a}",
            lambda a=a: _less_than_random(claim, f"Random, {a}", half(), a),  # type: ignore[misc]
        )
    yield attempt(claim, "B+T and HYB", lambda: _loses_up_to(claim, half()))
    yield attempt(claim, "type VI", lambda: _type_vi(claim, half()))


def _at_most(claim: Claim, r: Results) -> Finding:
    own = {
        f"{a} {p}": g - 1
        for p in ("10%", "20%")
        for a, g in gains(r, f"sl+lru-{p}", THRASHING).items()
    }
    best = max(own, key=lambda k: own[k])
    times = {k: 1 / (1 + g) for k, g in own.items()}
    return claim.holds(
        own[best] <= 0.11 + TIE_WITHIN,
        "gains at most 11 %",
        f"{signed(own[best])} ({best})",
        part="thrashing",
        why=f"time by application and share: {extremes(times)}",
    )


def _less_than_random(claim: Claim, part: str, r: Results, application: str) -> Finding:
    best = max(r.ratio(application, BASE, f"sl+lru-{p}") for p in ("10%", "20%"))
    random = r.ratio(application, BASE, "sl+random")
    return claim.sign(
        random / best - 1,
        "Random gains more",
        f"Random {signed(random - 1)}, reserved {signed(best - 1)}",
        part=part,
        why=lambda: because(r, application, "sl+lru-20%", "sl+random"),
    )


def _loses_up_to(claim: Claim, r: Results) -> Finding:
    own = {
        f"{a} {p}": 1 - g
        for p in ("10%", "20%")
        for a, g in gains(r, f"sl+lru-{p}", ("B+T", "HYB")).items()
    }
    worst = max(own, key=lambda k: own[k])
    return claim.ratio(
        own[worst],
        "loses up to",
        part="B+T and HYB",
        value=0.53,
        within=0.5,
        show=f"{percent(own[worst])} ({worst})",
        why=lambda: because(r, worst.split()[0], "sl+lru-20%"),
    )


def _type_vi(claim: Claim, r: Results) -> Finding:
    own = gains(r, "sl+lru-10%", [a for a in r.applications if KINDS.get(a) == "VI"])
    loss = 1 - mean(own.values())
    return claim.ratio(
        loss,
        "LRU-10 % loses",
        part="type VI",
        value=0.27,
        within=0.5,
        why=lambda: ", ".join(f"{a} {signed(g - 1)}" for a, g in own.items()),
    )


def _times(value: float) -> str:
    return f"{value:.2f}×"


_MEASURES: dict[str, Callable[[Claim, Levels], Iterator[Finding]]] = {
    "C1": gain_at_75,
    "C2": gain_at_50,
    "C3": by_type,
    "C4": patterns_help,
    "C5": schemes,
    "C6": losers,
    "C7": reserved,
}
