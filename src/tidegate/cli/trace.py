"""tidegate trace: save, describe, import and export traces."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tidegate.cli import output
from tidegate.cli import run_options as o
from tidegate.cli.usage import Verbs
from tidegate.display.tables import ShareBar

if TYPE_CHECKING:
    from tidegate.trace.info import TraceInfo
    from tidegate.trace.ops import Ops, OpTrace
    from tidegate.trace.trace import Trace

app = Verbs(help="Save what a workload touches, look into it, import and export it.")


@app.command("save")
@o.takes_settings(*o.TRACE)
def save(
    workload: o.Workload,
    path: Annotated[
        Path, typer.Argument(help="The file to write, e.g. mm.parquet.", show_default=False)
    ],
    settings: o.Settings,
) -> None:
    """Save a workload's touches as a Parquet file.

    tidegate trace save matmul mm.parquet --bytes 1GiB
    """
    from tidegate.display.figures import check_output
    from tidegate.trace import save_trace
    from tidegate.units import show_size

    check_output(path, (".parquet",))
    with output.user_code():
        trace = o.find_trace(workload, settings)
        with output.ProgressBar(f"save {trace.name}") as bar:
            save_trace(trace, path, bar.advance)
    output.print_text(f"saved {trace.name} to {path}, {show_size(path.stat().st_size)}")


@app.command("info")
@o.takes_settings(*o.TRACE)
def info(
    workload: o.Workload,
    settings: o.Settings,
    as_json: output.AsJson = False,
    as_csv: output.AsCsv = False,
) -> None:
    """Footprint, touches, launches and working set over time, of a trace file or a workload.

    tidegate trace info mm.parquet
    """
    output.check(as_json, as_csv, None)
    from tidegate.trace.info import describe

    with output.user_code():
        trace = o.find_trace(workload, settings)
        with output.ProgressBar(f"read {trace.name}") as bar:
            found = describe(trace, bar.advance)
    if as_json:
        output.print_json(_data(trace, found))
    elif as_csv:
        output.print_csv(found.launches.to_dicts())
    else:
        _show(trace, found)


@app.command("import")
def import_(
    file: Annotated[Path, typer.Argument(help="A trace of another tool.", show_default=False)],
    path: Annotated[
        Path, typer.Argument(help="The file to write, e.g. mine.parquet.", show_default=False)
    ],
    format: Annotated[
        str | None, typer.Option(help="The format; recognised by content unless given.")
    ] = None,
    options: Annotated[
        list[str] | None,
        typer.Option(
            "--set", help="An option of the format, e.g. expert_bytes=336MiB; repeatable."
        ),
    ] = None,
    geometry: o.GeometryText = None,
) -> None:
    """Read a trace of another tool and save it as a Parquet file.

    Formats: execution-trace (PyTorch), nsight, nvbit, accel-sim, uvm-tools, lackey, oracle-general,
    csv, moe, kv-cache. An execution trace is saved as ops, for any geometry.

    tidegate trace import app.mem_trace app.parquet
    """
    from tidegate.display.figures import check_output
    from tidegate.trace import save_trace
    from tidegate.trace.geometry import Geometry
    from tidegate.trace.importers import find_importer, import_trace
    from tidegate.trace.ops import OpTrace, save_ops
    from tidegate.units import show_size

    check_output(path, (".parquet",))
    chosen = dict(_setting(text) for text in options or ())
    made = None if geometry is None else Geometry.parse(geometry)
    with output.ProgressBar(f"read {file.name}", unit="bytes") as bar:
        trace = import_trace(file, format, made, bar.advance, **chosen)
    if isinstance(trace, OpTrace):
        save_ops(trace.ops, path)
    else:
        with output.ProgressBar(f"save {trace.name}") as bar:
            save_trace(trace, path, bar.advance)
    kind, size = find_importer(file, format).name, show_size(path.stat().st_size)
    output.print_text(f"imported {file.name} ({kind}) to {path}, {size}")
    for note in trace.notes:
        output.print_text(f"note: {note}")


@app.command("export")
@o.takes_settings(*o.TRACE)
def export(
    workload: o.Workload,
    path: Annotated[Path, typer.Argument(help="The file to write.", show_default=False)],
    settings: o.Settings,
    format: Annotated[str, typer.Option(help="csv or oracle-general (libCacheSim).")] = "csv",
) -> None:
    """Write a trace in the format of another tool.

    tidegate trace export matmul mm.csv --bytes 64MiB
    """
    from tidegate.display.figures import check_output
    from tidegate.errors import TidegateError, UnknownName
    from tidegate.files import write_atomically
    from tidegate.trace.exporters import EXPORTERS
    from tidegate.units import show_size

    if format == "perfetto":
        raise TidegateError(
            "a trace has no times, so it cannot be exported for Perfetto; a run can: "
            f"tidegate run {workload} --perfetto {path}"
        )
    if format not in EXPORTERS:
        raise UnknownName("format", format, list(EXPORTERS))
    check_output(path, None)
    with output.user_code():
        trace = o.find_trace(workload, settings)
        with output.ProgressBar(f"export {trace.name}") as bar:
            write_atomically(path, lambda part: EXPORTERS[format](trace, part, bar.advance))
    output.print_text(f"exported {trace.name} to {path}, {show_size(path.stat().st_size)}")


def _setting(text: str) -> tuple[str, str]:
    from tidegate.errors import TidegateError

    name, equals, value = text.partition("=")
    if not equals or not name:
        raise TidegateError(f"--set must be NAME=VALUE, got '{text}'")
    return name.strip(), value.strip()


def _data(trace: Trace, found: TraceInfo) -> dict[str, Any]:
    from tidegate.trace.ops import OpTrace

    of_ops: dict[str, Any] = {}
    if isinstance(trace, OpTrace):
        ops = trace.ops
        of_ops = {
            "peak_bytes": ops.peak,
            "peak_launch": ops.peak_launch,
            "peak_by_kind": ops.live_by_kind(),
            "notes": list(ops.notes),
        }
    return {
        **of_ops,
        "name": trace.name,
        "provenance": trace.provenance.value,
        "page_bytes": trace.geometry.page,
        "region_bytes": trace.geometry.region,
        "footprint_bytes": trace.footprint,
        "touched_pages": found.touched_pages,
        "live_peak_pages": found.live_peak,
        "touches": found.touches,
        "writes": found.writes,
        "bytes": found.bytes,
        "objects": found.objects.to_dicts(),
        "launches": found.launches.to_dicts(),
        "working_set": found.working_set.to_dicts(),
    }


_SHOWN = 12  # objects and launches


def _print_ops(trace: OpTrace) -> None:
    """Print what ops say beside their pages: the peak by kind of tensor, and what was assumed."""
    from tidegate.units import show_size

    ops = trace.ops
    peak = ops.live_by_kind()
    output.print_text(
        f"peak of live tensors {show_size(ops.peak)}, before launch {ops.peak_launch:,} "
        f"({_where(ops)}); tensors are laid out by allocator {trace.layout.allocator}"
    )
    rows = [(k, show_size(n), f"{n / max(1, ops.peak):.1%}") for k, n in peak.items()]
    output.print_table(["at the peak", "size", "share"], rows)
    for note in ops.notes:
        output.print_text(f"note: {note}")


def _where(ops: Ops) -> str:
    row = ops.launches.row(min(ops.peak_launch, len(ops.launches) - 1), named=True)
    place = f"{row['where']}/{row['name']}" if row["where"] else row["name"]
    return f"{place}, {row['phase'] or 'forward'} of step {row['step'] + 1}"


def _cut(rows: list[tuple[str, str, str, str]]) -> list[tuple[str, str, str, str]]:
    """Return the first rows, and how many more there are."""
    more = len(rows) - _SHOWN
    return rows[:_SHOWN] + ([(f"… {more} more", "", "", "")] if more > 0 else [])


def _show(trace: Trace, found: TraceInfo) -> None:
    from tidegate.trace.ops import OpTrace
    from tidegate.units import show_count, show_size

    output.print_text(f"{trace.name}, {trace.provenance}, pages / regions of {trace.geometry}")
    output.print_text(
        f"footprint {show_size(trace.footprint)}, "
        f"{show_size(found.touched_pages * trace.geometry.page)} touched; "
        f"{show_count(found.touches)} touches, {found.writes / found.touches:.0%} of them writes, "
        f"{show_size(found.bytes)} used"
    )
    if (live := found.live_peak * trace.geometry.page) < trace.footprint:
        print(f"at most {show_size(live)} hold data at a time")
    if isinstance(trace, OpTrace):
        _print_ops(trace)
    objects = [
        (
            o["name"],
            show_size(o["bytes"]),
            f"{o['host_bytes'] / o['bytes']:.0%}",
            f"{o['share_touched']:.1%}",
        )
        for o in found.objects.to_dicts()
    ]
    output.print_table(["object", "size", "host data", "touched"], _cut(objects))
    rows = [
        (r["name"], show_count(r["blocks"]), show_count(r["touches"]), show_size(r["bytes"]))
        for r in found.launches.to_dicts()
    ]
    output.print_table(
        ["launch", "blocks", "touches", "bytes"], _cut(rows), drop=("blocks", "bytes")
    )
    widest = max(found.working_set["pages"])
    step = max(1, len(found.working_set) // 16)
    output.print_table(
        ["working set from touch", "size", ""],
        [
            (show_count(w["first_touch"]), show_size(w["bytes"]), ShareBar(w["pages"] / widest))
            for w in found.working_set.to_dicts()[::step]
        ],
    )
