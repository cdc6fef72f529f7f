"""tidegate plan: where a program's objects should live, launch by launch, and predicted times."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tidegate.cli import output
from tidegate.cli import run_options as o
from tidegate.cli.compile import ClangOptions, Define, Files, Include, Standard, clang_options
from tidegate.cli.output import ProgressBar
from tidegate.errors import TidegateError

if TYPE_CHECKING:
    from tidegate.compiler.model import ProgramModel
    from tidegate.compiler.plan.schedule import Schedule, SiteSchedule
    from tidegate.experiments.runs import Run


class Form(StrEnum):
    """Forms of output."""

    table = "table"
    json = "json"
    cuda = "cuda"
    openmp = "openmp"
    preload = "preload"


Emit = Annotated[
    Form,
    typer.Option(
        "--emit",
        help="A table, JSON, or code: calls of CUDA, OpenMP directives, or a library for a CUDA "
        "program as it is (preload: OUT.preload.c, OUT.plan.json).",
    ),
]
MachineName = Annotated[str, typer.Option("--machine", help="A preset or your own TOML file.")]
PlacedBy = Annotated[str, typer.Option("--placement", help="The placement policy of the plan.")]
Out = Annotated[
    Path | None,
    typer.Option("-o", "--out", help="The file to write, with all of --emit but table: plan.cu."),
]


def plan(
    files: Files,
    machine: MachineName = "v100-nvlink2",
    near: o.NearOrMachines = None,
    emit: Emit = Form.table,
    placement: PlacedBy = "rdm",
    values: o.Variables = None,
    include: Include = None,
    define: Define = None,
    std: Standard = None,
    clang: ClangOptions = None,
    out: Out = None,
    as_json: output.AsJson = False,
) -> None:
    """Show where a program's objects should live at each launch and how long it would take, or
    write the code for it.

    tidegate plan examples/openmp/cfd.c --near 16GiB --set side=12000 --emit cuda
    """
    from tidegate import units
    from tidegate.compiler.plan.emit import emit_cuda, emit_openmp
    from tidegate.compiler.plan.preload import MOST_LAUNCHES, preload_files
    from tidegate.compiler.project import model_of_files
    from tidegate.experiments.planning import RIVALS, brief, make_policy, predict, rehearse, settle
    from tidegate.machine.machine import load_machine
    from tidegate.workloads.modelled import MOST, Modelled

    if as_json:
        if emit not in (Form.table, Form.json):
            raise TidegateError(f"--json and --emit {emit.value} were both given; give one")
        emit = Form.json
    _check_out(out, emit)
    given = parse_values(values or [])
    policy, on = make_policy(placement), load_machine(machine)
    room = units.size(near) if near is not None else on.near.bytes
    frames = _frames(room, on.geometry.region)
    with ProgressBar("compile", unit="files") as bar:
        model = model_of_files(files, clang_options(include, define, std, clang), bar.advance)
    settled, notes = settle(model, given, room)
    program = Modelled(model, settled, MOST_LAUNCHES if emit is Form.preload else MOST)
    schedule = rehearse(program, policy, on.geometry, frames)
    if emit is Form.preload:
        written = preload_files(schedule, model)
        output.write_files(written, out or Path(Path(model.source).name), notes)
        return
    if emit is Form.openmp:
        _check_one_copy(model)
    if emit in (Form.cuda, Form.openmp):
        _put((emit_cuda if emit is Form.cuda else emit_openmp)(schedule), out)
        return
    program = brief(program, on.geometry.page)
    if program.cut:
        made = len(program.order)
        notes.append(f"times are of {made} launches; the program's loops turn more often")
    notes += schedule.notes
    with ProgressBar("predict") as bar:
        runs = predict(program, on, room, dict.fromkeys((*RIVALS, placement)), bar.advance)
    notes += _better(runs, placement)
    if emit is Form.json:
        _put_json(schedule, runs, program.plan().to_data(), notes, out)
        return
    _show(schedule, runs, placement, notes)


def _better(runs: dict[str, Run | str], chosen: str) -> list[str]:
    """Return a note if a policy is predicted to be faster than the chosen one."""
    from tidegate import units
    from tidegate.papers.ledger import TIE_WITHIN

    times = {name: run.time for name, run in runs.items() if not isinstance(run, str)}
    if chosen not in times:
        return []
    best = min(times, key=lambda name: times[name])
    if times[best] >= times[chosen] * (1 - TIE_WITHIN):
        return []
    time = units.show_duration(times[best])
    return [f"{best} is predicted to be faster, {time}; plan with it by --placement {best}"]


def _check_one_copy(model: ProgramModel) -> None:
    """Refuse OpenMP code for a program that unified shared memory would change."""

    if model.two_copies:
        raise TidegateError(
            f"'{model.source}' needs two copies of an object ({model.two_copies[0]}); "
            "unified shared memory would change its results; give --emit json or cuda instead"
        )


def _frames(room: int, region: int) -> int:
    from tidegate import units

    if room < region:
        raise TidegateError(
            f"near memory must hold at least one region of {units.show_size(region)}, "
            f"got {units.show_size(room)}; give more with --near"
        )
    return room // region


def parse_values(texts: list[str]) -> dict[str, int]:

    found: dict[str, int] = {}
    for name, value in map(_value, texts):
        if name in found:
            raise TidegateError(f"--set {name} must be given once, got {found[name]} and {value}")
        found[name] = value
    return found


def _value(text: str) -> tuple[str, int]:

    name, equals, value = (part.strip() for part in text.partition("="))
    number = _whole_number(value)
    if not equals or not name or number is None or number < 1:
        raise TidegateError(
            "--set must be a variable and a whole number of at least 1, such as n=4096, "
            f"got '{text}'"
        )
    return name, number


def _whole_number(text: str) -> int | None:
    """Return a whole number as people write it, such as 4096, 1_000 or 1e6; None for others."""
    try:
        number = float(text) if "e" in text.lower() else int(text)
        return int(number) if number == int(number) else None
    except (ValueError, OverflowError):
        return None


def _check_out(out: Path | None, emit: Form) -> None:
    if out is not None:
        from tidegate.display.figures import check_output

        if emit is Form.table:
            raise TidegateError(
                f"--out {out}: a table is for the terminal; give another --emit, too"
            )
        check_output(out, None)


def _put(text: str, out: Path | None) -> None:
    """Print a text, or write it to a file: the whole text or nothing."""
    if out is None:
        print(text)
        return
    from tidegate.files import write_atomically

    write_atomically(out, text + "\n")
    print(f"written to {out}")


def _put_json(
    schedule: Schedule,
    runs: dict[str, Run | str],
    planned: dict[str, Any],
    notes: list[str],
    out: Path | None,
) -> None:
    import json

    times = {name: _run_data(run) for name, run in runs.items()}
    data = {**schedule.to_data(), "plan": planned, "predicted": times, "notes": notes}
    _put(json.dumps(data, indent=2, allow_nan=False), out)


def _run_data(run: Run | str) -> dict[str, Any]:
    if isinstance(run, str):
        return {"why not": run}
    moved = {name: run.summary[name] for name in ("bytes_in", "bytes_out")}
    return {"time_ns": run.time, **moved, "remote_bytes": run.counts["remote_bytes"]}


def _show(schedule: Schedule, runs: dict[str, Run | str], chosen: str, notes: list[str]) -> None:
    head = ("launch", "object", "near at its last launch", "asked before its first")
    rows = [row for place in schedule.places for row in _site_rows(place)]
    output.print_table(head, rows, f"{schedule.source}: {chosen}", 2)
    um = runs.get("um", "")
    base = 0.0 if isinstance(um, str) else um.time
    columns = ("policy", "time", "over um", "moved in", "moved out", "used remotely")
    rows = [_run_row(name, run, base, name == chosen) for name, run in runs.items()]
    output.print_table(columns, rows, "predicted, of what the compiler believes")
    for note in notes:
        output.print_text(f"note: {note}")


def _site_rows(site: SiteSchedule) -> Iterator[tuple[str, ...]]:
    from tidegate import units

    if not site.objects:
        yield site.region, "none was traced", "", ""
    for n, name in enumerate(site.objects):
        first = ", ".join(str(a) for a in site.visits[0] if a.object == name)
        near = units.show_size(site.near.get(name, 0))
        yield site.region if n == 0 else "", name, near, first or "–"


def _run_row(name: str, run: Run | str, base: float, chosen: bool) -> tuple[str, ...]:
    from tidegate import units

    label = f"{name} *" if chosen else name
    if isinstance(run, str):
        return (label, "does not fit" if "near memory holds" in run else run, "", "", "", "")
    sizes = (run.summary["bytes_in"], run.summary["bytes_out"], run.counts["remote_bytes"])
    time, over = units.show_duration(run.time), f"{base / run.time:.2f}×"
    return (label, time, over, *map(units.show_size, sizes))
