"""tidegate compile: what a program with OpenMP target regions does with its data."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tidegate.cli import output

if TYPE_CHECKING:
    from tidegate.compiler import ProgramModel

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

_LEAST_SHOWN = 0.005  # steps of the graph that are less likely are errors' ways out


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
    from tidegate.compiler.saved import save as write
    from tidegate.compiler.saved import to_data

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
    output.print_table(
        ("object", "kind", "allocated", "bytes", "GL"),
        [
            (
                o.name,
                o.kind,
                f"line {o.line}" if o.line else "",
                str(o.bytes or ""),
                _number(model.global_locality(o.name)),
            )
            for o in by_locality
        ],
        title=f"{model.source}: objects, by global locality",
        left=4,
    )
    output.print_table(
        ("region", "iterations", "object", "RF", "RL", "bytes/iteration", "distance"),
        [row for n in range(len(model.launches)) for row in _launch_rows(model, n)],
        title="launches",
        left=3,
    )
    print("what follows what:")
    for line in _graph(model):
        print(f"  {line}")
    for note in model.notes:
        print(f"note: {note}")


def _launch_rows(model: ProgramModel, n: int) -> list[tuple[str, ...]]:
    launch = model.launches[n]
    rows: list[tuple[str, ...]] = []
    for use in launch.uses:
        region, iterations = (
            (model.where(launch), str(launch.trip_count or "?")) if not rows else ("", "")
        )
        figures = (launch.frequency, use.locality, use.bytes_per_iteration, use.distance)
        rows.append((region, iterations, use.object, *map(_number, figures)))
    return rows


def _graph(model: ProgramModel) -> list[str]:
    lines = []
    for launch, steps in zip(model.launches, model.next_launches, strict=True):
        ways = [(p, model.where(after)) for p, after in zip(steps, model.launches, strict=True)]
        ways.append((1 - sum(steps), "end"))
        likely = sorted(((p, name) for p, name in ways if p >= _LEAST_SHOWN), reverse=True)
        shown = zip(whole_percentages([p for p, _ in likely]), likely, strict=True)
        lines.append(
            f"{model.where(launch)} → {', '.join(f'{name} {percent} %' for percent, (_, name) in shown)}"
        )
    return lines


def whole_percentages(shares: Sequence[float]) -> list[int]:
    """Shares of their sum in whole per cent that add up to 100: those cut down most by rounding
    down get what is left.

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
