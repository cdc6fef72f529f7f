"""tidegate compile: the model of a program with OpenMP target regions or CUDA kernels."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tidegate.cli import output
from tidegate.cli.output import ProgressBar

if TYPE_CHECKING:
    from tidegate.compiler import DataObject, LaunchSite, ProgramModel

Files = Annotated[
    list[Path],
    typer.Argument(
        help="C, C++, CUDA or HIP sources, .ll / .bc files of host and device, a Makefile or "
        "compile_commands.json or their folder, or a model that --out wrote."
    ),
]
ClangOptions = Annotated[
    list[str] | None, typer.Option("--clang", help="For clang, e.g. --clang=-w; repeatable.")
]
Include = Annotated[
    list[str] | None, typer.Option("-I", metavar="FOLDER", help="A folder of headers; repeatable.")
]
Define = Annotated[list[str] | None, typer.Option("-D", metavar="N=4", help="A macro; repeatable.")]
Standard = Annotated[
    str | None, typer.Option("--std", help="Of the sources in its language, e.g. c++17.")
]
Out = Annotated[
    Path | None, typer.Option("-o", "--out", help="The model to write, as JSON, e.g. model.json.")
]

_LEAST_SHOWN = 0.005  # less likely steps of the graph are exits after errors


def compile(
    files: Files,
    include: Include = None,
    define: Define = None,
    std: Standard = None,
    clang: ClangOptions = None,
    out: Out = None,
    as_json: output.AsJson = False,
    plot: output.PlotTo = None,
) -> None:
    """Find a program's data objects and kernels, each object's locality and how soon it is used
    again.

    tidegate compile examples/openmp/cfd.c
    """
    from tidegate.compiler.model_file import save as write
    from tidegate.compiler.model_file import to_data
    from tidegate.compiler.project import model_of_files

    output.check(as_json, False, plot)
    if out is not None:
        from tidegate.display.figures import check_output

        check_output(out, None)
    with ProgressBar("compile", unit="files") as bar:
        options = clang_options(include, define, std, clang)
        model = model_of_files(files, options, bar.advance)
    if plot is not None:
        from tidegate.compiler.plan.draw import draw_regions
        from tidegate.display.figures import save_figure

        save_figure(draw_regions(model), plot, f"{model.source}: regions")
    if out is not None:
        write(model, out)
    if as_json:
        output.print_json(to_data(model))
        return
    _show(model)
    if out is not None:
        output.print_text(f"saved to {out}")
    if plot is not None:
        output.print_text(f"plotted to {plot}")


def clang_options(
    include: list[str] | None, define: list[str] | None, std: str | None, clang: list[str] | None
) -> list[str]:
    """Return what is passed on to clang."""
    folders = [f"-I{Path(folder).absolute()}" for folder in include or ()]
    standard = [f"-std={std}"] if std else []
    return [*folders, *(f"-D{macro}" for macro in define or ()), *standard, *(clang or ())]


def _show(model: ProgramModel) -> None:
    by_locality = sorted(model.objects, key=lambda o: -model.global_locality(o.name))
    head = ("object", "kind", "allocated", "bytes", "GL")
    title = f"{model.source}: objects, by global locality"
    rows = [_object_row(model, o) for o in by_locality]
    output.print_table(head, rows, title, left=4, drop=("allocated", "kind", "bytes"))
    columns = ("region", "iterations", "object", "written", "RF", "RL", "bytes/iteration")
    rows = [row for launch in model.launches for row in _launch_rows(model, launch)]
    drop = ("iterations", "written", "bytes/iteration", "distance", "RF")
    output.print_table((*columns, "distance"), rows, "launches", left=4, drop=drop)
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
    if not launch.uses:
        yield (*first, "none was traced", "", _number(launch.frequency), "", "", "")
    for use in launch.uses:
        accessed = use.bytes_per_iteration + use.common_bytes
        figures = map(_number, (launch.frequency, use.locality, accessed, use.distance))
        written = "yes" if model.is_written(launch, use.object) else "no"
        yield (*first, use.object, written, *figures)
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
