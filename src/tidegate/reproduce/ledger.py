"""The ledger: what papers claim beside what we measured. It judges and never fails: a claim that
differs is a result.

    claims.toml ──▶ Claim ──▶ the rule of its kind ──▶ Finding: HOLDS · TIE · DIFFERS · NOT MEASURED ──▶ Ledger

A claim that says several things has several findings, each with its part: "O1 MM". Beside its
verdict under the default readings a finding may carry the share of open readings under which it
comes out the same (see ``reproduce/readings.py``).
"""

from __future__ import annotations

import html
import math
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tidegate.errors import UnknownName

if TYPE_CHECKING:
    from rich.table import Table

TIE_WITHIN = 0.02  # a difference up to this is none

# a cause that has to be looked for is looked for only where it is shown
Why = str | Callable[[], str]


class Verdict(StrEnum):
    """What became of a claim."""

    HOLDS = "HOLDS"
    TIE = "TIE"
    DIFFERS = "DIFFERS"
    NOT_MEASURED = "NOT MEASURED"


# The rules, one per kind of claim


def judge_ratio(ours: float, value: float, within: float, at_least: bool = False) -> Verdict:
    """Is ``ours / value`` within ``within`` of 1? With ``at_least``, more than that is no
    difference.

    >>> judge_ratio(0.25, 0.20, 0.4), judge_ratio(0.29, 0.20, 0.4)
    (<Verdict.HOLDS: 'HOLDS'>, <Verdict.DIFFERS: 'DIFFERS'>)
    """
    off = ours / value - 1
    if math.isnan(off):
        return Verdict.NOT_MEASURED
    return _either(off >= -within - 1e-9 and (at_least or off <= within + 1e-9))


def judge_order(values: Iterable[float]) -> Verdict:
    """Do the values rise from each to the next? A step of up to 2 % either way makes it a tie."""
    listed = list(values)
    steps = [after / before - 1 for before, after in pairwise(listed)]
    if any(math.isnan(s) for s in steps):
        return Verdict.NOT_MEASURED
    return _by_gap(min(steps))


def judge_winner(named: str, times: Mapping[str, float]) -> Verdict:
    """Has ``named`` the lowest time? With another one within 2 % of it, or of the lowest, it is a
    tie.

    >>> judge_winner("lru", {"lru": 100, "lfu": 101, "cp": 130})
    <Verdict.TIE: 'TIE'>
    """
    others = min(time for name, time in times.items() if name != named)
    return _by_gap(
        others / times[named] - 1 if others > times[named] else 1 - times[named] / others
    )


def judge_sign(gap: float, strict: bool = True) -> Verdict:
    """Is ``gap`` (1 is 100 %) positive, which is the stated direction? Up to 2 % is a tie.

    Without ``strict`` the claim is that nothing goes the other way, so that no gap is as good as a
    large one.
    """
    if math.isnan(gap):
        return Verdict.NOT_MEASURED
    return Verdict.HOLDS if not strict and gap >= 0 else _by_gap(gap)


def judge_exact(ours: object, value: object) -> Verdict:
    """Are they equal?"""
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
    """One thing a paper says and what we measured."""

    claim: str
    part: str  # of a claim that says several things; else empty
    where: str  # in the paper
    paper: str  # its value, as text
    ours: str
    verdict: Verdict
    number: float | None = None  # ours, where it is one
    why: str = ""  # it differs, or was not measured
    share: float | None = None  # of the open readings, under which it holds; None: not run
    tied: float | None = None  # of the open readings, under which it is a tie
    readings: int = 0  # open readings tried
    # under the default readings at the scale at which the others were tried
    there: Verdict | None = None

    @property
    def label(self) -> str:
        return f"{self.claim} {self.part}".rstrip()


@dataclass(frozen=True)
class Claim:
    """What a paper says, from claims.toml. Its methods make findings by the rules above."""

    id: str
    kind: str
    where: str
    text: str
    value: float | None = None
    within: float | None = None

    def ratio(
        self,
        ours: float,
        said: str = "",
        *,
        part: str = "",
        value: float | None = None,
        within: float | None = None,
        at_least: bool = False,
        show: str = "",
        unit: Callable[[float], str] | None = None,
        why: Why = "",
    ) -> Finding:
        """A number near the paper's: the claim's own value, unless another is given for this part.

        ``said`` and ``show``: words before the paper's value, and ours, where the number alone
        would not do.
        """
        unit = unit or percent
        value = self.value if value is None else value
        within = self.within if within is None else within
        assert value is not None
        assert within is not None, f"claim {self.id} has no 'within'"
        verdict = judge_ratio(ours, value, within, at_least)
        about = "at least " if at_least else ""
        return self._finding(
            part, f"{said} {about}{unit(value)}".strip(), show or unit(ours), verdict, ours, why
        )

    def order(self, values: Mapping[str, float], *, part: str = "", why: Why = "") -> Finding:
        """The names in the paper's order, each with its value; lower comes first."""
        ours = ", ".join(f"{name} {value:.3g}" for name, value in values.items())
        return self._finding(
            part, " < ".join(values), ours, judge_order(values.values()), None, why
        )

    def winner(
        self,
        named: str,
        times: Mapping[str, float],
        *,
        part: str = "",
        beside: str = "",
        why: Why = "",
    ) -> Finding:
        """The one with the lowest time, among all that were run.

        ``beside``: what else a reader should see.
        """
        ranked = sorted(times, key=lambda name: times[name])
        best, *behind = ranked
        ours = (
            f"{best}; "
            + ", ".join(f"{name} {signed(times[name] / times[best] - 1)}" for name in behind)
            + beside
        )
        return self._finding(part, named, ours, judge_winner(named, times), None, why)

    def sign(
        self,
        gap: float,
        paper: str,
        ours: str = "",
        *,
        part: str = "",
        strict: bool = True,
        why: Why = "",
    ) -> Finding:
        """A direction; ``gap`` is positive if it is the stated one."""
        return self._finding(part, paper, ours or percent(gap), judge_sign(gap, strict), gap, why)

    def holds(self, does: bool, paper: str, ours: str, *, part: str = "", why: Why = "") -> Finding:
        """Something that is so or is not."""
        return self._finding(part, paper, ours, _either(does), None, why)

    def exact(self, ours: Any, value: Any = None, *, part: str = "", why: Why = "") -> Finding:
        """Equal to the paper's value."""
        value = self.value if value is None else value
        number = float(ours) if isinstance(ours, int | float) else None
        return self._finding(
            part, _plain(value), _plain(ours), judge_exact(ours, value), number, why
        )

    def unmeasured(self, why: str, *, part: str = "") -> Finding:
        """Nothing was measured, and that is said."""
        known = None if part else self.value  # a part may have a value of its own
        paper = "" if known is None else percent(known) if known < 1 else _plain(known)
        return Finding(self.id, part, self.where, paper, "", Verdict.NOT_MEASURED, why=why)

    def _finding(
        self, part: str, paper: str, ours: str, verdict: Verdict, number: float | None, why: Why
    ) -> Finding:
        reason = (
            (why if isinstance(why, str) else why())
            if verdict in (Verdict.DIFFERS, Verdict.NOT_MEASURED)
            else ""
        )
        return Finding(self.id, part, self.where, paper, ours, verdict, number, reason)


@dataclass(frozen=True)
class Claims:
    """Everything a paper says that a simulator can check, and the set-up it says it for."""

    paper: str
    setup: str
    claims: tuple[Claim, ...]

    def __getitem__(self, claim: str) -> Claim:
        found = {c.id: c for c in self.claims}
        if claim not in found:
            raise UnknownName(f"claim of {self.paper}", claim, found)
        return found[claim]


@cache
def load_claims(paper: str) -> Claims:
    """The claims of one paper.

    >>> load_claims("observuvm")["O2"].value
    0.2
    """
    table = tomllib.loads((Path(__file__).parent / "claims.toml").read_text())
    if paper not in table:
        raise UnknownName("paper", paper, table)
    claims = tuple(Claim(**given) for given in table[paper]["claim"])
    return Claims(paper, table[paper]["setup"], claims)


@dataclass(frozen=True)
class Ledger:
    """All findings of one paper, in the order of its claims.

    A claim without a finding is there as not measured.
    """

    claims: Claims
    findings: tuple[Finding, ...]

    def __post_init__(self) -> None:
        by_claim = {c.id: [f for f in self.findings if f.claim == c.id] for c in self.claims.claims}
        whole = [
            f
            for c in self.claims.claims
            for f in by_claim[c.id] or [c.unmeasured("nothing here measures it")]
        ]
        object.__setattr__(self, "findings", tuple(whole))

    @property
    def tally(self) -> dict[Verdict, int]:
        counted = Counter(f.verdict for f in self.findings)
        return {v: counted[v] for v in Verdict}

    @property
    def summary(self) -> str:
        """One line: how many hold."""
        one_or_more = {
            Verdict.HOLDS: ("holds", "hold"),
            Verdict.TIE: ("is a tie", "are ties"),
            Verdict.DIFFERS: ("differs", "differ"),
            Verdict.NOT_MEASURED: ("was not measured", "were not measured"),
        }
        counted = ", ".join(f"{n} {one_or_more[v][n > 1]}" for v, n in self.tally.items() if n)
        return f"{len(self.findings)} findings on {len(self.claims.claims)} claims: {counted}"

    def to_json(self) -> list[dict[str, Any]]:
        return [{"label": f.label, **asdict(f)} for f in self.findings]

    def table(self) -> Table:
        """For a terminal."""
        from rich import box
        from rich.table import Table

        robust = any(f.share is not None for f in self.findings)
        table = Table(
            box=box.SIMPLE,
            title="ledger: " + self.summary,
            title_justify="left",
            title_style="bold",
        )
        for column in (
            "claim",
            "paper",
            "ours",
            "verdict",
            *(["readings"] if robust else []),
            "why",
        ):
            table.add_column(column, overflow="fold", no_wrap=column == "verdict")
        for f in self.findings:
            table.add_row(
                f.label, f.paper, f.ours, f.verdict, *([readings_text(f)] if robust else []), f.why
            )
        return table

    def html(self) -> str:
        """A table for a page: each claim with its words and its place, and its findings below."""
        rows = []
        for claim in self.claims.claims:
            words = (
                f"<b>{claim.id}</b> {html.escape(claim.text)} <i>({html.escape(claim.where)})</i>"
            )
            rows.append(f'<tr class="claim" id="{claim.id}"><td colspan="6">{words}</td></tr>')
            rows += [_html_row(f) for f in self.findings if f.claim == claim.id]
        head = "".join(
            f"<th>{h}</th>" for h in ("claim", "paper", "ours", "verdict", "open readings", "why")
        )
        return f'<table class="ledger"><thead><tr>{head}</tr></thead><tbody>{"".join(rows)}</tbody></table>'


def _html_row(f: Finding) -> str:
    cells = (f.label, f.paper, f.ours, f.verdict, readings_text(f), f.why)
    kind = f.verdict.name.lower()
    return (
        f'<tr class="{kind}">' + "".join(f"<td>{html.escape(str(c))}</td>" for c in cells) + "</tr>"
    )


def readings_text(finding: Finding) -> str:
    """In what share of the open readings it holds, and in what share it is a tie.

    Readings are tried at a smaller scale; where that alone changes the verdict, the share says
    little and this is said.
    """
    if finding.share is None:
        return "–"
    ties = f" + {finding.tied:.0%} ties" if finding.tied else ""
    there = (
        f"; the default there: {finding.there}"
        if finding.there not in (None, finding.verdict)
        else ""
    )
    return f"{finding.share:.0%}{ties} of {finding.readings}{there}"


def percent(value: float) -> str:
    """
    >>> percent(0.34), percent(0.042)
    ('34 %', '4.2 %')
    """
    return (
        f"{100 * value:.1f}".removesuffix(".0") + " %"
        if round(abs(value), 4) < 0.1
        else f"{100 * value:.0f} %"
    )


def signed(value: float) -> str:
    """
    >>> signed(0.341), signed(-0.0123)
    ('+34 %', '-1.2 %')
    """
    return f"{100 * value:+.1f} %" if round(abs(value), 4) < 0.1 else f"{100 * value:+.0f} %"


def _plain(value: object) -> str:
    return f"{value:g}" if isinstance(value, int | float) else str(value)
