"""The ledger of reality as tables, and as one HTML page."""

from __future__ import annotations

import html

from tidegate.display.figures import svg_text
from tidegate.display.tables import Table
from tidegate.machine import load_machine
from tidegate.validate.ledger import Row, Validation, show_value
from tidegate.validate.pictures import draw_ledger

_COLUMNS = ["set", "point", "role", "measured", "simulated", "ratio", ""]


def card_tables(validation: Validation) -> list[Table]:
    """Return a table for each card, and one of all cards."""
    tables = [_table(validation, name) for name in validation.machines]
    rows = [
        [
            card.machine,
            str(card.rows),
            f"{card.within}",
            f"{card.mean:.2f} ×" if card.worst > 1 else "–",
            f"{card.worst:.2f} ×" if card.worst > 1 else "–",
        ]
        for card in validation.cards
    ]
    columns = ["card", "test rows", "within", "mean of times", "worst time"]
    return [*tables, Table(columns, rows, "Test rows by card", left=1)]


def _table(validation: Validation, machine: str) -> Table:
    rows = validation.of(machine)
    sources = list(dict.fromkeys(r.point.source for r in rows))
    where = "; ".join(f"{s.set}: driver {s.driver}, {s.host}, {s.where}" for s in sources)
    title = f"{machine}: {load_machine(machine).description}. {where}"
    return Table(_COLUMNS, [_cells(row) for row in rows], title, left=3)


def _cells(row: Row) -> list[str]:
    point = row.point
    return [
        point.source.set,
        point.name,
        point.role.value,
        show_value(point.quantity, point.measured),
        show_value(point.quantity, row.simulated),
        "–" if row.ratio is None else f"{row.ratio:.2f}",
        "" if row.within else "OFF",
    ]


def page_of(validation: Validation) -> str:
    """Return the whole page: what the rows mean, the picture, the tables."""
    *cards, summary = (table.html() for table in card_tables(validation))
    return _PAGE.format(
        picture=svg_text(draw_ledger([row.to_json() for row in validation.rows])),
        summary=summary,
        cards="\n".join(cards),
        notes="".join(f"<li>{html.escape(note)}</li>" for note in notes_of(validation)),
    )


def notes_of(validation: Validation) -> list[str]:
    """Return what the sources say of their points, each once."""
    return list(
        dict.fromkeys(
            f"{s.set}: {' '.join(s.note.split())}"
            for s in (row.point.source for row in validation.rows)
            if s.note
        )
    )


_PAGE = """<!doctype html>
<html lang="en"><meta charset="utf-8"><title>Tidegate beside real cards</title>
<style>
body {{ font: 15px/1.5 system-ui, sans-serif; max-width: 70rem }}
body {{ margin: 2rem auto; padding: 0 1rem }}
svg {{ max-width: 100%; height: auto }}
table {{ border-collapse: collapse; margin: 1.5rem 0; font-size: 13px }}
caption {{ text-align: left; font-weight: 600; padding: .3rem 0 }}
td, th {{ padding: .2rem .8rem .2rem 0; text-align: left; vertical-align: top }}
tr + tr td {{ border-top: 1px solid #ddd }}
</style>
<h1>Tidegate beside real cards</h1>
<p>Each row is a value that somebody measured, beside the simulated one. <b>Fitted</b>: constants of
the card's machine file were fitted on it. <b>Read off</b>: a constant is this value. <b>Test</b>:
nothing was chosen by it; only these rows count. OFF: out of tolerance (times 25 % in memory and
35 % oversubscribed, bytes and copies 1 %, moves exact, faults a factor of 2).</p>
{summary}
{picture}
{cards}
<ul>{notes}</ul>
</html>
"""
