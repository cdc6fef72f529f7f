"""The parts that reproductions share: results, means, comparisons of runs, pictures, traces."""

from __future__ import annotations

import math

import pytest

from papers.synthetic import make_run
from tidegate.papers.comparisons import compare_runs, extremes, mean_of
from tidegate.papers.pictures import grouped_bars, means_of
from tidegate.papers.results import NotRun, Results

pytestmark = pytest.mark.paper

GRID = Results(
    {
        ("A", "uvm"): make_run(100, evictions=10),
        ("A", "tm"): make_run(50, evictions=0),
        ("B", "uvm"): make_run(100, evictions=0),
        ("B", "tm"): make_run(200, evictions=3),
        ("C", "uvm"): make_run(100),
    }
)


def test_ratios_of_time_and_of_counts_where_nothing_counts_as_one() -> None:
    assert GRID.ratios("tm", "uvm") == {"A": 0.5, "B": 2.0}
    assert GRID.ratios("tm", "uvm", "evictions") == {"A": 0.1, "B": 3.0}


def test_what_was_not_run_is_said() -> None:
    with pytest.raises(NotRun, match="C was not run under tm"):
        GRID.ratio("C", "tm", "uvm")
    with pytest.raises(NotRun, match="C, D was not run under both tm and uvm"):
        GRID.ratios("tm", "uvm", among=("C", "D"))
    assert GRID.table(("uvm", "tm"), "uvm")["tm"].to_list() == [0.5, 2.0, None]


def test_a_mean_is_geometric_and_names_who_dominates_it() -> None:
    even = mean_of({"a": 0.5, "b": 2.0})
    assert even.value == pytest.approx(1)
    assert even.dominators == ()
    one = mean_of({"a": 0.9, "b": 0.9, "c": 0.9, "d": 0.1})
    assert one.value == pytest.approx(math.prod((0.9, 0.9, 0.9, 0.1)) ** 0.25)
    assert (one.without, one.dominators) == (pytest.approx(0.9), ("d",))
    assert mean_of({"a": 0.4}).text == "60 %"


def test_extremes_of_few_and_of_many() -> None:
    assert extremes({"a": 0.5}) == "a -50 %"
    assert extremes({"a": 0.5, "b": 1.5}) == "a -50 % … b +50 %"
    assert (
        extremes({"a": 0.5, "b": 0.6, "c": 0.7, "d": 1.0, "e": 1.2, "f": 1.5})
        == "a -50 %, b -40 % … e +20 %, f +50 %"
    )


def test_a_cause_names_counts_and_the_part_of_time() -> None:
    slow, fast = make_run(200, overhead=0.1, faults=300), make_run(100, faults=100)
    assert compare_runs(slow, "x", fast, "y") == (
        "x takes 100 % more time than y: 3.0 times the faults; 80 % of the difference is compute"
    )
    assert compare_runs(fast, "y", slow, "x").startswith(
        "y takes 50 % less time than x: -67 % faults"
    )
    assert compare_runs(fast, "y", fast, "x") == "y and x take the same time"


def test_bars_are_drawn_with_what_there_is() -> None:
    table = GRID.table(("uvm", "tm"), "uvm")
    figure = grouped_bars(table, ("uvm", "tm"), "a title", "time")
    labels = [t.get_text() for t in figure.axes[0].get_xticklabels()]
    assert labels[:4] == ["A", "B", "C", "mean"]
    assert means_of(table, ("tm",))["tm"].value == pytest.approx(1)
