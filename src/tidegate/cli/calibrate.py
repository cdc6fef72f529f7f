"""tidegate calibrate: a machine file for the user's own card."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tidegate.cli import output
from tidegate.cli.output import ProgressBar
from tidegate.errors import TidegateError

if TYPE_CHECKING:
    from tidegate.validate.calibrate import Calibration

Csv = Annotated[Path | None, typer.Argument(help="What the probe printed, e.g. probe.csv.")]
Emit = Annotated[
    Path | None,
    typer.Option("--emit", help="Write the probe, a CUDA program, and stop, e.g. probe.cu."),
]
Like = Annotated[
    str | None,
    typer.Option(
        "--like",
        help="The preset or TOML file that gives what is not measured; by default the card's.",
    ),
]
Out = Annotated[
    Path | None, typer.Option("-o", "--out", help="The machine file to write, e.g. mycard.toml.")
]


def calibrate(csv: Csv = None, emit: Emit = None, like: Like = None, out: Out = None) -> None:
    """Fit a machine's constants to what a probe measured on your card.

    tidegate calibrate --emit probe.cu
    """
    if emit is not None:
        if csv is not None or like is not None or out is not None:
            raise TidegateError("--emit writes the probe and nothing else; give it alone")
        _emit(emit)
        return
    if csv is None:
        raise TidegateError(
            "calibrate needs what the probe printed: tidegate calibrate probe.csv -o mycard.toml; "
            "--emit probe.cu writes the probe"
        )
    _check_out(out, csv)
    _fit(csv, like, out)


def _emit(path: Path) -> None:
    from tidegate.files import write_atomically
    from tidegate.validate.probe import SOURCE

    write_atomically(path, SOURCE.read_text(encoding="utf-8"))
    output.print_text(f"written to {path}")
    binary = path.with_suffix("").name
    print(f"nvcc -O2 {path} -o {binary} && ./{binary} > {binary}.csv")


def _check_out(out: Path | None, csv: Path) -> None:
    if out is None:
        return
    from tidegate.display.figures import check_output

    check_output(out, (".toml",))
    if out.exists() and csv.exists() and out.samefile(csv):
        raise TidegateError(f"--out {out} is the file of measurements; give another name")


def _fit(csv: Path, like: str | None, out: Path | None) -> None:
    from tidegate.files import write_atomically
    from tidegate.validate.calibrate import calibrate as fit
    from tidegate.validate.machine_text import machine_text
    from tidegate.validate.probe import read_probe

    probe = read_probe(csv)
    with ProgressBar("calibrate", unit="machines") as bar:
        found = fit(probe, like, bar.advance)
    text = machine_text(found)
    if out is None:
        print(text, end="")
        return
    write_atomically(out, text)
    _show(found)
    for note in found.notes:
        output.print_text(f"note: {note}")
    output.print_text(f"written to {out}; use it with --machine {out}")


def _show(found: Calibration) -> None:
    from tidegate import units

    head = ("constant", "value", "error", "confidence", "fitted on")
    constants = [
        (one.name, str(one.text), f"± {one.percent} %", one.confidence, one.points)
        for one in found.constants
    ]
    title = f"{found.probe.card['card']}, driver {found.probe.driver}"
    output.print_table(head, constants, title, 1, drop=("fitted on",))
    if not found.held_out:
        return
    errors = [
        (
            one.program.title,
            units.show_duration(one.measured),
            units.show_duration(one.simulated),
            f"{one.ratio:.2f}×",
        )
        for one in found.held_out
    ]
    output.print_table(("held out", "measured", "simulated", "ratio"), errors)
