"""One process compiles a function at a time; those that wait find the code in the cache.

Workers of a grid, or of the tests, begin together and need the same code. Without turns each of
them compiles it. Different functions are compiled side by side.
"""

from __future__ import annotations

import fcntl
import gc
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from zlib import crc32

from numba.core.compiler_lock import global_compiler_lock

PATIENCE = 120  # seconds; then the other process is taken for stopped, and both compile
_PAUSE = 0.02  # seconds between two attempts

_depth = 0  # of compilations in this process: a compiled function may need another


@contextmanager
def own_turn(folder: str | None, function: str) -> Iterator[None]:
    """Compile a function in this block, as the only process with this folder of compiled code.

    Numba's lock comes first, so that two threads cannot wait for each other. A process holds the
    turn of one function only, so neither can two processes: what that function needs is compiled
    without a turn.
    """
    global _depth
    with global_compiler_lock, _collection_paused():
        held = _hold(folder, function) if folder and not _depth else -1
        _depth += 1
        try:
            yield
        finally:
            _depth -= 1
            if held >= 0:
                os.close(held)


@contextmanager
def _collection_paused() -> Iterator[None]:
    """Keep the collector from walking through what Numba makes, again and again."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def _hold(folder: str, function: str) -> int:
    """Return the descriptor of a file with the function's byte locked, or -1 if there is none."""
    try:
        file = os.open(Path(folder) / "turn", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError:
        return -1
    until, locked = time.monotonic() + PATIENCE, False
    try:
        while not locked and time.monotonic() < until:
            locked = _lock(file, crc32(function.encode()))
    finally:
        if not locked:
            os.close(file)
    return file if locked else -1


def _lock(file: int, byte: int) -> bool:
    """Try to lock a byte of a file; pause if another process holds it."""
    try:
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, byte)
        return True
    except OSError:  # held, or a file system without locks
        time.sleep(_PAUSE)
        return False
