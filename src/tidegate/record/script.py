"""Run a script as ``__main__`` and turn whatever it raises into one line."""

from __future__ import annotations

import os
import runpy
import sys
import traceback
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from tidegate.errors import TidegateError


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
