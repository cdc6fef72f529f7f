"""The report: one page of any number of papers, with each paper's ledger, and its figures beside
the paper's words.
"""

from __future__ import annotations

import html
import io
import json
import os
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from tidegate.display.figures import check_output
from tidegate.errors import TidegateError
from tidegate.files import write_atomically
from tidegate.papers.ledger import Ledger, load_claims

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Exhibit:
    """One figure or table of a paper, made again: a table, a picture and the paper's words."""

    name: str  # "Figure 9"
    title: str
    words: str  # the paper's
    table: pl.DataFrame
    draw: Callable[[], Figure]
    notes: tuple[str, ...] = ()

    @property
    def slug(self) -> str:
        """The name as part of a file name or an anchor: figure9, figure8-75."""
        return re.sub(r"[^a-z0-9]+", "-", self.name.lower().replace("figure ", "figure")).strip("-")

    def to_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "title": self.title,
            "words": self.words,
            "rows": self.table.to_dicts(),
            "notes": list(self.notes),
        }


def make_exhibit(
    paper: str,
    name: str,
    title: str,
    table: pl.DataFrame,
    draw: Callable[[], Figure],
    notes: Iterable[str] = (),
) -> Exhibit:
    """Return an exhibit with the words that the paper has about it."""
    return Exhibit(name, title, load_claims(paper).words_on(name), table, draw, tuple(notes))


@dataclass(frozen=True)
class Reproduction:
    """The outcome of one paper: its ledger and its exhibits."""

    paper: str
    title: str
    setup: str  # what was run, in a line or two
    ledger: Ledger
    exhibits: tuple[Exhibit, ...]
    notes: tuple[str, ...] = ()
    runs: int = 0
    from_store: int = 0  # of the runs; not part of the page, which the same results make the same

    def to_json(self) -> dict[str, Any]:
        """Return everything but the pictures, as plain data."""
        return {
            "paper": self.paper,
            "title": self.title,
            "setup": self.setup,
            "notes": list(self.notes),
            "ledger": self.ledger.to_json(),
            "exhibits": [e.to_json() for e in self.exhibits],
        }


def check_destination(path: Path) -> None:
    """Raise if a report cannot be written there: a page of HTML, or a folder."""
    if path.suffix and not path.is_dir():
        return check_output(path, (".html",))
    if path.is_file():
        raise TidegateError(
            f"cannot write {path}: it is a file; expected a folder, or a name that ends in .html"
        )
    if not path.absolute().parent.is_dir():
        raise TidegateError(f"cannot write {path}: there is no folder {path.parent}")
    if not os.access(path if path.exists() else path.absolute().parent, os.W_OK):
        raise TidegateError(f"cannot write {path}: it is not writable")


def write_report(reproductions: Sequence[Reproduction], path: Path) -> list[Path]:
    """Write one page, or a folder with the page, figures (SVG), tables (CSV) and ledgers (JSON)."""
    check_destination(path)
    page = page_of(reproductions)
    if path.suffix and not path.is_dir():
        return [_write(path, page)]
    path.mkdir(exist_ok=True)
    written = [_write(path / "report.html", page)]
    for r in reproductions:
        ledger = json.dumps(r.to_json(), indent=2, default=str)
        written.append(_write(path / f"{r.paper}-ledger.json", ledger))
        for e in r.exhibits:
            written.append(_write(path / f"{r.paper}-{e.slug}.svg", svg_of(e.draw(), e.slug)))
            written.append(_write(path / f"{r.paper}-{e.slug}.csv", e.table.write_csv()))
    return written


def page_of(reproductions: Sequence[Reproduction]) -> str:
    """Return the whole page. The same results make the same page, byte for byte."""
    title = "Tidegate: " + ", ".join(r.paper for r in reproductions)
    contents = "".join(
        f'<li><a href="#{r.paper}">{html.escape(r.title)}</a>: {html.escape(r.ledger.summary)}</li>'
        for r in reproductions
    )
    return _PAGE.format(
        title=html.escape(title), contents=contents, body="\n".join(map(_section, reproductions))
    )


def _section(r: Reproduction) -> str:
    notes = "".join(f"<p>{html.escape(note)}</p>" for note in r.notes)
    return (
        f'<section id="{r.paper}"><h1>{html.escape(r.title)}</h1>'
        f"<p>{html.escape(r.setup)}</p>{notes}"
        f"<h2>Ledger</h2><p>{html.escape(r.ledger.summary)}.</p>{r.ledger.html()}"
        f"<h2>Figures</h2>{''.join(_figure(r, e) for e in r.exhibits)}</section>"
    )


def _figure(r: Reproduction, e: Exhibit) -> str:
    notes = "".join(f"<p>{html.escape(note)}</p>" for note in e.notes)
    svg = svg_of(e.draw(), f"{r.paper}-{e.slug}")
    return (
        f'<figure id="{r.paper}-{e.slug}"><h3>{e.name}: {html.escape(e.title)}</h3>'
        f"<blockquote>{html.escape(e.words)}</blockquote>{svg}{notes}"
        f"<details><summary>table</summary>{_html_table(e.table)}</details></figure>"
    )


def svg_of(figure: Figure, salt: str) -> str:
    """Return the figure as an <svg> element; ``salt`` makes its inner names unique on the page."""
    import matplotlib as mpl

    drawing = io.StringIO()
    with mpl.rc_context({"svg.hashsalt": salt, "svg.fonttype": "none"}):
        figure.savefig(drawing, format="svg", metadata={"Date": None})
    svg = drawing.getvalue()
    return svg[svg.index("<svg") :]


def _html_table(table: pl.DataFrame) -> str:
    head = "".join(f"<th>{html.escape(c)}</th>" for c in table.columns)
    rows = "".join(
        "<tr>" + "".join(f"<td>{html.escape(show_cell(v))}</td>" for v in row) + "</tr>"
        for row in table.rows()
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"


def show_cell(value: object) -> str:
    """Return the text of a table's cell."""
    if value is None:
        return "–"
    if isinstance(value, float):
        return f"{value:.3f}" if abs(value) < 100 else f"{value:,.0f}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def _write(path: Path, text: str) -> Path:
    write_atomically(path, text)
    return path


_PAGE = """<!doctype html>
<html lang="en"><meta charset="utf-8"><title>{title}</title>
<style>
body {{ font: 15px/1.5 system-ui, sans-serif; max-width: 76rem; margin: 2rem auto; padding: 0 1rem;
  color: #222 }}
svg {{ max-width: 100%; height: auto; display: block }}
figure {{ margin: 2.5rem 0 }}
blockquote {{ margin: .5rem 0; padding-left: 1rem; border-left: 3px solid #ccc; color: #555 }}
table {{ border-collapse: collapse; font-size: 13px }}
td, th {{ padding: .2rem .6rem; text-align: left; vertical-align: top;
  border-bottom: 1px solid #eee }}
tr.claim td {{ padding-top: 1rem; background: #fafafa }}
tr td:nth-child(4) {{ white-space: nowrap }}
tr.holds td:nth-child(4) {{ color: #00724f; font-weight: 600 }}
tr.tie td:nth-child(4) {{ color: #8a6500; font-weight: 600 }}
tr.differs td:nth-child(4) {{ color: #b34700; font-weight: 600 }}
tr.reduced td:nth-child(4) {{ color: #2b5fa8 }}
tr.weak td:nth-child(4) {{ color: #777; font-weight: 400 }}
</style>
<p>Each claim of the papers beside what Tidegate measured. HOLDS, DIFFERS: by the rule of the
claim's kind. TIE: within 2 %, which is no evidence. By construction: an input of ours. Hangs on:
without that application the verdict is another. In blue and small letters: measured with another
setting than the claim's, as in "holds at 1/8". Open readings: the share of plausible readings of
what a paper leaves open under which the claim holds.</p>
<ul>{contents}</ul>
{body}
</html>
"""
