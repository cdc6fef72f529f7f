"""Faults for the tests of live memory, in the pager alone: Python imports this file if its folder is on the path.

TIDEGATE_FAULT=die-in-write: the pager is killed in the middle of every fifth write to the store, half of it written.
TIDEGATE_FAULT=read-error: from the hundredth on, reads of the store fail.
"""

from __future__ import annotations

import errno
import itertools
import os
import signal
import sys

if any("tidegate.live.supervisor" in argument for argument in sys.orig_argv):
    from tidegate.live import ahead, store

    writes, reads = itertools.count(1), itertools.count(1)
    write, read = store.Backing.write, store.Backing.read

    def die_in_write(self: store.Backing, at: int, data: memoryview) -> None:
        if next(writes) % 5 == 0:
            write(self, at, data[: max(store.ALIGN, len(data) // 2 // store.ALIGN * store.ALIGN)])
            os.kill(os.getpid(), signal.SIGKILL)
        write(self, at, data)

    def fail_to_read(self: store.Backing, at: int, into: memoryview) -> None:
        if next(reads) > 100:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        read(self, at, into)

    match os.environ.get("TIDEGATE_FAULT"):
        case "die-in-write":
            store.Backing.write = die_in_write  # type: ignore[method-assign]
        case "read-error":
            store.Backing.read = fail_to_read  # type: ignore[method-assign]
            ahead.ReadAhead.start = lambda *_: None  # type: ignore[method-assign]
