"""Statistical caching's reproduction: examples, findings and gaps on made-up numbers, and all of it
on tiny stand-ins.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest

from papers.synthetic import make_run
from tidegate.errors import TidegateError
from tidegate.papers.ledger import Verdict
from tidegate.papers.leu.curves import (
    ALGORITHMS,
    OPT,
    OSL,
    PANELS,
    VMIN,
    Curves,
    chosen,
    curve_findings,
    curves_of,
)
from tidegate.papers.leu.examples import (
    REFERENCES,
    draw_examples,
    example_findings,
    examples_figure,
    priorities,
    random_sequences,
    stack_findings,
)
from tidegate.papers.leu.gaps import EXACT, Gaps, gap_figures, statement
from tidegate.papers.leu.paper import PAPER, RUNS, grid_of, specify
from tidegate.papers.leu.setup import BEST, SUITES, Application, Setup
from tidegate.policies.registries import eviction

pytestmark = pytest.mark.paper

A, B = Application("observuvm", "A"), Application("gmt", "B")
TINY = Setup(
    given=(
        ("observuvm", "A", "cyclic(bytes=32MiB, passes=6)"),
        ("gmt", "B", "zipf(bytes=4MiB, touches=2000)"),
    ),
    policies=("lrm", "lru-ideal", "mru", "lfu", "tournament", "leu", "leu-observed"),
    sequences=4,
)


def test_every_policy_meets_every_application() -> None:
    grid = grid_of(Setup())
    assert len(Setup().applications) == 14 + 23 + 9
    assert {policy for _, policy, _ in grid} >= set(eviction.names())
    runs = [key for key in grid if key[2] == RUNS]
    assert len(runs) == 46 * len(Setup().evictions) == PAPER.size(Setup()) - 46
    assert Setup().evictions.count(BEST) == 1
    spec = grid[Application("observuvm", "MM"), "lru", RUNS]
    assert (spec.slots, spec.prefetch, spec.gpu.observed) == (1, "region", round(100 / 32))
    # a tournament's patience, 100 regions, shrinks with what is observed
    spec = grid[Application("observuvm", "MM"), "tournament", RUNS]
    assert spec.prepare().eviction.patience == spec.gpu.observed == 3


@pytest.mark.parametrize("given", [{"scale": 0}, {"scale": -1}, {"oversubscribe": "0%"}])
def test_what_cannot_be_run_is_refused_at_once(given: dict[str, object]) -> None:
    with pytest.raises(TidegateError):
        Setup(**given)  # type: ignore[arg-type]


def test_unknown_policies_are_refused_before_anything_runs() -> None:
    with pytest.raises(TidegateError, match="leo"):
        PAPER.reproduce(replace(TINY, policies=("leo",)), workers=1)


# Examples and stack property


def test_examples_are_the_papers_but_for_the_printed_digits() -> None:
    found = {f.label: f for f in example_findings()}
    assert {f.verdict for f in found.values()} == {Verdict.HOLDS}
    assert [str(priorities("aaxyz", 5)[name].priority) for name in "xyz"] == ["1/3", "1/4", "1/5"]
    assert "erratum" in examples_figure().notes[0]
    assert found["L1 x"].ours == "1/2 (lease 6)"
    assert priorities("axayaz", 6, REFERENCES)["z"].priority == Fraction(1, 6)
    assert draw_examples().axes


def test_the_stack_property_is_shown() -> None:
    assert [f.verdict for f in stack_findings(4)] == [Verdict.HOLDS] * 3
    drawn = list(random_sequences(6))
    assert [references is None for _, references in drawn] == [True, False] * 3
    assert all(len(set(ids)) > 1 for ids, _ in drawn)


def test_a_broken_stack_would_be_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    from tidegate.papers.leu import examples

    monkeypatch.setattr(examples, "leu_misses", lambda ids, capacity, references: -1)
    assert [f.verdict for f in examples.stack_findings(2)] == [
        Verdict.HOLDS,
        Verdict.HOLDS,
        Verdict.DIFFERS,
    ]


# Curves


def curves(**misses: tuple[int, ...]) -> Curves:
    """Return curves where OPT misses 50 and 20, and others twice as often, but for ``misses``."""
    default = dict.fromkeys(ALGORITHMS, (100, 40)) | {OPT: (50, 20), VMIN: (45, 20), OSL: (50, 20)}
    exact = {"LEU": 30, "LEU, references": 40, OPT: 20}
    return Curves(200, 10, 2, (3, 6), {**default, **misses}, 6, exact)


def verdicts(**misses: tuple[int, ...]) -> dict[str, Verdict]:
    return {f.part: f.verdict for f in curve_findings({A: curves(), B: curves(**misses)})}


def test_l5_holds_where_osl_is_as_good_as_opt() -> None:
    assert set(verdicts().values()) == {Verdict.HOLDS}


def test_l5_differs_where_lru_is_better_on_average_at_one_size() -> None:
    assert verdicts(OSL=(130, 20))["LRU"] is Verdict.HOLDS  # in one application only
    assert verdicts(OSL=(450, 20))["LRU"] is Verdict.DIFFERS
    finding = next(
        f for f in curve_findings({A: curves(), B: curves(OSL=(450, 20))}) if f.part == "LRU"
    )
    assert "in B with 3 of 10 regions: +350 %" in finding.why
    assert "1 of 4 sizes" in finding.ours


def test_l5_against_opt_is_judged_on_average() -> None:
    assert verdicts(OSL=(49, 21))["OPT"] in (Verdict.HOLDS, Verdict.TIE)
    assert verdicts(OSL=(60, 30))["OPT"] is Verdict.DIFFERS


def test_no_algorithm_is_below_vmin() -> None:
    assert verdicts(VMIN=(45, 21))["VMIN"] is Verdict.DIFFERS


def test_panels_are_those_chosen_or_the_first() -> None:
    named = {Application("observuvm", name): curves() for name in PANELS}
    assert list(chosen({**named, Application("cppe", "BFS"): curves(), A: curves()})) == list(named)
    assert list(chosen({A: curves(), B: curves()})) == [A, B]


def test_curves_of_a_loop_are_its_closed_forms() -> None:
    """Sixteen regions, six times round, one more than fits each time: LRU always misses, OPT and
    LEU alike.
    """
    found = curves_of(specify(TINY, A, BEST))
    assert found.regions == 16
    assert found.touches == 16 * 6
    assert set(found.misses["LRU"]) == {96}
    assert found.misses["LEU"] == found.misses[OPT]
    for capacity, opt, vmin in zip(
        found.capacities, found.misses[OPT], found.misses[VMIN], strict=True
    ):
        assert vmin == 96 - capacity * 96 // 16 or vmin <= opt


# Gaps


def made_up() -> Gaps:
    pages = {
        "belady": (100, 10),
        "leu": (110, 40),
        "lru-ideal": (220, 20),
        "mru": (111, 41),
        "lfu": (100, 20),
    }
    runs = {
        (at, p): make_run(pages_in=n[i]) for p, n in pages.items() for i, at in enumerate((A, B))
    }
    return Gaps.from_runs(runs, {A: curves(), B: curves()})


def test_gaps_are_geometric_means_over_belady() -> None:
    gaps = made_up()
    assert gaps.over["leu"] == {A: 1.1, B: 4.0}
    assert gaps.mean("leu") == pytest.approx(4.4**0.5)
    assert gaps.mean("leu", "gmt") == 4.0
    assert gaps.over[EXACT["LEU"]] == {A: 1.5, B: 1.5}
    assert gaps.ranked[0] == "lfu"


def test_the_statement_says_where_leu_wins_and_loses() -> None:
    told = list(statement(made_up()))
    assert told[0].startswith("leu is number 4 of 6, 2.10 times Belady")
    assert "Against lru-ideal: better in 1 (A -50 %), worse in 1 (B +100 %), alike in 0." in told
    assert "Against mru: better in 1 (B -2.4 %), worse in 0, alike in 1." in told


def test_gap_figures_draw() -> None:
    means, each = gap_figures(made_up())
    assert means.table["policy"].to_list() == made_up().ranked
    assert each.table["application"].to_list() == ["A", "B"]
    assert means.draw().axes
    assert each.draw().axes


# All of it


@pytest.mark.slow
def test_all_of_it_on_tiny_stand_ins() -> None:
    done = []
    found = PAPER.reproduce(TINY, workers=1, cache=False, progress=done.append)
    assert sum(done) == PAPER.size(TINY)
    assert [e.name for e in found.exhibits] == [
        "Figure 3",
        "Figure 1",
        "Gap to Belady",
        "Gap by application",
    ]
    assert {f.claim for f in found.ledger.findings} == {"L1", "L2", "L3", "L4", "L5"}
    assert all(e.draw().axes for e in found.exhibits)
    gaps = {row["policy"]: row for row in found.exhibits[2].table.to_dicts()}
    assert all(row["all"] >= 1 for row in gaps.values())
    assert gaps["lru-ideal"]["observuvm"] > 2 > gaps["leu"]["observuvm"]
    assert "differs from the default" in found.notes[-1]
    assert set(SUITES) == {"observuvm", "cppe", "gmt"}
