"""Files that appear whole or not at all, and the folder of the cache."""

from __future__ import annotations

import atexit
import functools
import os
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from tidegate.errors import TidegateError


def write_atomically(path: Path, content: str | bytes | Callable[[Path], None]) -> None:
    """Write a file whole, or leave the old one as it was, whatever is raised.

    ``content`` may be a function that writes to the path it is given. The file is written beside
    its place and then renamed.
    """
    check_place(path)
    partial = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_native_id()}.part")
    remove = functools.partial(_remove, partial)
    atexit.register(remove)  # several Ctrl-C in a row can cut the ``finally`` below short
    try:
        if callable(content):
            content(partial)
        elif isinstance(content, bytes):
            partial.write_bytes(content)
        else:
            partial.write_text(content, encoding="utf-8")
        os.replace(partial, path)
    except OSError as error:
        raise TidegateError(f"cannot write {path}: {error.strerror or error}") from error
    finally:
        remove()
        atexit.unregister(remove)


def check_place(path: Path) -> None:
    """Raise TidegateError if no file can be at ``path``: no folder around it, or a folder there."""
    if path.is_dir():
        raise TidegateError(f"cannot write {path}: it is a folder; give the name of a file")
    if not path.parent.is_dir():
        raise TidegateError(f"cannot write {path}: there is no folder {path.parent}")


def _remove(partial: Path) -> None:
    """Remove a half-written file; a second Ctrl-C must not leave it behind."""
    for _ in range(5):
        try:
            with suppress(OSError):
                partial.unlink(missing_ok=True)
            return
        except KeyboardInterrupt:
            continue


def cache_folder() -> Path:
    """Return the folder of stored runs and compiled code: ``$TIDEGATE_CACHE``, or ``tidegate`` in
    the user's cache folder.
    """
    if given := os.environ.get("TIDEGATE_CACHE"):
        return Path(given)
    return Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "tidegate"
