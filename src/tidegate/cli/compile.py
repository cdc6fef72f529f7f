"""tidegate compile: the model of a program with OpenMP target regions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tidegate.cli import output

if TYPE_CHECKING:
    from tidegate.compiler import DataObject, LaunchSite, ProgramModel

Files = Annotated[
    list[Path],
    typer.Argument(
        help="C or C++ sources, .ll / .bc files of host and device, or a model saved by --save."
    ),
]
ClangOptions = Annotated[
    list[str] | None, typer.Option("--clang", help="For clang, e.g. --clang=-DN=4; repeatable.")
]
SaveTo = Annotated[
    Path | None, typer.Option("--save", help="Also write the model to this file, as JSON.")
]

_LEAST_SHOWN = 0.005  # less likely steps of the graph are exits after errors


def compile(
    files: Files,
    clang: ClangOptions = None,
    save: SaveTo = None,
    as_json: output.AsJson = False,
    plot: output.PlotTo = None,
) -> None:
    """Find a program's data objects and target regions, each object's locality and how soon it is
    used again.

    tidegate compile examples/openmp/cfd.c
    """
    from tidegate.compiler.files import model_of_files
    from tidegate.compiler.model_file import save as write
    from tidegate.compiler.model_file import to_data

    output.check(as_json, False, plot)
    model = model_of_files(files, clang or [])
    if plot is not None:
        from tidegate.compiler.plan.draw import draw_regions
        from tidegate.figures import save_figure

        save_figure(draw_regions(model), plot, f"{model.source}: regions")
    if save is not None:
        write(model, save)
    if as_json:
        output.print_json(to_data(model))
        return
    _show(model)
    if save is not None:
        print(f"saved to {save}")


def _show(model: ProgramModel) -> None:
    by_locality = sorted(model.objects, key=lambda o: -model.global_locality(o.name))
    head = ("object", "kind", "allocated", "bytes", "GL")
    title = f"{model.source}: objects, by global locality"
    rows = [_object_row(model, o) for o in by_locality]
    output.print_table(head, rows, title, left=4, drop=("allocated", "kind", "bytes"))
    columns = ("region", "iterations", "object", "RF", "RL", "bytes/iteration", "distance")
    rows = [row for launch in model.launches for row in _launch_rows(model, launch)]
    drop = ("iterations", "bytes/iteration", "distance", "RF")
    output.print_table(columns, rows, "launches", left=3, drop=drop)
    print("what follows what:")
    for line in _graph(model):
        print(f"  {line}")
    for note in model.notes:
        output.print_text(f"note: {note}")


def _object_row(model: ProgramModel, o: DataObject) -> tuple[str, ...]:
    line, size = f"line {o.line}" if o.line else "", str(o.bytes or "")
    return o.name, o.kind, line, size, _number(model.global_locality(o.name))


def _launch_rows(model: ProgramModel, launch: LaunchSite) -> Iterator[tuple[str, ...]]:
    first = (model.where(launch), str(launch.trip_count or "?"))
    for use in launch.uses:
        figures = (launch.frequency, use.locality, use.bytes_per_iteration, use.distance)
        yield (*first, use.object, *map(_number, figures))
        first = ("", "")


def _graph(model: ProgramModel) -> list[str]:
    lines = []
    for launch, steps in zip(model.launches, model.next_launches, strict=True):
        next_ = [(p, model.where(after)) for p, after in zip(steps, model.launches, strict=True)]
        next_.append((1 - sum(steps), "end"))
        likely = sorted(((p, name) for p, name in next_ if p >= _LEAST_SHOWN), reverse=True)
        percents = whole_percentages([p for p, _ in likely])
        shown = (f"{name} {n} %" for n, (_, name) in zip(percents, likely, strict=True))
        lines.append(f"{model.where(launch)} → {', '.join(shown)}")
    return lines


def whole_percentages(shares: Sequence[float]) -> list[int]:
    """Return shares of their sum as whole percentages that add up to 100: those that lost most by
    rounding down get the rest.

    >>> whole_percentages([0.905, 0.095]), whole_percentages([1, 1, 1])
    ([91, 9], [34, 33, 33])
    """
    exact = [100 * share / sum(shares) for share in shares]
    whole = [int(percent) for percent in exact]
    most_cut = sorted(range(len(exact)), key=lambda n: whole[n] - exact[n])
    for n in most_cut[: 100 - sum(whole)]:
        whole[n] += 1
    return whole


def _number(value: float) -> str:
    return "∞" if value == float("inf") else f"{value:.4g}"
