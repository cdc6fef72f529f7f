"""tidegate plan: where a program's objects should live, launch by launch, and what that is worth."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tidegate.cli import output
from tidegate.cli.compile import ClangOptions, Files
from tidegate.cli.progress import Bar

if TYPE_CHECKING:
    from tidegate.compiler.plan.schedule import Schedule
    from tidegate.experiments.runs import Run


class Form(StrEnum):
    """What is written."""

    table = "table"
    json = "json"
    cuda = "cuda"
    openmp = "openmp"


MachineName = Annotated[str, typer.Option("--machine", help="Machine preset or file.")]
Near = Annotated[
    str | None,
    typer.Option("--near", help="Near memory, e.g. 16GiB; by default the machine's own."),
]
Emit = Annotated[
    Form,
    typer.Option("--emit", help="A table, JSON, or code: calls of CUDA, or OpenMP directives."),
]
Set = Annotated[
    list[str] | None,
    typer.Option("--set", help="A variable of the program, e.g. --set n=4096; repeatable."),
]
PlacedBy = Annotated[str, typer.Option("--placement", help="The policy that is planned with.")]
Out = Annotated[Path | None, typer.Option("--out", help="Write JSON or code to this file instead.")]


def plan(
    files: Files,
    machine: MachineName = "v100-nvlink2",
    near: Near = None,
    emit: Emit = Form.table,
    placement: PlacedBy = "rdm",
    values: Set = None,
    clang: ClangOptions = None,
    out: Out = None,
) -> None:
    """Say where a program's objects should live at each launch, how long it would take, and write
    the code for it.

    tidegate plan examples/openmp/cfd.c --near 16GiB --set side=12000 --emit cuda
    """
    from tidegate import units
    from tidegate.compiler.files import model_of_files
    from tidegate.compiler.plan.schedule import emit_cuda, emit_openmp
    from tidegate.experiments.planning import RIVALS, make_policy, predict, rehearse, settle
    from tidegate.machine.machine import load_machine
    from tidegate.workloads.openmp.modelled import Modelled

    _check_out(out, emit)
    given = _values(values or [])
    policy, on = make_policy(placement), load_machine(machine)
    room = units.size(near) if near is not None else on.near.bytes
    frames = _frames(room, on.geometry.region)
    model = model_of_files(files, clang or [])
    settled, notes = settle(model, given, room)
    program = Modelled(model, settled)
    schedule = rehearse(program, policy, on.geometry, frames)
    if emit in (Form.cuda, Form.openmp):
        _put((emit_cuda if emit is Form.cuda else emit_openmp)(schedule), out)
        return
    if program.cut:
        notes.append(
            f"times are of the first {len(program.order)} launches; the program makes more"
        )
    notes += schedule.notes
    with Bar("predict") as bar:
        runs = predict(program, on, room, dict.fromkeys((*RIVALS, placement)), bar.advance)
    notes += _better(runs, placement)
    if emit is Form.json:
        _put_json(schedule, runs, program.plan().to_data(), notes, out)
        return
    _show(schedule, runs, placement, notes)


def _better(runs: dict[str, Run | str], chosen: str) -> list[str]:
    """A policy that is predicted to be faster than the one planned with is not kept quiet about."""
    from tidegate import units
    from tidegate.reproduce.ledger import TIE_WITHIN

    times = {name: run.time for name, run in runs.items() if not isinstance(run, str)}
    if chosen not in times:
        return []
    best = min(times, key=lambda name: times[name])
    if times[best] >= times[chosen] * (1 - TIE_WITHIN):
        return []
    return [
        f"{best} is predicted to be faster, {units.show_duration(times[best])}; plan with it by --placement {best}"
    ]


def _frames(room: int, region: int) -> int:
    from tidegate import units
    from tidegate.errors import TidegateError

    if room < region:
        raise TidegateError(
            f"near memory of {units.show_size(room)} cannot hold one region of {units.show_size(region)}; give it more"
        )
    return room // region


def _values(texts: list[str]) -> dict[str, int]:
    from tidegate.errors import TidegateError

    found: dict[str, int] = {}
    for name, value in map(_value, texts):
        if name in found:
            raise TidegateError(
                f"--set {name}: given twice, {found[name]} and {value}; give it once"
            )
        found[name] = value
    return found


def _value(text: str) -> tuple[str, int]:
    from tidegate.errors import TidegateError

    name, equals, value = (part.strip() for part in text.partition("="))
    if not equals or not name or not value.replace("_", "").isdigit() or int(value) < 1:
        raise TidegateError(
            f"--set {text}: expected a variable and a whole number of at least 1, such as n=4096"
        )
    return name, int(value)


def _check_out(out: Path | None, emit: Form) -> None:
    if out is not None:
        from tidegate.errors import TidegateError
        from tidegate.figures import check_output

        if emit is Form.table:
            raise TidegateError(
                f"--out {out}: a table is for the terminal; say what to write with --emit json, cuda or openmp"
            )
        check_output(out, (out.suffix.lower(),))


def _put(text: str, out: Path | None) -> None:
    """To the terminal, or to a file: whole, or not at all."""
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

    times = {
        name: {"why not": run}
        if isinstance(run, str)
        else {
            "time_ns": run.time,
            "bytes_in": run.summary["bytes_in"],
            "bytes_out": run.summary["bytes_out"],
            "remote_bytes": run.counts["remote_bytes"],
        }
        for name, run in runs.items()
    }
    data = {**schedule.to_data(), "plan": planned, "predicted": times, "notes": notes}
    _put(json.dumps(data, indent=2, allow_nan=False), out)


def _show(schedule: Schedule, runs: dict[str, Run | str], chosen: str, notes: list[str]) -> None:
    from tidegate import units

    rows = []
    for place in schedule.places:
        for n, name in enumerate(place.objects):
            first = ", ".join(str(a) for a in place.visits[0] if a.object == name)
            rows.append(
                (
                    place.region if n == 0 else "",
                    name,
                    units.show_size(place.near.get(name, 0)),
                    first or "–",
                )
            )
    output.print_table(
        ("launch", "object", "near at its last launch", "asked before its first"),
        rows,
        f"{schedule.source}: {chosen}",
        2,
    )
    times = {name: run.time for name, run in runs.items() if not isinstance(run, str)}
    base = times.get("um", 0.0)
    output.print_table(
        ("policy", "time", "over um", "moved in", "moved out", "used remotely"),
        [_run_row(name, run, base, name == chosen) for name, run in runs.items()],
        "predicted, of what the compiler believes",
    )
    for note in notes:
        print(f"note: {note}")


def _run_row(name: str, run: Run | str, base: float, chosen: bool) -> tuple[str, ...]:
    from tidegate import units

    label = f"{name} *" if chosen else name
    if isinstance(run, str):
        return (label, "does not fit" if "near memory holds" in run else run, "", "", "", "")
    sizes = (run.summary["bytes_in"], run.summary["bytes_out"], run.counts["remote_bytes"])
    return (
        label,
        units.show_duration(run.time),
        f"{base / run.time:.2f}×",
        *map(units.show_size, sizes),
    )
