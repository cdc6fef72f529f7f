"""Advice as one HTML file: words, pictures, tables and the code."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence

from tidegate.advice.advice import Advice
from tidegate.advice.pictures import draw_all
from tidegate.advice.words import sentences, tables
from tidegate.display.figures import svg_text
from tidegate.units import show_size


def page(found: Sequence[Advice], code: Mapping[str, str]) -> str:
    """Return the page of advice for one or several machines; ``code`` by the name of its file."""
    title = f"Advice on {found[0].subject.name}"
    parts = [body(advice) for advice in found]
    parts += [
        f"<h2>{html.escape(name)}</h2><details><summary>the code</summary>"
        f"<pre>{html.escape(text)}</pre></details>"
        for name, text in code.items()
    ]
    return _PAGE.format(title=html.escape(title), body="\n".join(parts))


def body(advice: Advice) -> str:
    """Return the advice for one machine, as a part of a page."""
    head = f"{advice.machine.name}, {show_size(advice.near)} of near memory"
    words = "".join(f"<p>{html.escape(text)}</p>" for text in sentences(advice))
    drawn = "".join(f"<figure>{svg_text(figure)}</figure>" for figure in draw_all(advice))
    shown = "".join(table.html() for table in tables(advice))
    notes = "".join(f"<li>{html.escape(note)}</li>" for note in advice.notes)
    return f"<h2>{html.escape(head)}</h2>{words}{drawn}{shown}<ul class=notes>{notes}</ul>"


_PAGE = """<!doctype html>
<html lang="en"><meta charset="utf-8"><title>{title}</title>
<style>
body {{ font: 15px/1.5 system-ui, sans-serif; max-width: 70rem }}
body {{ margin: 2rem auto; padding: 0 1rem }}
svg {{ max-width: 100%; height: auto }}
figure {{ margin: 1rem 0 }}
table {{ border-collapse: collapse; margin: 1rem 0 }}
caption {{ text-align: left; font-weight: 600; padding: .3rem 0 }}
td, th {{ padding: .2rem .8rem .2rem 0; text-align: left; vertical-align: top }}
tr + tr td {{ border-top: 1px solid #ddd }}
pre {{ background: #f6f6f6; padding: 1rem; overflow-x: auto }}
.notes {{ color: #555 }}
</style>
<h1>{title}</h1>
{body}
</html>
"""
