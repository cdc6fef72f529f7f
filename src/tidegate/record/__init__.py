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
import os
import runpy
import sys
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tidegate.errors import TidegateError

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


# Scripts


def check_script(script: str) -> Path:
    """Return the script's path. Raise TidegateError if it is no file."""
    path = Path(script)
    if path.is_dir():
        raise TidegateError(f"{script} is a folder; give a script, such as {path / 'train.py'}")
    if not path.is_file():
        raise TidegateError(f"there is no script {script}")
    return path


def run_script(path: Path, arguments: Sequence[str] = ()) -> None:
    """Run a script with its arguments, as Python would.

    What it raises becomes a TidegateError with its line. Leaving by ``sys.exit()`` with success is
    fine.
    """
    before, paths = sys.argv, list(sys.path)
    sys.argv = [str(path), *arguments]
    sys.path.insert(0, str(path.resolve().parent))
    try:
        runpy.run_path(str(path), run_name="__main__")
    except SystemExit as stopped:
        if stopped.code not in (None, 0):
            raise TidegateError(f"{path} ended with {stopped.code}; nothing was recorded") from None
    except TidegateError as error:
        raise TidegateError(f"{path}{_line(error, path)}: {error}") from error
    except Exception as error:
        text = str(error).strip().split("\n")[0]
        raise TidegateError(
            f"{path} raised {type(error).__name__}{_line(error, path)}: {text or 'no message'}; "
            "--debug shows the whole traceback"
        ) from error
    finally:
        sys.argv, sys.path[:] = before, paths
        with suppress(ValueError):
            sys.stdout.flush()


def _line(error: BaseException, path: Path) -> str:
    """Return the script's own line in a traceback, as text."""
    own = [
        frame.lineno
        for frame in traceback.extract_tb(error.__traceback__)
        if os.path.abspath(frame.filename) == str(path.resolve())
    ]
    return f" line {own[-1]}" if own else ""
