"""Tables fit any width, drop columns by importance, and lose no letter."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.display.tables import FULL, ShareBar, Table, cell_width, csv_of, printable, wrap

RACE = Table(
    ["eviction", "time", "against lrm", "faults", "evictions", "in", "out", ""],
    [
        ["lrm", "606 ms", "1.00×", "40,168", "1,719", "4.00 GiB", "3.34 GiB", ShareBar(1.0)],
        [
            "random(seed=1)",
            "424 ms",
            "1.43×",
            "27,310",
            "1,075",
            "2.75 GiB",
            "2.09 GiB",
            ShareBar(0.7),
        ],
    ],
    "near memory 682 MiB, 50% oversubscribed",
    drop=("out", "in", "evictions"),
)
texts = st.text("ab (=,)_-/|é記\x1b\n0123456789", max_size=30)


@st.composite
def tables(draw) -> Table:
    columns = draw(st.lists(texts, min_size=1, max_size=6, unique=True))
    bar = draw(st.none() | st.integers(0, len(columns) - 1))
    rows = [
        [ShareBar(draw(st.floats(0, 1))) if i == bar else draw(texts) for i in range(len(columns))]
        for _ in range(draw(st.integers(0, 4)))
    ]
    drop = draw(st.lists(st.sampled_from(columns), unique=True))
    return Table(columns, rows, draw(texts), draw(st.integers(0, 3)), drop)


def letters(text: str) -> str:
    return "".join(c for c in text if c.isprintable() and c != " ")


@pytest.mark.slow
@given(tables(), st.integers(20, 200))
def test_every_line_fits_every_width(table, width):
    lines = [line for line, _ in table.lines(width)]
    assert all(cell_width(line) <= width for line in lines)
    assert all(line.isprintable() for line in lines)


@given(texts, st.integers(1, 40))
def test_wrapping_loses_no_letter(text, width):
    lines = wrap(text, width)
    assert "".join(map(letters, lines)) == letters(text)
    widest = max(2 if "記" in text else 1, width)
    assert all(cell_width(line) <= widest for line in lines)


@given(st.text("ab", min_size=1, max_size=8), st.integers(20, 200))
def test_words_that_fit_are_never_broken(word, width):
    rows = [[f"{word} {word}", "1.00 GiB"], ["lrm", "2.00 GiB"]]
    shown = Table(["policy", "size"], rows).text(width)
    assert shown.count("GiB") == 2
    assert sum(line.split().count(word) for line in shown.splitlines()) == 2


@given(st.integers(20, 200))
def test_the_race_at_every_width(width):
    lines = RACE.text(width).splitlines()
    shown = " ".join(lines)
    assert all(len(line) <= width for line in lines)
    assert "606 ms" in shown
    assert "lrm" in shown
    hidden = shown.partition("not shown here: ")[2]
    for column in RACE.columns[1:-1]:
        named = column in " ".join(hidden.split())
        assert named != all(row[RACE.columns.index(column)] in shown for row in RACE.rows)


def test_columns_go_by_importance():
    order = [
        set(RACE.text(width).partition("not shown here: ")[2].replace("\n", " ").split(", "))
        for width in (120, 75, 64, 45)
    ]
    assert order == [{""}, {"out"}, {"in", "out"}, {"evictions", "in", "out"}]
    assert "█" in RACE.text(100)
    assert "█" not in RACE.text(80)


def test_bars_shrink_before_they_go():
    table = Table(["size", "ratio", ""], [["1 MiB", "50%", ShareBar(1.0)]])
    assert [table.text(w).count("█") for w in (200, 24, 20, 12)] == [16, 10, 6, 0]


def test_a_pipe_gets_every_column_whatever_the_window(monkeypatch):
    before = RACE.text()
    monkeypatch.setenv("COLUMNS", "20")
    assert RACE.text() == before
    wide = Table([f"column {i}" for i in range(40)], [["1234567"] * 40])
    assert wide.text().count("1234567") == 40
    assert max(map(len, RACE.text().splitlines())) <= FULL


def test_html_is_escaped():
    table = Table(["<b>", ""], [["<script>&", ShareBar(0.5)]], title="<i>")
    found = table.html()
    assert "<script>" not in found
    assert "&lt;script&gt;&amp;" in found
    assert "&lt;b&gt;" in found
    assert "&lt;i&gt;" in found
    assert "width:4.00em" in found


HOSTILE = "\x1b]0;title\x07\x9b2Jk\r\n\u202e"


def test_no_text_is_obeyed_by_a_terminal():
    table = Table([HOSTILE, "b"], [[HOSTILE, "1"]], title=HOSTILE)
    assert all(line.isprintable() for line, _ in table.lines(80))
    assert printable(HOSTILE).isprintable()


@pytest.mark.parametrize("first", ["=", "+", "-", "@", "\t", "\r"])
def test_cells_of_text_are_no_formulas(first):
    frame = pl.DataFrame({first + "name": [first + "1+1", None, "lrm"], "n": [-1, None, 2]})
    csv = csv_of(frame)
    assert [line.split(",")[-1] for line in csv.splitlines()] == ["n", "-1", "", "2"]
    assert not any(line.strip('"').startswith(first) for line in csv.splitlines())
    assert csv_of(pl.DataFrame({"n": [-1.5]})) == "n\n-1.5\n"
