"""The ledger: what papers claim beside what was measured. It judges and never fails: a claim that
differs is a result.

    claims.toml ──▶ Claim ──▶ the rule of its kind ──▶ Finding ──▶ Ledger
                                                       HOLDS · TIE · DIFFERS · NOT MEASURED
                                                       holds at 1/8: a setting of ours

A claim that says several things has several findings, each with its part: "O1 MM". Beside its
verdict under the default readings a finding may carry the share of open readings under which the
verdict is the same (see ``readings.py``).

Kinds of claims: ``ratio`` (measured over the paper's value, within ``within`` of 1; of a speed-up
the gain is compared), ``order`` (the stated order holds), ``winner`` (the named policy has the
lowest time), ``sign`` (the stated direction holds), ``exact`` (equal).

What a finding is evidence of: a *prediction* could have come out otherwise. A part that
``by_construction`` names in claims.toml was an input of ours. A tie, and what ``not_evidence``
names, says nothing. The summary counts predictions.
"""

from __future__ import annotations

import html
import math
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from functools import cache
from itertools import pairwise
from typing import Any

from tidegate.display.tables import Table
from tidegate.errors import UnknownName
from tidegate.papers import paper_folder

TIE_WITHIN = 0.02  # a difference up to this is a tie

_FEW = 2  # applications that a verdict hangs on are named up to so many

# An explanation, or a function that finds one: it is called only where the explanation is shown.
Why = str | Callable[[], str]


class Verdict(StrEnum):
    """The outcome of a claim."""

    HOLDS = "HOLDS"
    TIE = "TIE"
    DIFFERS = "DIFFERS"
    NOT_MEASURED = "NOT MEASURED"


class Evidence(StrEnum):
    """What kind of evidence a finding is."""

    PREDICTED = "predicted"
    BY_CONSTRUCTION = "by construction"  # an input of ours
    NONE = "not evidence"  # a tie, or a stand-in of ours is what was measured


# The rules, one per kind of claim


def judge_ratio(ours: float, value: float, within: float, at_least: bool = False) -> Verdict:
    """Judge whether ``ours / value`` is within ``within`` of 1; ``at_least`` accepts any more.

    >>> judge_ratio(0.25, 0.20, 0.4), judge_ratio(0.29, 0.20, 0.4)
    (<Verdict.HOLDS: 'HOLDS'>, <Verdict.DIFFERS: 'DIFFERS'>)
    """
    off = ours / value - 1
    if math.isnan(off):
        return Verdict.NOT_MEASURED
    return _either(off >= -within - 1e-9 and (at_least or off <= within + 1e-9))


def judge_gain(ours: float, value: float, within: float) -> Verdict:
    """Judge a speed-up, where 1 is no change: the gain is within ``within`` of the stated one.

    The whole factor would be too kind: 1.00 is within 20 % of 1.25.

    >>> judge_gain(1.0, 1.25, 0.3), judge_gain(1.32, 1.25, 0.3), judge_gain(1.0, 0.88, 0.3)
    (<Verdict.DIFFERS: 'DIFFERS'>, <Verdict.HOLDS: 'HOLDS'>, <Verdict.DIFFERS: 'DIFFERS'>)
    """
    return judge_ratio(ours - 1, value - 1, within)


def judge_order(values: Iterable[float]) -> Verdict:
    """Judge whether each value is above the one before; a step of up to 2 % makes it a tie."""
    steps = [after / before - 1 for before, after in pairwise(values)]
    if any(math.isnan(s) for s in steps):
        return Verdict.NOT_MEASURED
    return _by_gap(min(steps))


def judge_winner(named: str, times: Mapping[str, float]) -> Verdict:
    """Judge whether ``named`` has the lowest time; a difference of up to 2 % makes it a tie.

    >>> judge_winner("lru", {"lru": 100, "lfu": 101, "cp": 130})
    <Verdict.TIE: 'TIE'>
    """
    ours, others = times[named], min(time for name, time in times.items() if name != named)
    return _by_gap(others / ours - 1 if others > ours else 1 - ours / others)


def judge_sign(gap: float, strict: bool = True) -> Verdict:
    """Judge whether ``gap`` (1 is 100 %) is positive, the stated direction; up to 2 % is a tie.

    Without ``strict`` the claim is that nothing goes the other way, so no gap holds too.
    """
    if math.isnan(gap):
        return Verdict.NOT_MEASURED
    return Verdict.HOLDS if not strict and gap >= 0 else _by_gap(gap)


def judge_exact(ours: object, value: object) -> Verdict:
    """Judge whether both are equal."""
    return _either(ours == value)


def _either(holds: bool) -> Verdict:
    return Verdict.HOLDS if holds else Verdict.DIFFERS


def _by_gap(gap: float) -> Verdict:
    if abs(gap) <= TIE_WITHIN + 1e-12:
        return Verdict.TIE
    return _either(gap > 0)


# Claims and findings


@dataclass(frozen=True)
class Finding:
    """One thing a paper says and what was measured."""

    claim: str
    part: str  # of a claim that says several things; else empty
    where: str  # in the paper
    paper: str  # its value, as text
    ours: str
    verdict: Verdict
    number: float | None = None  # ours, where it is one
    why: str = ""  # it differs, or was not measured
    given: Evidence = Evidence.PREDICTED  # what claims.toml says of it
    hangs_on: tuple[str, ...] = ()  # applications without any one of which the verdict is another
    at: str = ""  # the setting, where it is not the claim's: "at 1/8"
    share: float | None = None  # of the open readings under which it holds; None: not tried
    tied: float | None = None  # of the open readings under which it is a tie
    readings: int = 0  # open readings tried
    there: Verdict | None = None  # under the default readings, at the scale of the tried ones

    @property
    def label(self) -> str:
        return f"{self.claim} {self.part}".rstrip()

    @property
    def evidence(self) -> Evidence:
        return Evidence.NONE if self.verdict is Verdict.TIE else self.given

    @property
    def is_prediction(self) -> bool:
        """Whether it was measured, and could have come out otherwise."""
        judged = self.verdict in (Verdict.HOLDS, Verdict.DIFFERS)
        return judged and self.evidence is Evidence.PREDICTED

    @property
    def outcome(self) -> str:
        """The verdict with what a reader must know of it: ``holds at 1/8``, ``HOLDS, an input``."""
        is_reduced = self.at and self.verdict is not Verdict.NOT_MEASURED
        words = [f"{self.verdict.lower()} {self.at}" if is_reduced else str(self.verdict)]
        if self.verdict in (Verdict.HOLDS, Verdict.DIFFERS):
            words += [str(self.evidence)] * (self.evidence is not Evidence.PREDICTED)
            few = " or ".join(self.hangs_on)
            on = few if len(self.hangs_on) <= _FEW else f"any of {len(self.hangs_on)} applications"
            words += [f"hangs on {on}"] * bool(self.hangs_on)
        return ", ".join(words)


@dataclass(frozen=True)
class Claim:
    """What a paper says, or a part of it. The methods make findings by the rules above."""

    id: str
    kind: str
    where: str
    text: str
    value: float | None = None
    within: float | None = None
    by_construction: tuple[str, ...] = ()  # parts that are inputs of ours; "all": every part
    not_evidence: tuple[str, ...] = ()  # parts that say nothing of the paper, likewise
    part: str = ""

    @property
    def evidence(self) -> Evidence:
        """What kind of evidence this part is."""
        if {self.part, "all"} & set(self.by_construction):
            return Evidence.BY_CONSTRUCTION
        if {self.part, "all"} & set(self.not_evidence):
            return Evidence.NONE
        return Evidence.PREDICTED

    def for_part(self, part: str) -> Claim:
        """Return the same claim for one part. A part of a claim may have a value of its own."""
        return replace(self, part=part) if part else self

    def ratio(
        self,
        ours: float,
        said: str = "",
        *,
        value: float | None = None,
        within: float | None = None,
        at_least: bool = False,
        show: str = "",
        unit: Callable[[float], str] | None = None,
        why: Why = "",
    ) -> Finding:
        """Compare a number with the paper's: the claim's own, or ``value`` for this part.

        ``said`` stands before the paper's value; ``show`` replaces ours.
        """
        unit = unit or percent
        value = self.value if value is None else value
        within = self.within if within is None else within
        assert value is not None
        assert within is not None, f"claim {self.id} has no 'within'"
        verdict = judge_ratio(ours, value, within, at_least)
        paper = f"{said} {'at least ' if at_least else ''}{unit(value)}".strip()
        return self._finding(paper, show or unit(ours), verdict, why, ours)

    def gain(
        self, ours: float, said: str = "", *, value: float | None = None, show: str = "", why: Why
    ) -> Finding:
        """Compare a speed-up with the paper's, or with ``value`` for this part: by its gain."""
        value = self.value if value is None else value
        assert value is not None
        assert self.within is not None, f"claim {self.id} has no 'within'"
        paper = f"{said} {times(value)}".strip()
        verdict = judge_gain(ours, value, self.within)
        return self._finding(paper, show or times(ours), verdict, why, ours)

    def order(self, values: Mapping[str, float], *, why: Why = "") -> Finding:
        """Compare an order: the names as the paper has them, each with its value, lowest first."""
        ours = ", ".join(f"{name} {value:.3g}" for name, value in values.items())
        return self._finding(" < ".join(values), ours, judge_order(values.values()), why)

    def winner(
        self, named: str, times: Mapping[str, float], *, beside: str = "", why: Why = ""
    ) -> Finding:
        """Compare the one with the lowest time, among all that were run; ``beside`` is added."""
        best, *behind = sorted(times, key=lambda name: times[name])
        gaps = ", ".join(f"{name} {signed(times[name] / times[best] - 1)}" for name in behind)
        return self._finding(named, f"{best}; {gaps}{beside}", judge_winner(named, times), why)

    def sign(
        self, gap: float, paper: str, ours: str = "", *, strict: bool = True, why: Why = ""
    ) -> Finding:
        """Compare a direction; ``gap`` is positive if it is the stated one."""
        return self._finding(paper, ours or percent(gap), judge_sign(gap, strict), why, gap)

    def holds(self, does: bool, paper: str, ours: str, *, why: Why = "") -> Finding:
        """Record something that is so or is not."""
        return self._finding(paper, ours, _either(does), why)

    def exact(self, ours: Any, value: Any = None, *, why: Why = "") -> Finding:
        """Compare for equality with the paper's value."""
        value = self.value if value is None else value
        number = float(ours) if isinstance(ours, int | float) else None
        return self._finding(_plain(value), _plain(ours), judge_exact(ours, value), why, number)

    def unmeasured(self, why: str) -> Finding:
        """Record that nothing was measured."""
        known = None if self.part else self.value
        paper = "" if known is None else percent(known) if known < 1 else _plain(known)
        return self._finding(paper, "", Verdict.NOT_MEASURED, why)

    def _finding(
        self, paper: str, ours: str, verdict: Verdict, why: Why, number: float | None = None
    ) -> Finding:
        explained = verdict in (Verdict.DIFFERS, Verdict.NOT_MEASURED)
        reason = (why if isinstance(why, str) else why()) if explained else ""
        given = self.evidence
        return Finding(self.id, self.part, self.where, paper, ours, verdict, number, reason, given)


def find_dependence(
    judge: Callable[[Mapping[Any, float]], Finding],
    ratios: Mapping[Any, float],
    name: Callable[[Any], str] = str,
) -> Finding:
    """Return the finding on a mean of ratios, and the applications on any one of which its verdict
    hangs. ``name``: of a ratio's application.
    """
    whole = judge(ratios)
    names = list(dict.fromkeys(map(name, ratios)))
    if len(names) < 3 or whole.verdict is Verdict.NOT_MEASURED:
        return whole
    rest = {out: {key: x for key, x in ratios.items() if name(key) != out} for out in names}
    hangs_on = tuple(out for out in names if judge(rest[out]).verdict is not whole.verdict)
    return replace(whole, hangs_on=hangs_on)


@dataclass(frozen=True)
class Claims:
    """Everything a paper says that a simulator can check, and the setup it says it for."""

    paper: str
    setup: str
    claims: tuple[Claim, ...]
    words: Mapping[str, str]  # about each figure

    def __getitem__(self, claim: str) -> Claim:
        found = {c.id: c for c in self.claims}
        if claim not in found:
            raise UnknownName(f"claim of {self.paper}", claim, found)
        return found[claim]

    def words_on(self, exhibit: str) -> str:
        """Return the paper's words: "Figure 8 75%" has those of "Figure 8"."""
        return next(
            words for name, words in self.words.items() if f"{exhibit} ".startswith(f"{name} ")
        )


@cache
def load_claims(paper: str) -> Claims:
    """Return the claims of one paper, from its folder.

    >>> load_claims("observuvm")["O2"].value
    0.2
    """
    table = tomllib.loads((paper_folder(paper) / "claims.toml").read_text())
    claims = tuple(_read_claim(id, **given) for id, given in table["claim"].items())
    words = {name: " ".join(text.split()) for name, text in table["words"].items()}
    return Claims(paper, table["setup"], claims, words)


def _read_claim(id: str, **given: Any) -> Claim:
    lists = {key: tuple(value) for key, value in given.items() if isinstance(value, list)}
    return Claim(id, **(given | lists))


@dataclass(frozen=True)
class Ledger:
    """All findings of one paper, in the order of its claims.

    A claim without a finding is listed as not measured.
    """

    claims: Claims
    findings: tuple[Finding, ...]

    def __post_init__(self) -> None:
        whole: list[Finding] = []
        for c in self.claims.claims:
            own = [f for f in self.findings if f.claim == c.id]
            whole += own or [c.unmeasured("nothing here measures it")]
        object.__setattr__(self, "findings", tuple(whole))

    @property
    def tally(self) -> dict[Verdict, int]:
        counted = Counter(f.verdict for f in self.findings)
        return {v: counted[v] for v in Verdict}

    @property
    def summary(self) -> str:
        """One line: how many predictions hold, and what the other findings are."""
        judged = [f for f in self.findings if f.verdict in (Verdict.HOLDS, Verdict.DIFFERS)]
        kinds = Counter(f.evidence for f in judged)
        predictions = [f for f in judged if f.is_prediction]
        hold = sum(f.verdict is Verdict.HOLDS for f in predictions)
        counted = {
            "hanging on one application": sum(bool(f.hangs_on) for f in predictions),
            "by construction": kinds[Evidence.BY_CONSTRUCTION],
            "on a stand-in": kinds[Evidence.NONE],
            "ties": self.tally[Verdict.TIE],
            "not measured": self.tally[Verdict.NOT_MEASURED],
        }
        share = f" ({hold / len(predictions):.0%})" if predictions else ""
        rest = "".join(f"; {words}: {n}" for words, n in counted.items() if n)
        at = "".join({f" {f.at}" for f in judged if f.at})
        return (
            f"{len(self.findings)} findings on {len(self.claims.claims)} claims: of "
            f"{len(predictions)} predictions {hold} hold{at}{share}{rest}"
        )

    def to_json(self) -> list[dict[str, Any]]:
        return [
            {"label": f.label, "evidence": f.evidence, "outcome": f.outcome, **asdict(f)}
            for f in self.findings
        ]

    def table(self) -> Table:
        """Return a table for a terminal."""
        robust = any(f.share is not None for f in self.findings)
        columns = ("claim", "verdict", "ours", "paper", *["readings"] * robust, "why")
        rows = [
            (f.label, f.outcome, f.ours, f.paper, *[readings_text(f)] * robust, f.why)
            for f in self.findings
        ]
        title, left = f"ledger: {self.summary}", len(columns)
        tones = ["reduced" if f.at else "" for f in self.findings]
        return Table(columns, rows, title, left, drop=("readings",), tones=tones)

    def html(self) -> str:
        """Return a table for a page: each claim with its words, and its findings below."""
        rows = []
        for claim in self.claims.claims:
            text, where = html.escape(claim.text), html.escape(claim.where)
            words = f"<b>{claim.id}</b> {text} <i>({where})</i>"
            rows.append(f'<tr class="claim" id="{claim.id}"><td colspan="6">{words}</td></tr>')
            rows += [_html_row(f) for f in self.findings if f.claim == claim.id]
        columns = ("claim", "paper", "ours", "verdict", "open readings", "why")
        head = "".join(f"<th>{h}</th>" for h in columns)
        body = "".join(rows)
        return f'<table class="ledger"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'


def _html_row(f: Finding) -> str:
    texts = (f.label, f.paper, f.ours, f.outcome, readings_text(f), f.why)
    cells = "".join(f"<td>{html.escape(str(text))}</td>" for text in texts)
    weak = "" if f.is_prediction else " weak"
    kind = f"{f.verdict.name.lower()}{' reduced' if f.at else ''}{weak}"
    return f'<tr class="{kind}">{cells}</tr>'


def readings_text(finding: Finding) -> str:
    """Return the shares of open readings under which a finding holds and is a tie.

    Readings are tried at a smaller scale. Where that alone changes the verdict, the share says
    little, and the text says so.
    """
    if finding.share is None:
        return "–"
    ties = f" + {finding.tied:.0%} ties" if finding.tied else ""
    same = finding.there in (None, finding.verdict)
    there = "" if same else f"; the default there: {finding.there}"
    return f"{finding.share:.0%}{ties} of {finding.readings}{there}"


# Numbers as text


def percent(value: float) -> str:
    """
    >>> percent(0.34), percent(0.042)
    ('34 %', '4.2 %')
    """
    if round(abs(value), 4) < 0.1:
        return f"{100 * value:.1f}".removesuffix(".0") + " %"
    return f"{100 * value:.0f} %"


def signed(value: float) -> str:
    """
    >>> signed(0.341), signed(-0.0123)
    ('+34 %', '-1.2 %')
    """
    return f"{100 * value:+.1f} %" if round(abs(value), 4) < 0.1 else f"{100 * value:+.0f} %"


def times(value: float) -> str:
    """
    >>> times(1.5)
    '1.50×'
    """
    return f"{value:.2f}×"


def _plain(value: object) -> str:
    return f"{value:g}" if isinstance(value, int | float) else str(value)
