"""Files behind an arena: its own store file, and files that users open as arrays."""

from __future__ import annotations

import errno
import math
import os
import stat
import tempfile
import tokenize
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy

from tidegate.display.tables import printable
from tidegate.errors import TidegateError

MOST_DIMENSIONS = 32  # of NumPy's arrays, in all its versions
MOST_BYTES = 1 << 62  # of an array, also of one with a length of 0 among its dimensions
_LONGEST_REASON = 200  # characters of an error
# what NumPy raises for a damaged header, which it reads as Python's literals
_DAMAGE = (ValueError, SyntaxError, EOFError, MemoryError, RecursionError, tokenize.TokenError)


def open_store(path: str | None) -> tuple[int, int, str]:
    """Make a file without a name, which is gone with its last descriptor.

    Return a descriptor with O_DIRECT, a plain one, and the folder.
    """
    if path is not None and Path(path).exists():
        raise TidegateError(
            f"store {path} exists and an arena would overwrite it; give another name, or use "
            "arena.open to read it"
        )
    folder = Path(path).absolute().parent if path is not None else Path(tempfile.gettempdir())
    if not folder.is_dir():
        raise TidegateError(f"store {path}: there is no folder {folder}")
    name = f".tidegate-{os.getpid()}-{os.urandom(4).hex()}" if path is None else Path(path).name
    try:
        plain = _open_nameless(str(folder), str(folder / name))
    except OSError as error:
        raise TidegateError(f"store {folder / name} cannot be made: {error.strerror}") from error
    return _reopen_direct(f"/proc/self/fd/{plain}", plain, os.O_RDWR), plain, str(folder)


def _open_nameless(folder: str, name: str) -> int:
    """Open a file that never has a name, or has one for a moment where O_TMPFILE is unknown.

    So a process that is killed leaves no file behind.
    """
    try:
        return os.open(folder, os.O_RDWR | os.O_TMPFILE | os.O_CLOEXEC, 0o600)
    except OSError as error:
        if error.errno not in (errno.EOPNOTSUPP, errno.EISDIR, errno.ENOENT, errno.EINVAL):
            raise
    fd = os.open(name, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    os.unlink(name)
    return fd


def check_regular(path: str) -> None:
    """Refuse folders, and pipes, whose opening would wait for ever."""
    try:
        mode = os.stat(path).st_mode
    except OSError as error:
        raise TidegateError(f"{path} cannot be opened: {explain(error)}") from error
    if not stat.S_ISREG(mode):
        raise TidegateError(f"{path} is not a regular file; give one that holds an array")


def open_file(path: str, writable: bool) -> tuple[int, int]:
    """Open a user's file; return a descriptor with O_DIRECT and a plain one."""
    flags = os.O_RDWR if writable else os.O_RDONLY
    check_regular(path)
    try:
        plain = os.open(path, flags | os.O_CLOEXEC)
    except OSError as error:
        raise TidegateError(f"{path} cannot be opened: {explain(error)}") from error
    try:
        return _reopen_direct(path, plain, flags), plain
    except OSError as error:
        os.close(plain)
        raise TidegateError(f"{path} cannot be opened: {explain(error)}") from error


@dataclass(frozen=True)
class NpyHead:
    """What a .npy file says of itself."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    fortran: bool  # columns are contiguous
    offset: int  # of the data

    @property
    def bytes(self) -> int:
        return math.prod(self.shape) * self.dtype.itemsize

    def check(
        self, path: object, dtype: np.dtype[Any] | None, shape: tuple[int, ...] | None
    ) -> None:
        """Refuse a type or shape that the file does not have."""
        if dtype not in (None, self.dtype) or shape not in (None, self.shape):
            raise TidegateError(
                f"{path} is a .npy file of {self.dtype} and shape {self.shape}; "
                "leave dtype and shape out"
            )


def is_possible(shape: tuple[int, ...], itemsize: int) -> bool:
    """Return whether an array can have this shape, also on a platform with an older NumPy."""
    if len(shape) > MOST_DIMENSIONS or not all(type(n) is int and n >= 0 for n in shape):
        return False
    return math.prod(max(1, n) for n in shape) * max(1, itemsize) <= MOST_BYTES


def npy_head(path: str) -> NpyHead | None:
    """Return the head of a .npy file; None if it is none. Raise an error if it is broken."""
    check_regular(path)
    try:
        with open(path, "rb") as file:
            if file.read(len(npy.MAGIC_PREFIX)) != npy.MAGIC_PREFIX:
                return None
            file.seek(0)
            version = npy.read_magic(file)
            read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
            shape, fortran, dtype = read(file)
            if not is_possible(shape, dtype.itemsize):
                raise ValueError("no array can have its shape")
            head = NpyHead(dtype, shape, fortran, file.tell())
            there = os.fstat(file.fileno()).st_size - head.offset
    except OSError as error:
        raise TidegateError(f"{path} cannot be opened: {explain(error)}") from error
    except _DAMAGE as error:
        said = printable(str(error)[:_LONGEST_REASON]) or type(error).__name__
        raise TidegateError(f"{path} is not a whole .npy file ({said}); save it anew") from error
    if dtype.hasobject:
        raise TidegateError(f"{path} holds Python objects; a live array must be of numbers")
    if there < head.bytes:
        raise TidegateError(
            f"{path} must have {head.bytes} bytes of data, got {there}; save it anew"
        )
    return head


def _reopen_direct(path: str, plain: int, flags: int) -> int:
    try:
        return os.open(path, flags | os.O_DIRECT | os.O_CLOEXEC)
    except OSError:
        return os.dup(plain)


def reserve_space(fd: int, offset: int, size: int, folder: str) -> None:
    """Reserve space in the file system now, so that it cannot run out during an eviction."""
    try:
        os.posix_fallocate(fd, offset, size)
    except OSError as error:
        if error.errno == errno.ENOSPC:
            raise TidegateError(
                f"the store in {folder} has no room for {size} bytes more; nothing was allocated"
            ) from error
        if error.errno not in (errno.EOPNOTSUPP, errno.EINVAL):
            raise TidegateError(
                f"the store in {folder} cannot take {size} bytes more: {explain(error)}"
            ) from error


_REMEDIES = {
    errno.ENOMEM: "give a smaller span, or raise ulimit -v",
    errno.EFBIG: "give a smaller span, or raise ulimit -f",
    errno.EMFILE: "raise ulimit -n",
    errno.ENFILE: "close files",
}


def explain(error: OSError) -> str:
    """Return a system's error with what to do."""
    said = error.strerror or str(error)
    remedy = _REMEDIES.get(error.errno or 0)
    return f"{said}; {remedy}" if remedy else said
