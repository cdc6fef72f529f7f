"""The far tier: files, read and written past the page cache, which would otherwise hold everything
twice.
"""

from __future__ import annotations

import errno
import os
import stat
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tidegate.errors import TidegateError

ALIGN = 4096  # of what O_DIRECT reads and writes


@dataclass(frozen=True)
class Backing:
    """Where one object's bytes live when they are far: ``offset`` in a file, of which ``size``
    bytes are its own.
    """

    # a descriptor with O_DIRECT, or the plain one where the file system knows no such thing
    direct: int
    plain: int
    offset: int
    size: int
    writable: bool
    scratch: bool  # nobody reads it after us

    def read(self, at: int, into: memoryview) -> None:
        """Fill ``into`` from the object's byte ``at`` on; behind its end come zeros."""
        wanted = max(0, min(len(into), self.size - at))
        done = 0
        while done < wanted:
            try:
                n = os.preadv(self.direct, [into[done:]], self.offset + at + done)
            except OSError as error:
                if error.errno != errno.EINVAL:
                    raise
                n = os.preadv(self.plain, [into[done:wanted]], self.offset + at + done)
            if n == 0:
                raise OSError(errno.EIO, "the file has become shorter than it was")
            done += n
        if done != len(into):
            into[wanted:] = bytes(len(into) - wanted)

    def write(self, at: int, data: memoryview) -> None:
        """Write from the object's byte ``at`` on, and nothing behind its end."""
        wanted = min(len(data), self.size - at)
        whole = len(data) if self.scratch else wanted // ALIGN * ALIGN
        done = 0
        while done < whole:
            try:
                done += os.pwritev(self.direct, [data[done:whole]], self.offset + at + done)
            except OSError as error:
                if error.errno != errno.EINVAL:
                    raise
                break
        while done < wanted:  # an unaligned end
            done += os.pwritev(self.plain, [data[done:wanted]], self.offset + at + done)


def open_scratch(path: str | None) -> tuple[int, int, str]:
    """A file that is gone when its last user is: it has no name.

    Answers both descriptors and what to call it.
    """
    if path is not None and Path(path).exists():
        raise TidegateError(
            f"store {path} exists, and an arena would overwrite it; give another name, or arena.open it"
        )
    folder = Path(path).absolute().parent if path is not None else Path(tempfile.gettempdir())
    if not folder.is_dir():
        raise TidegateError(f"store {path}: there is no folder {folder}")
    name = str(
        folder
        / (
            Path(path).name
            if path is not None
            else f".tidegate-{os.getpid()}-{os.urandom(4).hex()}"
        )
    )
    try:
        plain = _open_nameless(str(folder), name)
    except OSError as error:
        raise TidegateError(f"store {name} cannot be made: {error.strerror}") from error
    return reopen_direct(f"/proc/self/fd/{plain}", plain, os.O_RDWR), plain, str(folder)


def _open_nameless(folder: str, name: str) -> int:
    """It never has a name, so that even who is killed right now leaves none behind; or a short
    while, where it must.
    """
    try:
        return os.open(folder, os.O_RDWR | os.O_TMPFILE | os.O_CLOEXEC, 0o600)
    except OSError as error:
        if error.errno not in (errno.EOPNOTSUPP, errno.EISDIR, errno.ENOENT, errno.EINVAL):
            raise
    fd = os.open(name, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    os.unlink(name)
    return fd


def open_file(path: str, writable: bool) -> tuple[int, int]:
    """Both descriptors of a user's own file."""
    flags = os.O_RDWR if writable else os.O_RDONLY
    try:
        plain = os.open(path, flags | os.O_CLOEXEC)
    except OSError as error:
        raise TidegateError(f"{path} cannot be opened: {error.strerror}") from error
    if not stat.S_ISREG(os.fstat(plain).st_mode):
        os.close(plain)
        raise TidegateError(f"{path} is not a regular file; expected one with an array in it")
    return reopen_direct(path, plain, flags), plain


def reopen_direct(path: str, plain: int, flags: int) -> int:
    """The same file with O_DIRECT where that works."""
    try:
        return os.open(path, flags | os.O_DIRECT | os.O_CLOEXEC)
    except OSError:
        return os.dup(plain)


def make_space(fd: int, offset: int, size: int, folder: str) -> None:
    """Have the file system set space aside now, so that it cannot run out in the middle of an
    eviction.
    """
    try:
        os.posix_fallocate(fd, offset, size)
    except OSError as error:
        if error.errno == errno.ENOSPC:
            raise TidegateError(
                f"the store in {folder} has no room for {size} bytes more; nothing was allocated"
            ) from error
        if error.errno not in (errno.EOPNOTSUPP, errno.EINVAL):
            raise


def describe(backing: Backing) -> dict[str, Any]:
    """As it crosses to another process, without descriptors."""
    return {
        "offset": backing.offset,
        "size": backing.size,
        "writable": backing.writable,
        "scratch": backing.scratch,
    }
