"""How verbs show what they found: a table for people, JSON or CSV for programs, a file for a
picture.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from tidegate.errors import TidegateError

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
AsCsv = Annotated[bool, typer.Option("--csv", help="Print CSV instead of a table.")]
PlotTo = Annotated[
    Path | None, typer.Option("--plot", help="Also draw it, to a .png, .svg or .html file.")
]


def check_asked(as_json: bool, as_csv: bool, plot: Path | None) -> None:
    """Refuse what cannot be done before anything is."""
    if as_json and as_csv:
        raise TidegateError("--json and --csv were both given; give one")
    if plot is not None:
        from tidegate.figures import check_output

        check_output(plot)


def tell(
    found: Any,
    data: Any,
    rows: Sequence[dict[str, Any]],
    show: Callable[[Any], None],
    as_json: bool,
    as_csv: bool,
    plot: Path | None,
) -> None:
    """What was found, in the way that was asked for: ``data`` as JSON, ``rows`` as CSV, or ``show``
    for people.
    """
    if plot is not None:
        found.plot(plot)  # before anything is printed: whoever reads that may go away
    if as_json:
        print_json(data)
    elif as_csv:
        print_csv(rows)
    else:
        show(found)
        if plot is not None:
            print(f"plotted to {plot}")


def print_json(data: Any) -> None:
    json.dump(data, sys.stdout, indent=2, default=str)
    sys.stdout.write("\n")


def print_csv(rows: Sequence[dict[str, Any]]) -> None:
    import polars as pl

    sys.stdout.write(pl.DataFrame(rows).write_csv())


def print_table(
    columns: Sequence[str], rows: Sequence[Sequence[str]], title: str = "", left: int = 1
) -> None:
    """A table; the first ``left`` columns hold words, the others figures."""
    from rich import box
    from rich.console import Console
    from rich.table import Table

    table = Table(box=box.SIMPLE, title=title or None, title_justify="left", title_style="bold")
    for i, column in enumerate(columns):
        table.add_column(
            column, justify="left" if i < left or not column else "right", overflow="fold"
        )
    for row in rows:
        table.add_row(*row)
    Console(width=None if sys.stdout.isatty() else 120, highlight=False, markup=False).print(table)
