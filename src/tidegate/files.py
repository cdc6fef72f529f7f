"""Files that appear whole or not at all, and the folder of the cache."""

from __future__ import annotations

import atexit
import functools
import os
import secrets
import stat
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from tidegate.errors import TidegateError

_PRIVATE = 0o700
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


def make_private(folder: Path) -> bool:
    """Make a folder of the cache for what is executed; return whether it can be trusted.

    Compiled code is executed, and pickles can execute anything. They are taken only from a folder
    of this user in which, and above which up to the cache, nobody else can write.
    """
    above = [cache_folder(), *(p for p in reversed(folder.parents) if cache_folder() in p.parents)]
    for one in (*above, folder):
        with suppress(FileExistsError):
            one.mkdir(mode=_PRIVATE, parents=True)
    if not all(_only_we_write(one) for one in (*above, folder)):
        return False
    # one that we made has been private from its beginning; a look at each file takes 15 ms
    return stat.S_IMODE(folder.stat().st_mode) == _PRIVATE or _all_is_ours(folder)


def _only_we_write(folder: Path) -> bool:
    found = folder.stat()
    if found.st_mode & stat.S_ISVTX:  # others can add to it, but not take away what is ours
        return found.st_uid in (os.geteuid(), 0)
    return found.st_uid == os.geteuid() and not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def _all_is_ours(folder: Path | str) -> bool:
    """Return whether all that is in a folder belongs to this user; others may have put it there."""
    with os.scandir(folder) as entries:
        for entry in entries:
            try:
                owner = entry.stat(follow_symlinks=False).st_uid
            except FileNotFoundError:  # of another process, which has just renamed it
                continue
            if owner != os.geteuid():
                return False
            if entry.is_dir(follow_symlinks=False) and not _all_is_ours(entry.path):
                return False
    return True
