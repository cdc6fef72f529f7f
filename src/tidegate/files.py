"""Files that appear whole or not at all, and the folder of the cache."""

from __future__ import annotations

import atexit
import functools
import os
import secrets
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from tidegate.errors import TidegateError

_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def write_atomically(path: Path, content: str | bytes | Callable[[Path], None]) -> None:
    """Write a file whole, or leave the old one as it was, whatever is raised.

    ``content`` may be a function that writes to the path it is given. The file is written beside
    its place and then renamed. Its name cannot be foreseen, and it must be new: in a folder that
    others can write, it could be a link to another file of ours.
    """
    check_place(path)
    partial = path.with_name(f".{path.name}.{secrets.token_hex(8)}.part")
    remove = functools.partial(_remove, partial)
    atexit.register(remove)  # several Ctrl-C in a row can cut the ``finally`` below short
    try:
        os.close(os.open(partial, _NEW, 0o666))
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
