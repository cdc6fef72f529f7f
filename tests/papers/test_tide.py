"""The ledger of our own claims: halves, the grid, findings on made-up runs, and all of it, tiny."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from papers.synthetic import make_run
from tidegate.errors import TidegateError
from tidegate.papers.ledger import Verdict
from tidegate.papers.results import Groups
from tidegate.papers.tide import setup as tide
from tidegate.papers.tide.findings import all_findings
from tidegate.papers.tide.grid import CONSTANTS, MOVED, grid_of
from tidegate.papers.tide.paper import PAPER
from tidegate.papers.tide.setup import DEVELOPED, HELD_BACK, SUITES, Application, Setup
from tidegate.policies.prefetch.stream import Stream
from tidegate.policies.registries import eviction, placement, prefetch

pytestmark = pytest.mark.paper

MM, GMM = Application("observuvm", "MM"), Application("observuvm", "GMM")


def test_half_of_each_suite_was_developed_on() -> None:
    halves = [(at.suite, at.half) for at in Setup().applications]
    counted = {key: halves.count(key) for key in halves}
    assert counted == {
        ("observuvm", DEVELOPED): 7,
        ("observuvm", HELD_BACK): 7,
        ("cppe", DEVELOPED): 12,
        ("cppe", HELD_BACK): 11,
        ("gmt", HELD_BACK): 9,
        ("openmp", DEVELOPED): 8,
    }


def test_the_grid_has_every_level_and_belady() -> None:
    grid = grid_of(Setup())
    assert {group for _, _, group in grid} == {"25%", "50%", "100%", MOVED, CONSTANTS}
    spec = grid[MM, "tide", "50%"]
    assert (spec.system, spec.scale, spec.machine) == ("tide", 1 / 16, "rtx3090-pcie4")
    assert (grid[MM, "belady", MOVED].slots, grid[MM, "tide", MOVED].eviction) == (1, "tide")


def test_every_constant_of_tide_is_halved_and_doubled() -> None:
    """Its defaults are those of the policies, and none is left out but the seed and stream's."""
    registries = {"eviction": eviction, "prefetch": prefetch, "placement": placement}
    for part, constants in tide.CONSTANTS.items():
        options = type(registries[part].make("tide")).options()
        others = {"seed", *(Stream.options() if part == "prefetch" else ())}
        own = {n: o.default for n, o in options.items() if n not in others}
        assert own == constants
    assert ("eviction", "draws", 8) in Setup().changed()
    assert ("placement", "price", 0.125) in Setup().changed()


@pytest.mark.parametrize("levels", [(), ("0%",)])
def test_levels_that_leave_nothing_to_do_are_refused(levels: tuple[str, ...]) -> None:
    with pytest.raises(TidegateError, match="oversubscribe must"):
        Setup(levels=levels)


def test_recorded_programs_are_a_suite_of_their_own(tmp_path: Path) -> None:
    (tmp_path / "decode.parquet").touch()
    setup = Setup(recorded=str(tmp_path))
    at = Application("recorded", "decode")
    spec = grid_of(setup)[at, "tide", "50%"]
    assert (spec.workload, spec.scale, at.half) == (setup.applications[at], None, HELD_BACK)
    assert (at, "belady", MOVED) not in grid_of(setup)
    with pytest.raises(TidegateError, match="recorded must be a folder, got nowhere"):
        Setup(recorded="nowhere")


def findings(**times: float) -> dict[str, Any]:
    """Return the findings where MM and GMM take these times; others take 100."""
    systems = ("uvm", "tide", *SUITES["observuvm"].rivals)
    runs: dict[Any, Any] = {
        (at, s, "50%"): make_run(times.get(s, 100.0)) for at in (MM, GMM) for s in systems
    }
    for policy, pages in {"belady": 100, "tide": 130, "leu-observed": 140}.items():
        for at in (MM, GMM):
            runs[at, policy, MOVED] = make_run(pages_in=pages)
    found = all_findings(Setup(levels=("50%",)), Groups.from_runs(runs))
    return {f.label: f for f in found}


def test_a_target_that_is_met_holds_and_one_that_is_missed_says_by_how_much() -> None:
    found = findings(tide=50.0, host=60.0)
    ahead = found["T1 observuvm held back 50%"]
    assert (ahead.verdict, ahead.number) == (Verdict.HOLDS, pytest.approx(1 / 6))
    assert ahead.ours == "17 %: 0.50 of uvm's time, host 0.60"
    assert found["T2 50%"].verdict is Verdict.HOLDS
    assert (found["T3 all"].verdict, found["T3 all"].ours[:4]) == (Verdict.DIFFERS, "1.30")
    assert found["T4"].verdict is Verdict.HOLDS
    assert found["T1 recorded"].verdict is Verdict.NOT_MEASURED
    assert found["T5"].verdict is found["T6"].verdict is Verdict.NOT_MEASURED


def test_being_behind_differs_and_names_the_application() -> None:
    found = findings(tide=110.0)
    assert found["T1 observuvm developed 50%"].verdict is Verdict.DIFFERS
    assert found["T2 50%"].verdict is Verdict.DIFFERS
    assert "MM, GMM" in found["T2 50%"].why


def test_all_of_it_on_a_tiny_stand_in(monkeypatch: pytest.MonkeyPatch) -> None:
    suite = SUITES["observuvm"]._replace(rivals=("host",))
    monkeypatch.setitem(tide.SUITES, "observuvm", suite)
    few = Setup(levels=("50%",), given=(("observuvm", "MM", "cyclic(bytes=16MiB, passes=4)"),))
    made = PAPER.reproduce(few, workers=1, cache=False)
    assert [e.name for e in made.exhibits] == ["Time 50%", "Gap", "Constants"]
    assert made.exhibits[0].table["tide"][0] > 0
    assert made.exhibits[0].draw().axes
    constants = made.exhibits[2]
    assert constants.table["tide with"][0] == "tide"
    assert constants.draw().axes
    assert {f.at for f in made.ledger.findings} == {"with --oversubscribe 50%"}
