"""tidegate sweep: many runs from a file, on this machine or a cluster, with a store of figures."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tidegate.cli import output
from tidegate.cli.output import ProgressBar
from tidegate.cli.run_options import Workers
from tidegate.cli.usage import Verbs
from tidegate.display.tables import csv_of
from tidegate.errors import TidegateError
from tidegate.interrupts import INTERRUPTED

if TYPE_CHECKING:
    from tidegate.experiments import Sweep, Swept

SHOWN = 20  # failures in the table at the end; 'sweep status' shows all

app = Verbs(help="Run sweeps: millions of runs, on this machine or a cluster.")
File = Annotated[Path, typer.Argument(help="The sweep, a TOML file.", show_default=False)]
Store = Annotated[
    str | None, typer.Option("--store", help="A folder or s3://bucket/prefix; else the file's.")
]
On = Annotated[
    str | None,
    typer.Option("--on", help="A Dask cluster: tcp://host:8786, or slurm:QUEUE; else processes."),
]
Jobs = Annotated[
    int | None, typer.Option("--jobs", min=1, max=100_000, help="Jobs of Slurm; 1 by default.")
]
Cores = Annotated[
    int | None, typer.Option("--cores", min=1, max=4096, help="Cores of a job; 1 by default.")
]
Limit = Annotated[
    float | None, typer.Option("--limit", help="Seconds that a run may take; else it has failed.")
]
Whole = Annotated[bool, typer.Option("--whole", help="Also keep whole runs, with timelines.")]


@app.command("run")
def run(
    file: File,
    store: Store = None,
    on: On = None,
    workers: Workers = None,
    jobs: Jobs = None,
    cores: Cores = None,
    limit: Limit = None,
    whole: Whole = False,
    as_json: output.AsJson = False,
) -> None:
    """Make the runs that the store lacks. Run it again to go on where it was stopped, or to try
    again what failed. The exit code is 1 if a run fails.

    tidegate sweep run sizes.toml
    tidegate sweep run sizes.toml --on tcp://host:8786
    tidegate sweep run sizes.toml --on slurm:gpu --jobs 40 --cores 16
    """
    place = _place(on, jobs, cores)
    with output.user_code():
        sweep = _load(file, store)
        try:
            with ProgressBar(f"sweep {file.stem}", len(sweep.tasks), "runs") as bar:
                swept = sweep.run(
                    on=place, workers=workers, limit=limit, whole=whole, progress=bar.advance
                )
        except KeyboardInterrupt:
            print(
                f"tidegate: stopped; what was done is in {sweep.place}, run the same command "
                "again to go on",
                file=sys.stderr,
            )
            raise SystemExit(INTERRUPTED) from None
    if as_json:
        output.print_json({**vars(swept), "store": str(sweep.place)})
    else:
        _show(swept, sweep)
    if swept.failures:
        raise typer.Exit(1)


@app.command("status")
def status(
    file: File, store: Store = None, as_json: output.AsJson = False, as_csv: output.AsCsv = False
) -> None:
    """Show how much of a sweep is done, and every run that failed; --csv has the counts.

    tidegate sweep status sizes.toml
    """
    output.check(as_json, as_csv, None)
    sweep = _load(file, store)
    runs, done, failed = sweep.status()
    failures = [(row["settings"], row["failed"]) for row in sweep.failures().to_dicts()]
    said = {"runs": runs, "done": done, "failed": failed, "left": runs - done}
    if as_json:
        output.print_json({**said, "store": str(sweep.place), "failures": failures})
        return
    if as_csv:
        output.print_csv([said])
        return
    output.print_text(f"{done:,} of {runs:,} runs are in {sweep.place}; {failed:,} failed")
    _show_failures(failures)


@app.command("table")
def table(
    file: File, store: Store = None, as_json: output.AsJson = False, as_csv: output.AsCsv = False
) -> None:
    """Print the figures of every run that is done; --csv has all columns.

    tidegate sweep table sizes.toml --csv
    """
    output.check(as_json, as_csv, None)
    rows = _load(file, store).table()
    if as_csv:
        sys.stdout.write(csv_of(rows))
    elif as_json:
        output.print_json(rows.to_dicts())
    else:
        shown = [
            [_setting_words(row["settings"]), *_figures(row)] for row in rows.iter_rows(named=True)
        ]
        output.print_table(["run", "time", "faults", "evictions", "in", "out"], shown)


@app.command("compact")
def compact(file: File, store: Store = None) -> None:
    """Merge the files of a store into one. Sweeps may go on meanwhile.

    tidegate sweep compact sizes.toml
    """
    sweep = _load(file, store)
    before, after = sweep.results.compact()
    output.print_text(f"{before:,} files became {after:,} in {sweep.place}")


@app.command("plot")
def plot(
    file: File,
    to: Annotated[Path, typer.Argument(help="A .png, .svg or .html file.", show_default=False)],
    x: Annotated[
        str | None, typer.Option("--x", help="A column; the first with several numbers.")
    ] = None,
    y: Annotated[str, typer.Option("--y", help="A column.")] = "time_ns",
    by: Annotated[str | None, typer.Option("--by", help="A column: a line for each value.")] = None,
    store: Store = None,
) -> None:
    """Draw a figure of the results: a line for each policy, a picture for each workload.

    tidegate sweep plot sizes.toml sizes.png --x near_bytes --y faults
    """
    from tidegate.display.figures import check_output, save_figure
    from tidegate.experiments.sweeps.plot import plot_sweep

    check_output(to)
    figure = plot_sweep(_load(file, store).table(), x, y, by)
    save_figure(figure, to, title=f"{file.stem}: {y}")
    output.print_text(f"plotted to {to}")


def _load(file: Path, store: str | None) -> Sweep:
    from tidegate.experiments import load_sweep

    return load_sweep(file, store)


def _place(on: str | None, jobs: int | None, cores: int | None) -> Any:
    if on is None or not on.startswith("slurm:"):
        if jobs is not None or cores is not None:
            raise TidegateError("--jobs and --cores are for Slurm; give --on slurm:QUEUE too")
        return on
    from tidegate.experiments import Slurm

    return Slurm(on.removeprefix("slurm:"), jobs or 1, cores or 1)


def _show(swept: Swept, sweep: Sweep) -> None:
    from tidegate.units import show_count, show_duration

    rate = swept.made / max(swept.seconds, 1e-9)
    output.print_text(
        f"{swept.runs:,} runs: {swept.made:,} made in {show_duration(swept.seconds * 1e9)} "
        f"({show_count(rate)}/s), {swept.there + swept.elsewhere:,} from the store, "
        f"{len(swept.failures):,} failed"
    )
    output.print_text(f"results in {sweep.place}")
    _show_failures(swept.failures[:SHOWN])
    if len(swept.failures) > SHOWN:
        output.print_text(f"and {len(swept.failures) - SHOWN:,} more; see 'tidegate sweep status'")


def _show_failures(failures: list[tuple[str, str]]) -> None:
    if failures:
        rows = [(_setting_words(settings), reason) for settings, reason in failures]
        output.print_table(["failed", "reason"], rows, left=2)


def _setting_words(settings: str) -> str:
    given = json.loads(settings)
    workload = given.pop("workload", "")
    return " ".join([str(workload), *(f"{name}={value}" for name, value in given.items())])


def _figures(row: dict[str, Any]) -> list[str]:
    from tidegate.units import show_duration, show_size

    return [
        show_duration(row["time_ns"]),
        f"{row['faults']:,}",
        f"{row['evictions']:,}" if row.get("evictions") is not None else "",
        show_size(row["bytes_in"]),
        show_size(row["bytes_out"]),
    ]
