"""The findings on C1 to C7. Each is measured at a level, which is a group of the grid."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from statistics import geometric_mean, mean

from tidegate.papers.comparisons import extremes
from tidegate.papers.cppe.figures import FIGURE_7
from tidegate.papers.cppe.grid import KINDS
from tidegate.papers.cppe.setup import BASE, LEVELS
from tidegate.papers.ledger import (
    TIE_WITHIN,
    Claim,
    Finding,
    find_dependence,
    load_claims,
    percent,
    signed,
    times,
)
from tidegate.papers.results import Groups, Measure, NotRun, Results, find, part

CLAIMS = load_claims("cppe")
CRASHED = ("MVT", "BIC")  # in the paper's baseline
SIMILAR = 0.05  # C3's "within 5 %"
ABOUT = 0.5  # how far off the gains of C5, given in whole per cents, may be
SLIGHTLY = 0.15  # C6's "slightly", to which the paper gives no number
ALIKE = ("MVT", "SPV", "B+T", "BIC", "SAD")  # Figure 7: both schemes do the same
THRASHING = ("SRD", "HSD", "MRQ", "STN")  # type IV
PATTERNED = ("SAD", "HIS", "NW")  # C4
RESERVED = ("sl+lru-10%", "sl+lru-20%")


def findings_of(levels: Groups) -> list[Finding]:
    """Return every finding that the levels allow."""
    return find(CLAIMS, _measures(), levels)


def _measures() -> Iterator[Measure]:
    yield part("C1", "", mean_gain, group="75%")
    yield part("C2", "", mean_gain, group="50%")
    yield part("C2", "largest", largest_gain, group="50%")
    for level in LEVELS:
        for kind in ("I", "VI"):
            yield part("C3", f"type {kind}, {level}", similar, kind, group=level)
        yield part("C3", f"most, {level}", gains_most, group=level)
        for a in PATTERNED:
            yield part("C4", f"{a}, {level}", gain_from_patterns, a, group=level)
        yield part("C6", f"MRQ, {level}", no_gain, "MRQ", group=level)
    yield part("C5", "mean, 75%", schemes, 0.03, group="75%")
    yield part("C5", "mean, 50%", schemes, 0.07, group="50%")
    for a, better in (("NW", 2), ("HIS", 2), ("BFS", 1), ("HWL", 1)):
        yield part("C5", f"{a}, 50%", better_scheme, a, better, group="50%")
    for level in LEVELS:
        yield part("C5", f"alike, {level}", schemes_alike, group=level)
    for a in ("BFS", "HWL"):
        yield part("C6", f"{a}, 50%", loses_slightly, a, group="50%")
    yield part("C7", "thrashing", reserved_gains, group="50%")
    for a in ("SRD", "STN"):
        yield part("C7", f"Random, {a}", less_than_random, a, group="50%")
    yield part("C7", "B+T and HYB", reserved_loses, group="50%")
    yield part("C7", "type VI", type_vi, group="50%")


def gains(r: Results, system: str, among: Iterable[str] = (), base: str = BASE) -> dict[str, float]:
    """Return speed-ups by application; without ``among``, those that crashed are left out."""
    wanted = list(among) or [a for a in r.applications if a not in CRASHED]
    return r.ratios(base, system, "time", wanted)


def inverse(gains: Mapping[str, float]) -> dict[str, float]:
    """Return times over the base's, from speed-ups."""
    return {a: 1 / gain for a, gain in gains.items()}


def of_type(r: Results, kind: str) -> list[str]:
    return [a for a in r.applications if KINDS.get(a) == kind]


def signed_list(gains: dict[str, float]) -> str:
    return ", ".join(f"{a} {signed(g - 1)}" for a, g in gains.items())


def mean_gain(claim: Claim, r: Results) -> Finding:
    """C1, C2: the arithmetic mean, as in the paper. Beside it the geometric mean, and the mean
    without the largest gain.
    """

    def judge(own: Mapping[str, float]) -> Finding:
        *rest, most = sorted(own, key=lambda a: own[a])
        whole = mean(own.values())
        without = f", {mean(own[a] for a in rest):.2f}× without {most}" if rest else ""
        show = f"{times(whole)} (geometric {times(geometric_mean(own.values()))}{without})"
        why = f"time by application: {extremes(inverse(own), 3)}"
        return claim.gain(whole, show=show, why=why)

    return find_dependence(judge, gains(r, "cppe"))


def largest_gain(claim: Claim, r: Results) -> Finding:
    """C2"""
    own = gains(r, "cppe")
    best = max(own, key=lambda a: own[a])
    show, why = f"{times(own[best])} ({best})", partial(r.because, best, "cppe", BASE)
    return claim.gain(own[best], "up to", value=10.97, show=show, why=why)


def similar(claim: Claim, r: Results, kind: str) -> Finding:
    """C3"""
    own = gains(r, "cppe", of_type(r, kind))
    return _within(claim, r, own, f"each within {SIMILAR:.0%} of {BASE}", BASE)


def _within(claim: Claim, r: Results, own: dict[str, float], said: str, base: str) -> Finding:
    off = max(own, key=lambda a: abs(own[a] - 1))
    why = partial(r.because, off, "cppe", base)
    return claim.holds(abs(own[off] - 1) <= SIMILAR, said, signed_list(own), why=why)


def gains_most(claim: Claim, r: Results) -> Finding:
    """C3"""
    kinds = {}
    for kind in dict.fromkeys(KINDS.values()):
        if members := [a for a in of_type(r, kind) if a not in CRASHED]:
            kinds[kind] = 1 / geometric_mean(gains(r, "cppe", members).values())
    if "IV" not in kinds:
        raise NotRun("no application of type IV was run")
    why = f"mean time over {BASE}'s, by type: {extremes(kinds)}"
    return claim.winner("IV", kinds, why=why)


def gain_from_patterns(claim: Claim, r: Results, application: str) -> Finding:
    """C4: with and without the pattern-aware prefetcher, under the same eviction policy."""
    gain = r.ratio(application, "sl+mhpe", "cppe") - 1
    why = partial(r.because, application, "cppe", "sl+mhpe")
    return claim.sign(gain, "gains from patterns", signed(gain), why=why)


def schemes(claim: Claim, r: Results, value: float) -> Finding:
    """C5"""

    def judge(own: Mapping[str, float]) -> Finding:
        gain, said = mean(own.values()) - 1, "scheme 2 better by"
        why = f"time, scheme 2 over 1: {extremes(inverse(own))}"
        return claim.ratio(gain, said, value=value, within=ABOUT, show=signed(gain), why=why)

    return find_dependence(judge, gains(r, "cppe", FIGURE_7, base="cppe-scheme1"))


def better_scheme(claim: Claim, r: Results, a: str, better: int) -> Finding:
    """C5"""
    gain = r.ratio(a, "cppe-scheme1", "cppe") - 1
    said, ours = f"scheme {better} better", f"scheme 2: {signed(gain)}"
    why = partial(r.because, a, "cppe", "cppe-scheme1")
    return claim.sign(gain if better == 2 else -gain, said, ours, why=why)


def schemes_alike(claim: Claim, r: Results) -> Finding:
    """C5"""
    own = gains(r, "cppe", ALIKE, base="cppe-scheme1")
    return _within(claim, r, own, "both schemes do the same", "cppe-scheme1")


def no_gain(claim: Claim, r: Results, application: str) -> Finding:
    """C6"""
    gain = r.ratio(application, BASE, "cppe") - 1
    why = partial(r.because, application, "cppe", BASE)
    return claim.holds(gain <= TIE_WITHIN, "no gain", signed(gain), why=why)


def loses_slightly(claim: Claim, r: Results, application: str) -> Finding:
    """C6"""
    gain = r.ratio(application, BASE, "cppe") - 1
    why = partial(r.because, application, "cppe", BASE)
    if gain < -SLIGHTLY:
        return claim.holds(False, "slightly slower", signed(gain), why=why)
    return claim.sign(-gain, "slightly slower", signed(gain), why=why)


def _reserved(r: Results, among: Iterable[str]) -> dict[str, float]:
    """Return the speed-ups of reserved LRU by application and reserved share."""
    return {
        f"{a} {system.rpartition('-')[2]}": gain
        for system in RESERVED
        for a, gain in gains(r, system, among).items()
    }


def reserved_gains(claim: Claim, r: Results) -> Finding:
    """C7"""
    own = _reserved(r, THRASHING)
    best = max(own, key=lambda k: own[k])
    gain, why = own[best] - 1, f"time by application and share: {extremes(inverse(own))}"
    ours = f"{signed(gain)} ({best})"
    return claim.holds(gain <= 0.11 + TIE_WITHIN, "gains at most 11 %", ours, why=why)


def less_than_random(claim: Claim, r: Results, application: str) -> Finding:
    """C7"""
    best = max(r.ratio(application, BASE, system) for system in RESERVED)
    random = r.ratio(application, BASE, "sl+random")
    ours = f"Random {signed(random - 1)}, reserved {signed(best - 1)}"
    why = partial(r.because, application, "sl+lru-20%", "sl+random")
    return claim.sign(random / best - 1, "Random gains more", ours, why=why)


def reserved_loses(claim: Claim, r: Results) -> Finding:
    """C7"""
    own = _reserved(r, ("B+T", "HYB"))
    worst = min(own, key=lambda k: own[k])
    loss, why = 1 - own[worst], partial(r.because, worst.split()[0], "sl+lru-20%", BASE)
    show = f"{percent(loss)} ({worst})"
    return claim.ratio(loss, "loses up to", value=0.53, within=0.5, show=show, why=why)


def type_vi(claim: Claim, r: Results) -> Finding:
    """C7"""
    own = gains(r, "sl+lru-10%", of_type(r, "VI"))
    loss = 1 - mean(own.values())
    return claim.ratio(loss, "LRU-10 % loses", value=0.27, within=0.5, why=signed_list(own))
