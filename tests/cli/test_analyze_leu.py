"""tidegate analyze --leu: table, JSON, CSV, picture, and one line for what cannot be."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tidegate.cli import invoke

LOOP = "cyclic(bytes=32MiB, passes=5)"  # sixteen regions


@pytest.mark.slow
def test_the_table_names_every_reference(capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["analyze", "matmul(bytes=48MiB)", "--leu"]) == 0
    out = capsys.readouterr().out
    assert "by 3 references" in out
    assert all(f" {name} " in out for name in ("A", "B", "C"))
    assert "its hits" in out


def test_one_reference_is_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["analyze", LOOP, "--leu"]) == 0
    assert "by 1 reference. LEU" in capsys.readouterr().out


@pytest.mark.parametrize("workload", [LOOP, "matmul(bytes=48MiB)"])
def test_legends_cover_nothing_and_steps_begin_at_nothing(workload: str) -> None:
    from tidegate.analysis.exact.plot import figure
    from tidegate.cli.access_sites import analyze
    from tidegate.experiments import RunSpec

    fig = figure(analyze(RunSpec(workload).trace(), "region", None, lambda touches: None))
    fig.draw_without_rendering()
    for axes in fig.axes:
        legend = axes.get_legend()
        assert legend is not None
        box = legend.get_window_extent()
        assert box.y1 <= axes.xaxis.get_tightbbox().y0 + 1  # below the axis's words
        assert fig.bbox.x0 <= box.x0 <= box.x1 <= fig.bbox.x1
        assert fig.bbox.y0 <= box.y0
    curves = [line for line in fig.axes[0].lines if line.get_marker() == "None"]
    assert curves
    assert all(
        line.get_ydata()[0] == 0 and line.get_xdata()[0] == line.get_xdata()[1] for line in curves
    )


def test_json_has_distributions_and_shares(capsys: pytest.CaptureFixture[str]) -> None:
    """A loop of sixteen regions in eight frames: every reuse is after sixteen, and LEU keeps seven
    of them.
    """
    assert invoke(["analyze", LOOP, "--leu", "--near", "16MiB", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["touches"], found["distinct"], found["capacity"]) == (80, 16, 8)
    (loop,) = found["references"]
    assert loop["intervals"] == [{"at_least": 16, "reuses": 64}]
    assert (loop["lease"], loop["lease_hits"], loop["hits"], loop["memory"]) == (16, 0.8, 1, 1)
    assert found["hits"] >= 4 * 6


def test_csv_and_picture(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert invoke(["analyze", LOOP, "--leu", "--csv", "--plot", str(tmp_path / "r.png")]) == 0
    assert capsys.readouterr().out.startswith("reference,object,touches,reused,interval_10")
    assert (tmp_path / "r.png").stat().st_size > 10_000


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--leu", "--near", "1KiB"], "--near must hold at least one region of 2.00 MiB, got 1KiB"),
        (["--leu", "--near", "1GiB"], "all fit and nothing is evicted"),
        (["--leu", "--near", "much"], "much"),
        (["--near", "16MiB"], "--near 16MiB was given without --leu"),
        (["--leu", "--shards", "1%"], "--shards samples the LRU curve"),
        (["--leu", "--plot", "r.pdf"], "cannot write r.pdf"),
        (["--leu", "--json", "--csv"], "both given"),
    ],
)
def test_bad_input_gets_one_line(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert invoke(["analyze", LOOP, *arguments]) == 2
    error = capsys.readouterr().err.strip()
    assert message in error
    assert "\n" not in error
