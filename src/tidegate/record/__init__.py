"""Recorders: programs of your own as traces.

    with tidegate.record.torch() as recording:     PyTorch, on tensors without data
        train()
    recording.save("step.parquet")

    tidegate.record.torch_script("train.py", steps=3).save("step.parquet")
    ops = tidegate.record.model("llama-7b", context=2048, decode=32)

PyTorch and Triton are imported when they are needed. They come with ``tidegate[torch]`` and
``tidegate[triton]``.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from tidegate.errors import TidegateError
from tidegate.record.script import check_script, run_script

if TYPE_CHECKING:
    from tidegate.record.pytorch.recording import Recording
    from tidegate.trace.ops.ops import Ops

__all__ = ["model", "torch", "torch_script"]

STEADY_STEPS = 3  # the first step often does more; the next two show that they are steady


def torch(name: str = "torch", **options: Any) -> Recording:
    """Return a context that records PyTorch operators; options are those of ``Recording``."""
    need("torch")
    from tidegate.record.pytorch.recording import Recording

    return Recording(name, **options)


def torch_script(script: str, arguments: Sequence[str] = (), **options: Any) -> Recording:
    """Run a PyTorch script, unchanged, and return its recording."""
    path = check_script(script)
    recording = torch(path.stem, **options)
    with recording:
        run_script(path, arguments)
    return recording


def model(
    name: str, progress: Callable[[int], None] = lambda launches: None, **options: Any
) -> Ops:
    """Build a model from its configuration, without weights, and return the ops of a run.

    ``model("llama-7b", context=2048, decode=32)``; options are those of the model's class.
    """
    need("torch")
    from tidegate.record.models import record_model

    return record_model(name, progress, **options)


def need(package: str) -> None:
    """Raise TidegateError unless a package is installed."""
    try:
        importlib.import_module(package)
    except ImportError as error:
        raise TidegateError(
            f"recording needs {package}, which cannot be imported ({error}); "
            f"install it with: pip install 'tidegate[{package}]'"
        ) from error
