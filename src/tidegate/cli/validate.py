"""tidegate validate: what real cards did beside what the simulator says."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tidegate.cli import output, run_options
from tidegate.cli.output import ProgressBar
from tidegate.errors import TidegateError

if TYPE_CHECKING:
    from tidegate.validate.ledger import Validation
    from tidegate.validate.nsight import Beside


def validate(
    file: Annotated[
        Path | None,
        typer.Argument(
            help="An SQLite export of Nsight Systems; needs --workload.", show_default=False
        ),
    ] = None,
    card: Annotated[
        list[str] | None,
        typer.Option("--card", help="A card with measured points; repeatable. By default all."),
    ] = None,
    workload: Annotated[
        str | None, typer.Option("--workload", help="The program that FILE is a profile of.")
    ] = None,
    machine: Annotated[
        str | None, typer.Option("--machine", help="The machine file of FILE's card.")
    ] = None,
    near: Annotated[
        str | None, typer.Option("--near", help="Near memory of FILE's card; by default all of it.")
    ] = None,
    prefetch: Annotated[
        str, typer.Option("--prefetch", help="The prefetcher of FILE's driver.")
    ] = "tree",
    out: Annotated[
        Path | None, typer.Option("-o", "--out", help="The page to write (.html).")
    ] = None,
    plot: output.PlotTo = None,
    as_json: output.AsJson = False,
    as_csv: output.AsCsv = False,
    no_cache: run_options.NoCache = False,
) -> None:
    """Show measured runs of real cards beside simulated ones, or a profile of your own program.

    tidegate validate --card t4-pcie3 --plot t4.png

    tidegate validate report.sqlite --workload 'triad(bytes=3GiB)' --machine t4-pcie3
    """
    output.check(as_json, as_csv, plot)
    if file is not None:
        _refuse("FILE", {"--card": card, "--out": out}, "they are of the ledger")
        return _show_profile(file, workload, machine, near, prefetch, plot, as_json, as_csv)
    profiled = {"--workload": workload, "--machine": machine, "--near": near}
    _refuse("no FILE", profiled, "they say what FILE is a profile of")
    if out is not None:
        from tidegate.display.figures import check_output

        check_output(out, (".html",))
    _show_ledger(card or [], plot, out, as_json, as_csv, cache=not no_cache)


def _refuse(what: str, given: dict[str, Any], why: str) -> None:
    """Refuse options that mean nothing here."""
    for name, value in given.items():
        if value not in (None, []):
            raise TidegateError(f"{name} was given with {what}; {why}: leave it out")


def _show_ledger(
    cards: list[str], plot: Path | None, out: Path | None, as_json: bool, as_csv: bool, cache: bool
) -> None:
    from tidegate.display.figures import save_figure
    from tidegate.files import write_atomically
    from tidegate.validate import ledger
    from tidegate.validate.page import page_of
    from tidegate.validate.pictures import draw_ledger
    from tidegate.validate.play import program_of

    programs = len({program_of(point) for point in ledger.points_of(cards)})
    with ProgressBar("validate", programs, "programs") as bar:
        validation = ledger.validate(cards, cache, bar.advance)
    rows = [row.to_json() for row in validation.rows]
    if plot is not None:
        save_figure(draw_ledger(rows), plot, "Tidegate beside real cards")
    if out is not None:
        write_atomically(out, page_of(validation))
    if as_json:
        return output.print_json({"cards": [vars(c) for c in validation.cards], "rows": rows})
    if as_csv:
        return output.print_csv(rows)
    _print_ledger(validation)
    for written in filter(None, (plot, out)):
        output.print_text(f"written to {written}")


def _print_ledger(validation: Validation) -> None:
    from tidegate.validate.page import card_tables, notes_of

    output.print_tables(card_tables(validation))
    for note in notes_of(validation):
        output.print_text(f"note: {note}")


def _show_profile(
    file: Path,
    workload: str | None,
    machine: str | None,
    near: str | None,
    prefetch: str,
    plot: Path | None,
    as_json: bool,
    as_csv: bool,
) -> None:
    from tidegate.display.figures import save_figure
    from tidegate.experiments import RunSpec
    from tidegate.machine import load_machine
    from tidegate.validate.nsight import compare
    from tidegate.validate.pictures import draw_beside

    if workload is None:
        raise TidegateError(
            f"--workload is missing: what {file} is a profile of, such as 'triad(bytes=3GiB)'"
        )
    if machine is None:
        raise TidegateError(
            f"--machine is missing: the machine file of {file}'s card, such as t4-pcie3"
        )
    near = near or str(load_machine(machine).near.bytes)
    spec = RunSpec(workload, machine=machine, near=near, system="uvm", prefetch=prefetch)
    beside = compare(file, spec)
    if plot is not None:
        save_figure(draw_beside(beside), plot, f"{workload}: the card and the simulator")
    if as_json:
        return output.print_json(beside.rows())
    if as_csv:
        return output.print_csv(beside.rows())
    _print_profile(beside)
    if plot is not None:
        output.print_text(f"plotted to {plot}")


def _print_profile(beside: Beside) -> None:
    from tidegate.units import show_count, show_duration, show_size

    show = {"time, ns": show_duration, "copies in": show_count}
    rows = []
    for row in beside.rows():
        text = show.get(row["quantity"], show_size)
        ratio = "–" if row["ratio"] is None else f"{row['ratio']:.2f}"
        rows.append([row["quantity"].split(",")[0], text(row["card"]), text(row["ours"]), ratio])
    title = f"{beside.file.name} beside {beside.run!r}"
    output.print_table(["", "the card", "simulated", "ratio"], rows, title)
    output.print_notes([beside.run])
