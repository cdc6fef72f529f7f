"""tidegate cache: what is stored on disk, and its removal."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from tidegate.cli import output
from tidegate.cli.usage import Verbs

if TYPE_CHECKING:
    from tidegate.cli.cached_files import Held

app = Verbs(
    help="Show or clear what is stored: runs, recordings, readings, traces, compiled code.",
    invoke_without_command=True,
)
Kinds = Annotated[
    list[str] | None,
    typer.Argument(
        help="runs, recordings, readings, traces or compiled; all by default.", show_default=False
    ),
]


@app.callback()
def show(
    context: typer.Context, as_json: output.AsJson = False, as_csv: output.AsCsv = False
) -> None:
    """Show what is stored, where, and how large it is.

    tidegate cache
    """
    output.check(as_json, as_csv, None)
    if context.invoked_subcommand is None:
        from tidegate.cli.cached_files import held

        _print(held(), as_json, as_csv)


@app.command("clear")
def clear(
    kinds: Kinds = None, as_json: output.AsJson = False, as_csv: output.AsCsv = False
) -> None:
    """Remove what is stored; runs and compiled code are made again when they are needed.

    tidegate cache clear runs
    """
    output.check(as_json, as_csv, None)
    from tidegate.cli.cached_files import clear

    removed = clear(kinds or ())
    if not (as_json or as_csv):
        print("removed:")
    _print(removed, as_json, as_csv)


def _print(found: Iterable[Held], as_json: bool, as_csv: bool) -> None:
    from tidegate.files import cache_folder
    from tidegate.units import show_size

    if as_json or as_csv:
        (output.print_json if as_json else output.print_csv)([asdict(h) for h in found])
        return
    rows = [(h.kind, f"{h.files:,}", show_size(h.bytes)) for h in found]
    print(cache_folder())
    output.print_table(["kind", "files", "size"], rows)
