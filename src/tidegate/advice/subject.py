"""Subjects: what can be advised on, by the words that people give.

step.parquet, app.mem_trace    a recording, a trace, or a file that can be imported
train.py                       a PyTorch script, which is recorded (see record/)
llama-7b(context=2048)         a ready model, recorded without weights
nn.c, a Makefile, its folder   an OpenMP, CUDA or HIP program, by the compiler's model of it
model.json                     such a model that was saved
matmul(bytes=1GiB)             a workload
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tidegate.compiler.ir.clang import LANGUAGES
from tidegate.compiler.model_file import is_saved_model
from tidegate.compiler.project import IR, is_project, model_of_files
from tidegate.errors import TidegateError
from tidegate.experiments.planning import brief, settle
from tidegate.experiments.specification import RunSpec
from tidegate.machine.machine import Machine
from tidegate.options import parse_spec
from tidegate.trace.ops import Ops, OpTrace
from tidegate.trace.trace import Trace
from tidegate.workloads.modelled import Modelled

SOURCES = (*LANGUAGES, *IR)
_STEPS = 2  # of a script: the second one is steady
_FAMILIES = ("llama-", "gpt-", "mixtral-", "resnet", "unet-")

Progress = Callable[[int], None]


@dataclass(frozen=True)
class Subject:
    """A program to advise on. ``workload`` is what a ``RunSpec`` takes."""

    name: str
    workload: Any
    notes: tuple[str, ...] = ()
    model: tuple[str, Mapping[str, Any]] | None = None  # a ready model's name and its options
    code: Modelled | None = None  # a compiler's model of it, for code
    recomputed: Subject | None = None  # the same, computing activations again
    lasting: dict[str, Trace] = field(default_factory=dict, compare=False)

    def trace(self, machine: Machine) -> Trace:
        """Return the trace for a machine's geometry; it is made once."""
        key = str(machine.geometry)
        if key not in self.lasting:
            if isinstance(self.workload, Ops):
                self.lasting[key] = OpTrace(self.workload, machine.geometry)
            else:
                self.lasting[key] = RunSpec(self.workload, machine).trace()
        return self.lasting[key]


def find_subject(
    given: str,
    near: int,
    machine: Machine,
    values: Mapping[str, int],
    progress: Progress = lambda done: None,
    options: Sequence[str] = (),
) -> Subject:
    """Return the program that these words mean; record or compile it if need be. ``options`` go to
    clang.
    """
    path = Path(given)
    if path.suffix in SOURCES or is_project(path) or is_saved_model(path):
        return _compiled(path, near, machine, values, options)
    if values or options:
        what = "--set" if values else "an option for clang"
        raise TidegateError(
            f"{what} is for sources ({', '.join(SOURCES)}), Makefiles and their folders, "
            f"got {given}; leave it out"
        )
    if path.suffix == ".py" and ".py:" not in given:
        return _script(path, progress)
    if is_model(given):
        return _model(given, progress)
    return Subject(path.name if path.is_file() else given, given)


def is_model(given: str) -> bool:
    """Return whether these words name a ready model."""
    return given.startswith(_FAMILIES) and not Path(given).exists()


def _compiled(
    path: Path, near: int, machine: Machine, values: Mapping[str, int], options: Sequence[str]
) -> Subject:
    model = model_of_files([path], options)
    settled, notes = settle(model, values, near)
    whole = Modelled(model, settled)
    played = brief(whole, machine.geometry.page)
    if played.cut:
        notes.append(f"times are of {len(played.order)} launches; the program's loops turn more")
    return Subject(path.name, played, tuple(notes), code=whole)


def _script(path: Path, progress: Progress) -> Subject:
    from tidegate import record

    ops = record.torch_script(str(path), steps=_STEPS, progress=progress).ops()
    return Subject(path.name, ops, ops.notes)


def _model(given: str, progress: Progress) -> Subject:
    from tidegate import record

    name, options = parse_spec(given)
    ops = record.model(name, progress, **options)
    return Subject(given, ops, ops.notes, model=(name, options))
