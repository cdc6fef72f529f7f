"""Faults for the tests of live memory, in the pager alone: Python imports this file if its folder
is on the path.

TIDEGATE_FAULT=die-in-write: the pager is killed in the middle of every fifth write to the store,
half of it written. TIDEGATE_FAULT=die-in-drop: the pager is killed at every eleventh region that it
or its predecessors drop. TIDEGATE_FAULT=die-at-once: no pager ever does anything.
TIDEGATE_FAULT=read-error: from the hundredth on, reads of the store fail.
"""

from __future__ import annotations

import errno
import itertools
import mmap
import os
import signal
import sys

if any("tidegate.live.pager.supervisor" in argument for argument in sys.orig_argv):
    from tidegate.live.pager import pager
    from tidegate.live.transfer import mover, read_ahead, store

    writes, reads = itertools.count(1), itertools.count(1)
    drops = mmap.mmap(-1, 1)  # shared by all pagers
    write, read, drop = store.Backing.write, store.Backing.read, mover.LiveMover.drop

    def die_in_write(self: store.Backing, at: int, data: memoryview) -> None:
        if next(writes) % 5 == 0:
            write(self, at, data[: max(store.ALIGN, len(data) // 2 // store.ALIGN * store.ALIGN)])
            os.kill(os.getpid(), signal.SIGKILL)
        write(self, at, data)

    def die_in_drop(self: mover.LiveMover, region: int) -> None:
        drops[0] = (drops[0] + 1) % 11
        if drops[0] == 3:
            os.kill(os.getpid(), signal.SIGKILL)
        drop(self, region)

    def fail_to_read(self: store.Backing, at: int, into: memoryview) -> None:
        if next(reads) > 100:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        read(self, at, into)

    match os.environ.get("TIDEGATE_FAULT"):
        case "die-in-write":
            store.Backing.write = die_in_write  # type: ignore[method-assign]
        case "die-in-drop":
            mover.LiveMover.drop = die_in_drop  # type: ignore[method-assign]
        case "die-at-once":
            pager.main = lambda *_: os.kill(os.getpid(), signal.SIGKILL)  # type: ignore[assignment, func-returns-value]
        case "read-error":
            store.Backing.read = fail_to_read  # type: ignore[method-assign]
            read_ahead.ReadAhead.start = lambda *_: None  # type: ignore[method-assign]
