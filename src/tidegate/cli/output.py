"""Output of verbs: a table for people, JSON or CSV for programs, a file for a picture."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tidegate.errors import TidegateError

if TYPE_CHECKING:
    from tidegate.experiments import Run

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
AsCsv = Annotated[bool, typer.Option("--csv", help="Print CSV instead of a table.")]
PlotTo = Annotated[
    Path | None, typer.Option("--plot", help="Also draw it, to a .png, .svg or .html file.")
]


def check(as_json: bool, as_csv: bool, plot: Path | None) -> None:
    """Refuse options that contradict each other and files that cannot be written."""
    if as_json and as_csv:
        raise TidegateError("--json and --csv were both given; give one")
    if plot is not None:
        from tidegate.figures import check_output

        check_output(plot)


def show(
    found: Any,
    data: Any,
    rows: Sequence[dict[str, Any]],
    print_found: Callable[[Any], None],
    as_json: bool,
    as_csv: bool,
    plot: Path | None,
) -> None:
    """Print ``data`` as JSON, ``rows`` as CSV, or a table by ``print_found``; draw a plot first."""
    if plot is not None:
        found.plot(plot)  # before anything is printed: the reader may close the pipe
    if as_json:
        print_json(data)
    elif as_csv:
        print_csv(rows)
    else:
        print_found(found)
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
    """Print a table; the first ``left`` columns hold words, the others figures."""
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


def print_notes(runs: Sequence[Run]) -> None:
    """Print the notes of runs, each once."""
    for note in dict.fromkeys(note for run in runs for note in run.notes):
        print(f"note: {note}")


def print_stored(stored: int, runs: int) -> None:
    """Say how many runs were not computed now, and how to compute them."""
    if stored and runs == 1:
        print("from the store; --no-cache computes it anew")
    elif stored:
        print(f"{stored} of {runs} runs are from the store; --no-cache computes them anew")


def bar(share: float, width: int) -> str:
    """Return a bar of text."""
    return ("█" * round(width * share)).ljust(width)
