"""Recording: a PyTorch program, from the first operator to ops.

with Recording() as recording:          tensors have no data, and a GPU seems to be there
    model, optimiser = build()
    step(model, optimiser)
ops = recording.ops()
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import torch
import torch._dynamo  # PyTorch imports it when first needed, which fails while we record
from torch._subclasses.fake_tensor import FakeTensorMode

from tidegate.errors import UnknownName
from tidegate.record.pytorch.modules import Modules, Storages
from tidegate.record.pytorch.pretend import pretend_gpu, refuse_processes
from tidegate.record.pytorch.recorder import OperatorRecorder
from tidegate.trace.ops.file import save_ops
from tidegate.trace.ops.ops import KINDS, Ops
from tidegate.trace.ops.replicate import replicate
from tidegate.trace.trace import Provenance

MOST_LAUNCHES = 2_000_000


class EnoughSteps(BaseException):
    """Ends a program whose steps have been recorded; no ``except Exception`` catches it."""


class Recording:
    """Records PyTorch operators while it is a context.

    ``real``: tensors have data and are computed. ``steps``: leave the program after so many.
    ``answer``: what the program gets for values it asks for. ``progress`` takes launches.
    """

    def __init__(
        self,
        name: str = "torch",
        *,
        real: bool = False,
        steps: int | None = None,
        answer: float | None = None,
        most_launches: int = MOST_LAUNCHES,
        progress: Callable[[int], None] = lambda launches: None,
    ):
        self.name, self.real, self.steps = name, real, steps
        self._progress = progress
        self._storages = Storages()
        self._modules = Modules(self._storages, self._after_step)
        self._recorder = OperatorRecorder(self._storages, self._modules, most_launches, answer)
        self._shown = 0
        self._ops: Ops | None = None

    def __enter__(self) -> Recording:
        self._stack = ExitStack()
        with ExitStack() as stack:
            if not self.real:
                stack.enter_context(FakeTensorMode(allow_non_fake_inputs=True))
            stack.enter_context(self._recorder)
            stack.enter_context(refuse_processes())
            stack.enter_context(self._modules)
            stack.enter_context(pretend_gpu(self._recorder))
            self._stack = stack.pop_all()
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> bool:
        self.stop()
        self._stack.__exit__(kind, error, trace)
        return isinstance(error, EnoughSteps)

    def stop(self) -> None:
        """Record nothing from now on."""
        self._recorder.active = False
        self._storages.stop()

    @contextmanager
    def phase(self, name: str) -> Any:
        """Name what runs in this context, in place of forward: prefill, decode …"""
        before, self._modules.phase = self._modules.phase, name
        try:
            yield
        finally:
            self._modules.phase = before

    def name_tensor(self, tensor: Any, name: str, kind: str) -> None:
        """Name a tensor that is recorded; kinds are those of ``trace.ops``."""
        if kind not in KINDS:
            raise UnknownName("kind", kind, KINDS)
        self._storages.rename(tensor, name, kind)

    def ops(self, replicated: int | None = None) -> Ops:
        """Return what was recorded. ``replicated``: repeat the last step to make so many steps."""
        if self._ops is None:
            provenance = Provenance.RECORDED if self.real else Provenance.DERIVED
            self._ops = self._storages.build.finish(self.name, provenance, self._notes())
        return self._ops if replicated is None else replicate(self._ops, replicated)

    def save(self, path: str | Path, replicated: int | None = None) -> Path:
        """Write what was recorded to a .parquet file."""
        return save_ops(self.ops(replicated), path)

    def _after_step(self, step: int) -> None:
        done = self._storages.build.launches
        self._progress(done - self._shown)
        self._shown = done
        if self.steps is not None and step >= self.steps:
            self.stop()
            raise EnoughSteps

    def _notes(self) -> tuple[str, ...]:
        """Return what had to be assumed."""
        counts, on_gpu = self._recorder.counts, self._storages.on_gpu
        notes = [
            f"recorded with PyTorch {torch.__version__} on CPU tensors"
            + ("" if self.real else " without data")
            + "; a GPU may choose other operators and needs workspace that is not recorded"
        ]
        if not on_gpu:
            notes.append("the program used no GPU: its CPU operators are the launches")
        for what, text in _ASSUMED.items():
            if counts[what]:
                notes.append(text.format(n=counts[what]))
        unknown = [what.partition(" ")[2] for what in counts if what.startswith("flops ")]
        if unknown:
            notes.append(f"FLOPs were not counted for {', '.join(sorted(unknown))}")
        return tuple(notes)


_ASSUMED = {
    "floats": "{n} values that the program asked for (.item()) were answered with 0",
    "answers": "{n} values that the program asked for (.item()) were answered as --answer says",
    "attention dropout": "{n} attentions with dropout were recorded without it, as in one kernel",
    "compile": "torch.compile was ignored {n} times: operators are not fused",
    "workers": "{n} data loaders ran without worker processes",
}
