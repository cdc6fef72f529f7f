"""tidegate run: one workload under one set of policies."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tidegate.cli import output
from tidegate.cli import run_options as o
from tidegate.cli.output import ProgressBar
from tidegate.cli.studio import require_studio

if TYPE_CHECKING:
    from tidegate.experiments import Run, RunSpec


@o.takes_settings(*o.RUN)
def run(
    workload: o.Workload,
    settings: o.Settings,
    no_cache: o.NoCache = False,
    as_json: output.AsJson = False,
    as_csv: output.AsCsv = False,
    plot: output.PlotTo = None,
    perfetto: Annotated[
        Path | None,
        typer.Option("--perfetto", help="Also write it for Perfetto's viewer, to a .json file."),
    ] = None,
    studio: Annotated[
        bool, typer.Option("--studio", help="Then look into it on a web page (tidegate studio).")
    ] = False,
) -> None:
    """Run one workload under one policy and say where its time went.

    tidegate run matmul --bytes 1GiB --oversubscribe 50% --eviction lru-ideal
    """
    output.check(as_json, as_csv, plot)
    if perfetto is not None:
        from tidegate.display.figures import check_output

        check_output(perfetto, (".json",))
    if studio:
        require_studio()
    from tidegate.experiments import RunSpec

    spec = RunSpec.from_settings(workload, settings)
    with output.user_code(), ProgressBar(f"run {workload}") as bar:
        if perfetto is None:
            done = spec.run(cache=not no_cache, progress=bar.advance)
        else:
            done = _run_for_perfetto(spec, perfetto, bar)
    data = {
        "summary": done.summary,
        "launches": done.tables["launches"],
        "objects": done.tables["objects"],
        "decisions": done.facts.get("decisions", []),
        "notes": done.notes,
        "key": done.key,
        "from_store": done.from_store,
    }
    rows = [{**done.summary, "from_store": done.from_store}]
    output.show(done, data, rows, _show, as_json, as_csv, plot)
    if studio:
        _open_studio(spec, done)


def _open_studio(spec: RunSpec, done: Run) -> None:
    """Serve the page with this run on it, until Ctrl-C."""
    from tidegate.studio.serve import make_studio, serve

    made, _ = make_studio()
    made.library.add(spec, done)
    serve(made, f"run/{done.key}")


def _run_for_perfetto(spec: RunSpec, path: Path, bar: ProgressBar) -> Run:
    """Run it anew, note what is near as it goes on, and write it for the viewer."""
    from tidegate.errors import TidegateError
    from tidegate.experiments.perfetto import Residency, export_perfetto

    if spec.tiering is not None:
        raise TidegateError("--perfetto and --tiering were both given; give one")
    residency = Residency()

    def watch(simulation: Any, touches: int) -> None:
        bar.advance(touches)
        residency.note(simulation, touches)

    done = spec.run_watched(watch)
    export_perfetto(done, path, residency)
    return done


def _show(done: Run) -> None:
    from tidegate.experiments.display import run_head, run_tables

    output.print_text(run_head(done))
    output.print_tables(run_tables(done))
    report = done.facts["policy_report"]
    if "tiering" in done.facts and report.get("predictions"):
        right = report["right"] / report["predictions"]
        output.print_text(f"predictions: {right:.1%} right of {report['predictions']:,}")
    output.print_notes([done])
    output.print_stored(int(done.from_store), 1)
