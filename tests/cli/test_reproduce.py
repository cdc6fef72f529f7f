"""tidegate reproduce: what it prints, what it writes, and what it refuses with one line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tidegate.cli import invoke
from tidegate.papers import find_paper, find_setup, paper_names
from tidegate.papers.gmt import setup as gmt
from tidegate.papers.hybrid import setup as hybrid
from tidegate.papers.leu import setup as leu
from tidegate.papers.observuvm import paper as observuvm
from tidegate.papers.paper import Paper
from tidegate.papers.setup import Setup
from tidegate.papers.tide import setup as tide
from tidegate.workloads import suites

STAND_INS = ("cyclic(bytes=16MiB)", "stencil(bytes=16MiB)")


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two small applications in place of Table II."""
    monkeypatch.setattr(suites, "suite", lambda name, scale: STAND_INS)
    monkeypatch.setattr(observuvm, "PROBED", (32, 256, 512))
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
    ours = tide.Setup(levels=("50%",), given=(("gmt", "loop", STAND_INS[0]),))
    monkeypatch.setattr(tide.Setup, "quick", classmethod(lambda cls: ours))


@pytest.mark.slow
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
    assert [r["paper"] for r in found] == list(paper_names())
    assert {row["claim"] for row in found[0]["ledger"]} == {f"O{i}" for i in range(1, 17)}


@pytest.mark.parametrize(
    ("words", "tried"),
    [("--robustness", gmt.Setup.tried), ("--readings 3", 3), ("--robustness --readings 3", 3)],
)
def test_how_many_readings_are_tried(
    words: str, tried: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Setup] = []
    monkeypatch.setattr(
        "tidegate.cli.reproduce._reproduce", lambda setups, *_: asked.extend(setups.values())
    )
    assert invoke(["reproduce", "gmt", *words.split()]) == 0
    assert [setup.readings for setup in asked] == [tried]
    assert asked[0].as_published


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["observum"], "observum"),
        (["observuvm", "--scale", "0"], "scale must be positive, such as 1/8, got 0"),
        (
            ["observuvm", "--scale", "much"],
            "scale must be a number such as 50%, 1/8 or 0.5, got 'much'",
        ),
        (["observuvm", "--oversubscribe", "-10%"], "oversubscribe must be at least 0%"),
        (["observuvm", "--observed", "0"], "observed must be at least 1 region, got 0"),
        (["observuvm", "--workers", "0"], "--workers"),
        (["observuvm", "--out", "/nowhere/report.html"], "cannot write /nowhere/report.html"),
        (["gmt", "--factor", "0"], "such as 2, got 0"),
        (["gmt", "--factor", "nan"], "such as 2, got nan"),
        (["gmt", "--tier2-ratio", "inf"], "tier2-ratio must be Tier-2 over Tier-1"),
        (
            ["hybrid", "--threshold", "nan"],
            "threshold must be a density from 0 to 1000000, such as 0.5, got nan",
        ),
        (
            ["hybrid", "--unmap", "nan"],
            "unmap must be µs per KiB, from 0 to 1000000, such as 0.15, got nan",
        ),
        (["gmt", "--tier2-ratio", "-1"], "such as 4, got -1"),
        (["gmt", "--near", "1KiB"], "near must be at least one page of 64 KiB, got 1KiB"),
        (["gmt", "--scale", "0"], "scale must be positive, such as 1/8, got 0"),
        (["gmt", "--scale", "all"], "scale must be a number such as 50%, 1/8 or 0.5, got 'all'"),
        (["gmt", "--near", "some"], "'some'"),
        (["leu", "--scale", "0"], "scale must be positive, such as 1/8, got 0"),
        (["leu", "--oversubscribe", "0%"], "or everything fits, got 0%"),
        (["gmt", "--readings", "-1"], "readings must be from 0 to 1000000, got -1"),
        (["leu", "--readings", "4"], "--readings"),
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


def test_every_paper_has_the_same_protocol() -> None:
    assert set(paper_names()) == {"observuvm", "cppe", "gmt", "hybrid", "leu", "tide"}
    for name in paper_names():
        paper = find_paper(name)
        assert isinstance(paper, Paper)
        assert paper.name == paper.claims.paper == name
        assert paper.setup is find_setup(name)
        assert paper.size(paper.setup.quick()) > 0


def test_fields_of_a_setup_are_options() -> None:
    flags = {name: {o.flag for o in find_setup(name).options()} for name in paper_names()}
    every = {"--scale", "--readings"}
    assert flags["observuvm"] - every == {"--oversubscribe", "--observed", "--samples", "--spread"}
    assert flags["cppe"] - every == {"--fits", "--t1", "--t2", "--t3", "--interval", "--chunk"}
    assert flags["gmt"] - every == {"--factor", "--tier2-ratio", "--near"}
    assert every <= flags["observuvm"] & flags["cppe"] & flags["gmt"] & flags["hybrid"]
    assert {"--fitting", "--larger", "--threshold", "--loops", "--unmap"} <= flags["hybrid"]
    assert flags["leu"] == {"--scale", "--oversubscribe"}
    assert flags["tide"] == flags["leu"] | {"--recorded"}
    fitting = next(o for o in find_setup("hybrid").options() if o.field == "fitting")
    assert (fitting.read("4, 9"), fitting.shown) == ((4.0, 9.0), "4,9,14")


def test_a_setup_as_published_has_the_default_of_every_option_that_matters() -> None:
    for name in paper_names():
        setup = find_setup(name)
        assert setup().as_published
        assert issubclass(setup, Setup)
    for paper, scale, published in (
        ("observuvm", 0.5, False),
        ("gmt", 0.5, False),
        ("gmt", 2.0, True),
        ("hybrid", 1 / 64, False),
        ("hybrid", 1.0, True),
        ("cppe", 0.5, False),
        ("leu", 0.5, False),
    ):
        assert find_setup(paper)(scale=scale).as_published is published, paper
    assert not find_setup("hybrid")(applications=("cfd",)).as_published
    assert not find_setup("leu")(oversubscribe="30%").as_published
    for option, value in (("t1", 16), ("t2", 8), ("t3", 8), ("interval", 16), ("chunk", "32KiB")):
        assert not find_setup("cppe")(**{option: value}).as_published, option
    for option, value in (("factor", 4), ("ratio", 8), ("near", "512MiB")):
        assert not find_setup("gmt")(**{option: value}).as_published, option
    for option, value in (("observed", 50), ("samples", 1), ("oversubscribe", "10%")):
        assert not find_setup("observuvm")(**{option: value}).as_published, option
    for option, value in (("threshold", 0.1), ("loops", "own"), ("unmap", 0.1), ("larger", (31,))):
        assert not find_setup("hybrid")(**{option: value}).as_published, option
