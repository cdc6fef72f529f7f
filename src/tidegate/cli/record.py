"""tidegate record: programs of your own as traces."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tidegate.cli import output, run_options
from tidegate.cli.live import Arguments, Script
from tidegate.cli.output import ProgressBar
from tidegate.cli.usage import Verbs
from tidegate.errors import TidegateError

if TYPE_CHECKING:
    from tidegate.trace.ops import Ops

app = Verbs(help="Record a program of your own: PyTorch, Triton, or a ready model.")

# options that we do not have are the script's; what follows -- is the script's, too
_OWN = {"ignore_unknown_options": True}
_MOST = 2**63 - 1
Output = Annotated[Path, typer.Option("-o", "--out", help="The file to write, e.g. step.parquet.")]
Steps = Annotated[
    int | None,
    typer.Option(
        "--steps",
        min=1,
        help="Stop after so many steps: of an optimiser, or calls of a model that is not trained.",
    ),
]


@app.command("torch", context_settings=_OWN)
def torch(
    script: Script,
    arguments: Arguments = None,
    path: Output = Path("step.parquet"),
    steps: Steps = None,
    replicate: Annotated[
        int | None,
        typer.Option(
            "--replicate", min=1, help="Repeat the last recorded step to make so many steps."
        ),
    ] = None,
    answer: Annotated[
        float | None,
        typer.Option("--answer", help="What the script gets for values it asks for, e.g. 0."),
    ] = None,
    real: Annotated[
        bool, typer.Option("--real", help="Compute, on the CPU; by default tensors have no data.")
    ] = False,
    most_launches: Annotated[
        int, typer.Option("--most-launches", min=1, help="Give up after so many launches.")
    ] = 2_000_000,
) -> None:
    """Record a PyTorch script, unchanged: no GPU is needed, and the model takes no memory.

    Options that are not listed here are passed to the script, and so is all that follows --.

    tidegate record torch train.py -o step.parquet --steps 3 -- --steps 1000
    """
    from tidegate import record
    from tidegate.display.figures import check_output
    from tidegate.record import check_script

    check_output(path, (".parquet",))
    check_script(script)
    _check_numbers({"--steps": steps, "--replicate": replicate, "--most-launches": most_launches})
    record.need("torch")
    if replicate is not None and steps is None:
        steps = min(record.STEADY_STEPS, replicate)
    with ProgressBar(f"record {script}", unit="launches") as bar, _quiet_torch():
        recording = record.torch_script(
            script,
            arguments or [],
            steps=steps,
            answer=answer,
            real=real,
            most_launches=most_launches,
            progress=bar.advance,
        )
        ops = recording.ops(replicate)
    _save(ops, path)


@app.command("triton", context_settings=_OWN)
def triton(
    script: Script,
    arguments: Arguments = None,
    path: Output = Path("kernels.parquet"),
    geometry: run_options.GeometryText = None,
    most_programs: Annotated[
        int,
        typer.Option(
            "--most-programs",
            min=1,
            help="Of larger grids some programs run; the others' touches are computed.",
        ),
    ] = 1024,
) -> None:
    """Record the Triton kernels of a script, in Triton's interpreter: every access of each program.

    tidegate record triton kernels.py -o kernels.parquet
    """
    from tidegate import record
    from tidegate.display.figures import check_output
    from tidegate.record import check_script
    from tidegate.trace import save_trace
    from tidegate.trace.geometry import Geometry
    from tidegate.units import show_count, show_size

    check_output(path, (".parquet",))
    check_script(script)
    _check_numbers({"--most-programs": most_programs})
    made = Geometry() if geometry is None else Geometry.parse(geometry)
    for package in ("torch", "triton"):
        record.need(package)
    from tidegate.record.kernels import record_script

    with ProgressBar(f"record {script}", unit="launches") as bar:
        recording = record_script(script, arguments or [], bar.advance, most_programs)
    trace = recording.trace(made, lambda read: None)
    with ProgressBar(f"save {trace.name}") as bar:
        save_trace(trace, path, bar.advance)
    launches = show_count(sum(1 for _ in recording.launches(lambda read: None)))
    output.print_text(
        f"recorded {trace.name} to {path}, {show_size(path.stat().st_size)}: "
        f"{launches} launches, {show_size(trace.footprint)}"
    )
    for note in recording.notes:
        output.print_text(f"note: {note}")


@app.command("model")
def model(
    name: Annotated[
        str, typer.Argument(help="e.g. llama-7b, gpt-1.3b, resnet50.", show_default=False)
    ],
    path: Output = Path("model.parquet"),
    batch: Annotated[int | None, typer.Option(help="Sequences or images at a time.")] = None,
    context: Annotated[int | None, typer.Option(help="Tokens of a sequence or prompt.")] = None,
    decode: Annotated[int | None, typer.Option(help="Tokens made after the prompt.")] = None,
    steps: Annotated[int | None, typer.Option(help="Steps of training or of diffusion.")] = None,
    layers: Annotated[int | None, typer.Option(help="Layers; by default the model's.")] = None,
    image: Annotated[int | None, typer.Option(help="Pixels of an image's side.")] = None,
    seed: Annotated[int | None, typer.Option(help="Of the experts that tokens use.")] = None,
    checkpoint: Annotated[
        bool | None, typer.Option("--checkpoint", help="Compute activations again in backward.")
    ] = None,
) -> None:
    """Record a ready model, made from its configuration, without weights.

    Models: llama-7b, -13b, -70b, -405b; mixtral-8x7b, -8x22b; gpt-124m to gpt-13b; resnet50, 101,
    152; unet-sd1 (Stable Diffusion). Which options a model has is said if another is given.

    tidegate record model llama-7b --context 2048 --decode 32 -o decode.parquet
    """
    from tidegate import record
    from tidegate.display.figures import check_output

    check_output(path, (".parquet",))
    given: dict[str, Any] = {
        "batch": batch,
        "context": context,
        "decode": decode,
        "steps": steps,
        "layers": layers,
        "image": image,
        "seed": seed,
        "checkpoint": checkpoint,
    }
    options = {k: v for k, v in given.items() if v is not None}
    with ProgressBar(f"record {name}", unit="launches") as bar, _quiet_torch():
        ops = record.model(name, bar.advance, **options)
    _save(ops, path)


def _check_numbers(given: dict[str, int | None]) -> None:
    """Refuse numbers that are no counts."""
    for option, number in given.items():
        if number is not None and not 1 <= number <= _MOST:
            raise TidegateError(f"{option} must be from 1 to {_MOST}, got {number}")


def _save(ops: Ops, path: Path) -> None:
    """Write the file and say what is in it."""
    from tidegate.trace.ops import save_ops
    from tidegate.units import show_count, show_size

    save_ops(ops, path)
    kinds = ", ".join(f"{kind} {show_size(size)}" for kind, size in ops.live_by_kind().items())
    output.print_text(
        f"recorded {ops.name} to {path}, {show_size(path.stat().st_size)}: "
        f"{show_count(len(ops.launches))} launches, peak {show_size(ops.peak)} ({kinds})"
    )
    for note in ops.notes:
        output.print_text(f"note: {note}")


def _quiet_torch() -> Any:
    """Return a context without the warnings that PyTorch prints for tensors without data."""
    import logging
    import warnings
    from contextlib import ExitStack

    os.environ.setdefault("TORCH_LOGS", "-all")
    stack = ExitStack()
    stack.enter_context(warnings.catch_warnings())
    warnings.simplefilter("ignore")
    fake = logging.getLogger("torch._subclasses.fake_tensor")
    before = fake.level
    fake.setLevel(logging.CRITICAL)
    stack.callback(fake.setLevel, before)
    return stack
