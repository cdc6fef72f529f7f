"""The report: one page of several papers, written whole, to where it can be written."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from matplotlib.figure import Figure

from tidegate.errors import TidegateError
from tidegate.papers.ledger import Ledger, load_claims
from tidegate.papers.report import (
    Exhibit,
    Reproduction,
    check_destination,
    page_of,
    show_cell,
    write_report,
)

pytestmark = pytest.mark.paper


def draw() -> Figure:
    figure = Figure()
    figure.subplots().plot([0, 1], [1, 2], label="a < b")
    return figure


def make(paper: str) -> Reproduction:
    table = pl.DataFrame({"x": [1, None], "y": [0.5, 1.0]})
    exhibit = Exhibit("Figure 1", "a <title>", "The paper's words & more", table, draw)
    return Reproduction(
        paper,
        f"{paper}: title",
        "a set-up",
        Ledger(load_claims(paper), ()),
        (exhibit,),
        ("a note",),
    )


def test_one_page_holds_any_number_of_papers() -> None:
    page = page_of([make("observuvm"), make("gmt"), make("leu")])
    for paper, claim in (("observuvm", "O16"), ("gmt", "G8"), ("leu", "L5")):
        assert f'<section id="{paper}">' in page
        assert f'id="{claim}"' in page
    assert page.count("<svg") == 3
    assert "a &lt;title&gt;" in page
    assert "The paper&#x27;s words &amp; more" in page


def test_a_page_or_a_folder_is_written_whole(tmp_path: Path) -> None:
    assert write_report([make("leu")], tmp_path / "a.html") == [tmp_path / "a.html"]
    names = {p.name for p in write_report([make("leu")], tmp_path / "folder")}
    assert names == {"report.html", "leu-ledger.json", "leu-figure1.svg", "leu-figure1.csv"}
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.html", "folder"]


@pytest.mark.parametrize("given", ["report.pdf", "nowhere/report.html", "nowhere/deeper/folder"])
def test_where_it_cannot_be_written_is_said_at_once(tmp_path: Path, given: str) -> None:
    with pytest.raises(TidegateError, match="cannot write"):
        check_destination(tmp_path / given)


def test_a_file_in_the_way_of_a_folder_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "report").write_text("mine")
    with pytest.raises(TidegateError, match="it is a file"):
        write_report([make("leu")], tmp_path / "report")
    assert (tmp_path / "report").read_text() == "mine"


def test_names_make_file_names() -> None:
    names = ("Figure 9", "Figure 8 75%", "Figure 7 12.5%", "Beyond cppe", "Structures")
    made = [Exhibit(name, "", "", pl.DataFrame(), draw).slug for name in names]
    assert made == ["figure9", "figure8-75", "figure7-12-5", "beyond-cppe", "structures"]


def test_cells_as_people_read_them() -> None:
    assert [show_cell(v) for v in (None, 0.5, 12345.6, 12345, "MM")] == [
        "–",
        "0.500",
        "12,346",
        "12,345",
        "MM",
    ]
