"""The ledger: every rule by closed form, and what it makes of findings."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Mapping
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.errors import UnknownName
from tidegate.papers.ledger import (
    Claim,
    Evidence,
    Finding,
    Ledger,
    Verdict,
    find_dependence,
    judge_exact,
    judge_gain,
    judge_order,
    judge_ratio,
    judge_sign,
    judge_winner,
    load_claims,
    readings_text,
)

pytestmark = pytest.mark.closed_form

HOLDS, TIE, DIFFERS, NOT_MEASURED = Verdict
CLAIM = Claim("O2", "ratio", "VII-A", "a text", 0.20, 0.4)


# The rules


@pytest.mark.parametrize(
    ("ours", "verdict"),
    [
        (0.20, HOLDS),
        (0.28, HOLDS),
        (0.12, HOLDS),
        (0.2801, DIFFERS),
        (0.1199, DIFFERS),
        (-0.20, DIFFERS),
        (math.nan, NOT_MEASURED),
    ],
)
def test_a_ratio_holds_within_its_margin_on_both_sides(ours: float, verdict: Verdict) -> None:
    assert judge_ratio(ours, 0.20, 0.4) is verdict


@pytest.mark.parametrize(
    ("ours", "value", "verdict"),
    [
        (1.32, 1.25, HOLDS),
        (1.18, 1.25, HOLDS),
        (1.33, 1.25, DIFFERS),
        (1.0, 1.25, DIFFERS),  # though 1.00 is within 20 % of 1.25
        (0.92, 0.88, DIFFERS),
        (0.90, 0.88, HOLDS),
        (1.0, 0.88, DIFFERS),  # a slowdown that is none
        (1.12, 0.88, DIFFERS),
        (24.0, 18.7, HOLDS),
    ],
)
def test_of_a_speedup_the_gain_is_judged(ours: float, value: float, verdict: Verdict) -> None:
    assert judge_gain(ours, value, 0.3) is verdict


@pytest.mark.parametrize(("ours", "verdict"), [(0.81, HOLDS), (1.0, HOLDS), (0.80, DIFFERS)])
def test_at_least_is_open_above(ours: float, verdict: Verdict) -> None:
    assert judge_ratio(ours, 0.90, 0.1, at_least=True) is verdict
    assert judge_ratio(1.0, 0.90, 0.1) is DIFFERS


@given(st.floats(0.01, 100), st.floats(0.01, 100), st.floats(0, 2), st.floats(0.1, 10))
def test_a_ratio_does_not_depend_on_the_unit(
    ours: float, value: float, within: float, unit: float
) -> None:
    off = ours / value - 1
    if abs(abs(off) - within) > 1e-6:
        assert judge_ratio(ours * unit, value * unit, within) is judge_ratio(ours, value, within)
        assert (judge_ratio(ours, value, within) is HOLDS) == (abs(off) < within)


@pytest.mark.parametrize(
    ("times", "verdict"),
    [
        ({"lru": 100, "lfu": 103, "cp": 200}, HOLDS),
        ({"lru": 100, "lfu": 102, "cp": 200}, TIE),  # it wins, by no more than 2 %
        ({"lru": 102, "lfu": 100, "cp": 200}, TIE),  # it loses, by no more than 2 %
        ({"lru": 103, "lfu": 100, "cp": 200}, DIFFERS),
        ({"lru": 100, "lfu": 100, "cp": 100}, TIE),
    ],
)
def test_a_winner_within_two_per_cent_is_a_tie(times: dict[str, float], verdict: Verdict) -> None:
    assert judge_winner("lru", times) is verdict


@given(st.dictionaries(st.sampled_from("abcdef"), st.floats(1, 100), min_size=2))
def test_only_one_can_win_and_the_fastest_never_loses(times: dict[str, float]) -> None:
    verdicts = {name: judge_winner(name, times) for name in times}
    assert list(verdicts.values()).count(HOLDS) <= 1
    assert verdicts[min(times, key=lambda name: times[name])] in (HOLDS, TIE)
    assert verdicts[max(times, key=lambda name: times[name])] in (DIFFERS, TIE)


@pytest.mark.parametrize(
    ("values", "verdict"),
    [
        ([1, 2, 3], HOLDS),
        ([1, 1.01, 3], TIE),
        ([1, 0.99, 3], TIE),
        ([1, 0.9, 3], DIFFERS),
        ([1, 2, 1.9], DIFFERS),
    ],
)
def test_an_order_is_as_good_as_its_worst_step(values: list[float], verdict: Verdict) -> None:
    assert judge_order(values) is verdict


@pytest.mark.parametrize(
    ("gap", "strict", "verdict"),
    [
        (0.03, True, HOLDS),
        (0.02, True, TIE),
        (0.0, True, TIE),
        (-0.02, True, TIE),
        (-0.03, True, DIFFERS),
        (0.0, False, HOLDS),
        (0.01, False, HOLDS),
        (-0.02, False, TIE),
        (-0.03, False, DIFFERS),
        (math.nan, True, NOT_MEASURED),
    ],
)
def test_a_sign_needs_more_than_two_per_cent(gap: float, strict: bool, verdict: Verdict) -> None:
    assert judge_sign(gap, strict) is verdict


def test_exact_is_exact() -> None:
    assert judge_exact(256, 256.0) is HOLDS
    assert judge_exact(255, 256) is DIFFERS
    assert judge_exact("0 to 256", 256) is DIFFERS


# Claims and findings


@pytest.mark.parametrize(
    ("paper", "claims"), [("observuvm", 16), ("cppe", 7), ("gmt", 8), ("hybrid", 10), ("leu", 5)]
)
def test_every_papers_claims_can_be_read(paper: str, claims: int) -> None:
    found = load_claims(paper)
    assert len(found.claims) == claims
    assert found.setup
    assert {c.kind for c in found.claims} <= {"ratio", "order", "winner", "sign", "exact"}


def test_an_unknown_paper_or_claim_gets_one_clear_line() -> None:
    with pytest.raises(UnknownName, match="unknown paper 'observum'; did you mean 'observuvm'"):
        load_claims("observum")
    with pytest.raises(UnknownName, match="unknown claim of observuvm 'O99'"):
        load_claims("observuvm")["O99"]


def test_findings_say_both_values_and_why_only_where_it_matters() -> None:
    holds = CLAIM.ratio(0.25, "time less by", why="never shown")
    assert (holds.paper, holds.ours, holds.verdict, holds.why) == (
        "time less by 20 %",
        "25 %",
        HOLDS,
        "",
    )
    differs = CLAIM.for_part("MM").ratio(0.5, why=lambda: "looked for")
    assert (differs.label, differs.why) == ("O2 MM", "looked for")
    winner = CLAIM.winner("lru", {"lru": 110, "lfu": 100, "cp": 250}, beside="; uvm -10 %")
    assert (winner.ours, winner.verdict) == ("lfu; lru +10 %, cp +150 %; uvm -10 %", DIFFERS)
    assert CLAIM.order({"a": 1, "b": 2}).paper == "a < b"
    assert CLAIM.sign(0.1, "slower").ours == "10 %"
    assert CLAIM.exact(51, 1).verdict is DIFFERS
    assert CLAIM.ratio(1.5, value=1.56, unit=lambda x: f"{x:.2f}×").paper == "1.56×"


def test_a_claim_that_cannot_be_measured_says_so() -> None:
    finding = CLAIM.unmeasured("nothing was run")
    assert (finding.verdict, finding.paper, finding.ours, finding.why) == (
        NOT_MEASURED,
        "20 %",
        "",
        "nothing was run",
    )
    assert CLAIM.for_part("MM").unmeasured("MM was not run").paper == ""


# The ledger


def make_ledger() -> Ledger:
    claims = load_claims("observuvm")
    o1, o2 = claims["O1"], claims["O2"]
    times = {"lru": 1.0, "lfu": 2.0, "cp": 3.0}
    won, lost = o1.for_part("MM").winner("lru", times), o1.for_part("LU").winner("lfu", times)
    return Ledger(claims, (o2.ratio(0.5, why="<b>& why"), won, lost))


def test_a_ledger_keeps_the_papers_order_and_lacks_no_claim() -> None:
    ledger = make_ledger()
    assert [f.label for f in ledger.findings[:4]] == ["O1 MM", "O1 LU", "O2", "O3"]
    assert {f.claim for f in ledger.findings} == {f"O{i}" for i in range(1, 17)}
    assert ledger.tally == {HOLDS: 1, TIE: 0, DIFFERS: 2, NOT_MEASURED: 14}
    assert ledger.summary == (
        "17 findings on 16 claims: of 3 predictions 1 hold (33%); not measured: 14"
    )


def test_the_summary_counts_predictions_and_names_the_rest() -> None:
    claims = load_claims("gmt")
    g1, g4 = claims["G1"], claims["G4"]
    tie = claims["G6"].for_part("LavaMD, tier-random").sign(0.01, "faster")
    made = g4.for_part("Srad").ratio(0.83, value=0.8338)
    found = g1.for_part("BFS").gain(1.28, value=1.28, why="")
    lost = replace(g1.for_part("Srad").gain(1.0, value=2.33, why=""), hangs_on=("Srad",))
    assert [f.evidence for f in (tie, made, found)] == [
        Evidence.NONE,
        Evidence.BY_CONSTRUCTION,
        Evidence.PREDICTED,
    ]
    assert [f.is_prediction for f in (tie, made, found)] == [False, False, True]
    assert made.outcome == "HOLDS, by construction"
    assert tie.outcome == "TIE"
    assert lost.outcome == "DIFFERS, hangs on Srad"
    summary = Ledger(claims, (tie, made, found, lost)).summary
    assert summary == (
        "9 findings on 8 claims: of 2 predictions 1 hold (50%); hanging on one application: 1; "
        "by construction: 1; ties: 1; not measured: 5"
    )


def test_what_is_measured_on_a_stand_in_is_no_prediction() -> None:
    finding = load_claims("observuvm")["O13"].for_part("mean").ratio(0.2, value=0.2, within=0.5)
    assert (finding.evidence, finding.is_prediction) == (Evidence.NONE, False)
    assert finding.outcome == "HOLDS, not evidence"


def judge_mean(ratios: Mapping[str, float]) -> Finding:
    return CLAIM.ratio(sum(ratios.values()) / len(ratios))


def test_a_mean_says_on_which_application_it_hangs() -> None:
    even = find_dependence(judge_mean, {"a": 0.2, "b": 0.21, "c": 0.19})
    assert even.hangs_on == ()
    one = find_dependence(judge_mean, {"a": 0.05, "b": 0.05, "c": 0.5})
    assert (one.verdict, one.hangs_on) == (HOLDS, ("c",))
    assert one.outcome == "HOLDS, hangs on c"
    sizes = {("a", 4): 0.05, ("b", 4): 0.05, ("c", 4): 0.3, ("c", 9): 0.3}
    assert find_dependence(judge_mean, sizes, lambda key: key[0]).hangs_on == ("c",)
    assert find_dependence(judge_mean, {"a": 0.2, "b": 0.9}).hangs_on == ()  # nothing to leave out


def test_a_ledger_as_html_has_every_claim_and_escapes() -> None:
    page = make_ledger().html()
    for i in range(1, 17):
        assert f'id="O{i}"' in page
    assert "&lt;b&gt;&amp; why" in page
    assert "<b>&" not in page


def test_a_ledger_as_json_can_be_read_back() -> None:
    rows = json.loads(json.dumps(make_ledger().to_json()))
    assert rows[0] == {
        "label": "O1 MM",
        "evidence": "predicted",
        "outcome": "HOLDS",
        "claim": "O1",
        "part": "MM",
        "where": "Fig. 10, VII-A",
        "paper": "lru",
        "ours": "lru; lfu +100 %, cp +200 %",
        "verdict": "HOLDS",
        "number": None,
        "why": "",
        "share": None,
        "tied": None,
        "readings": 0,
        "there": None,
        "given": "predicted",
        "hangs_on": [],
        "at": "",
    }


def test_a_ledger_as_a_table_shows_readings_only_if_there_are_any() -> None:
    ledger = make_ledger()
    assert "readings" not in ledger.table().columns
    first, *rest = ledger.findings
    robust = dataclasses.replace(first, share=0.75, tied=0.2, readings=40)
    assert "readings" in Ledger(ledger.claims, (robust, *rest)).table().columns
    assert readings_text(robust) == "75% + 20% ties of 40"
    assert readings_text(first) == "–"
    elsewhere = dataclasses.replace(robust, tied=0, there=Verdict.DIFFERS)
    assert readings_text(elsewhere) == "75% of 40; the default there: DIFFERS"


def test_a_finding_at_another_setting_is_judged_and_says_so() -> None:
    holds, differs = (replace(CLAIM.ratio(x), at="at 1/8") for x in (0.2, 0.5))
    assert (holds.outcome, differs.outcome) == ("holds at 1/8", "differs at 1/8")
    ledger = Ledger(load_claims("observuvm"), (holds, differs))
    assert ledger.table().tones[:3] == ["", "reduced", "reduced"]
    assert "of 2 predictions 1 hold at 1/8 (50%)" in ledger.summary
    assert '<tr class="holds reduced">' in ledger.html()
    unmeasured = replace(CLAIM.unmeasured("it was not run"), at="at 1/8")
    assert unmeasured.outcome == "NOT MEASURED"
