"""tidegate reproduce: what it prints, what it writes, and what it refuses with one line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tidegate.cli import invoke
from tidegate.reproduce import PAPERS, find_paper, gmt, hybrid, leu, observuvm
from tidegate.reproduce.cppe import setup as cppe_grid
from tidegate.reproduce.observuvm import setup as grid

STAND_INS = ("cyclic(bytes=16MiB)", "stencil(bytes=16MiB)")


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two small applications in place of Table II."""
    monkeypatch.setattr(grid, "suite", lambda name, scale: STAND_INS)
    monkeypatch.setattr(cppe_grid, "suite", lambda name, scale: STAND_INS)
    monkeypatch.setattr(grid, "PROBED", (32, 256, 512))
    tiers = gmt.Setup(
        given=(("Hotspot", "gmt-Hotspot(bytes=4MiB)", 4 << 16),), systems=("bam", "tier-reuse")
    )
    monkeypatch.setattr(gmt.Setup, "quick", classmethod(lambda cls: tiers))
    small = hybrid.Setup(scale=1 / 256, fitting=(4,), larger=(19,), applications=("nn",))
    monkeypatch.setattr(hybrid.Setup, "quick", classmethod(lambda cls: small))
    few = leu.Setup(
        given=(("observuvm", "loop", STAND_INS[0]),), policies=("lrm", "leu"), sequences=2
    )
    monkeypatch.setattr(leu.Setup, "quick", classmethod(lambda cls: few))


@pytest.mark.usefixtures("tiny")
def test_it_prints_figures_and_ledger_and_writes_a_page(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert (
        invoke(
            [
                "reproduce",
                "observuvm",
                "--quick",
                "--workers",
                "1",
                "--out",
                str(tmp_path / "r.html"),
            ]
        )
        == 0
    )
    out = capsys.readouterr().out
    for number in (3, 5, 9, 10, 11, 12, 13):
        assert f"Figure {number}:" in out
    assert "NOT MEASURED" in out
    assert "O16" in (tmp_path / "r.html").read_text()


@pytest.mark.usefixtures("tiny")
def test_all_papers_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["reproduce", "all", "--quick", "--workers", "1", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [r["paper"] for r in found] == list(PAPERS)
    assert {row["claim"] for row in found[0]["ledger"]} == {f"O{i}" for i in range(1, 17)}


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["observum"], "observum"),
        (["observuvm", "--scale", "0"], "a scale of 0 is none"),
        (
            ["observuvm", "--scale", "much"],
            "share must be a number such as 50%, 1/8 or 0.5, got 'much'",
        ),
        (["observuvm", "--oversubscribe", "-10%"], "oversubscribe must be at least 0%"),
        (["observuvm", "--observed", "0"], "0 observed regions are none"),
        (["observuvm", "--workers", "0"], "--workers"),
        (["observuvm", "--out", "/nowhere/report.html"], "cannot write /nowhere/report.html"),
        (["gmt", "--factor", "0"], "a factor of 0 is none"),
        (["gmt", "--factor", "nan"], "a factor of nan is none"),
        (["gmt", "--tier2-ratio", "inf"], "leaves no Tier-2"),
        (["hybrid", "--threshold", "nan"], "a density of nan is none"),
        (["hybrid", "--unmap", "nan"], "unmapping cannot take nan"),
        (["gmt", "--tier2-ratio", "-1"], "leaves no Tier-2"),
        (["gmt", "--near", "1KiB"], "cannot hold one page"),
        (["gmt", "--scale", "0"], "a scale of 0 is none"),
        (["gmt", "--scale", "all"], "share must be a number such as 50%, 1/8 or 0.5, got 'all'"),
        (["gmt", "--near", "some"], "'some'"),
        (["leu", "--scale", "0"], "a scale of 0 is none"),
        (["leu", "--oversubscribe", "0%"], "everything fits"),
        (["observuvm", "--out", "report.pdf"], "cannot write report.pdf"),
    ],
)
def test_bad_input_gets_one_line(
    arguments: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert invoke(["reproduce", *arguments]) == 2
    error = capsys.readouterr().err.strip()
    assert told in error
    assert "\n" not in error


def test_every_paper_offers_the_same_three_names() -> None:
    for name in PAPERS:
        paper = find_paper(name)
        assert paper.size(paper.Setup.quick()) > 0
        assert callable(paper.reproduce)
    assert find_paper("observuvm") is observuvm
