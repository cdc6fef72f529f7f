"""An arena in a notebook: what it holds and what it did."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING, Any

from tidegate.display.tables import Cell, ShareBar, Table
from tidegate.errors import TidegateError
from tidegate.units import show_size

if TYPE_CHECKING:
    from tidegate.live.arena.arena import Arena


def arena_html(arena: Arena) -> str:
    """Return an arena for a notebook: its counts, and the arrays with most faults."""
    title = f"<p><b>{html.escape(repr(arena).strip('<>'))}</b></p>"
    try:
        return title + "".join(table.html() for table in arena_tables(arena.stats()))
    except TidegateError as error:
        return f"{title}<p>{html.escape(str(error))}</p>"


def arena_tables(stats: dict[str, Any]) -> list[Table]:
    """Return what an arena counted, and the objects with most faults."""
    counts = [
        ("faults", f"{stats['faults']:,}"),
        ("evictions", f"{stats['evictions']:,}"),
        ("read", show_size(stats["bytes_in"])),
        ("written", show_size(stats["bytes_out"])),
    ]
    objects = stats["objects"]
    most = max((o["faults"] for o in objects), default=0) or 1
    rows: list[list[Cell]] = [
        [o["name"], show_size(o["bytes"]), f"{o['faults']:,}", ShareBar(o["faults"] / most)]
        for o in objects
    ]
    return [Table(["count", ""], counts), Table(["array", "size", "faults", ""], rows)]
