"""Patches of the pager for tests; Python imports this file if its folder is on the path.

TIDEGATE_FAULT=die-in-write   every fifth write to the store is half done when the pager is killed
               die-in-drop    the pager is killed at every eleventh region that pagers drop
               die-at-once    every pager is killed before it does anything
               read-error     from the hundredth on, reads of the store fail
TIDEGATE_VICTIMS=FILE         evicted regions are written to the file, 8 bytes each
"""

from __future__ import annotations

import errno
import itertools
import mmap
import os
import signal
import sys

if any("tidegate.live.pager.supervisor" in argument for argument in sys.orig_argv):
    from tidegate.live.pager import engine, pager
    from tidegate.live.pager.no_mover import NoMover
    from tidegate.live.transfer import mover, store

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

    if path := os.environ.get("TIDEGATE_VICTIMS"):
        victims = os.open(path, os.O_WRONLY | os.O_APPEND)
        evict = engine.Engine._evict

        def note_and_evict(self: engine.Engine, number: int) -> None:
            if not isinstance(self.mover, NoMover):
                os.write(victims, number.to_bytes(8, "little"))
            evict(self, number)

        engine.Engine._evict = note_and_evict  # type: ignore[method-assign]

    match os.environ.get("TIDEGATE_FAULT"):
        case "die-in-write":
            store.Backing.write = die_in_write  # type: ignore[method-assign]
        case "die-in-drop":
            mover.LiveMover.drop = die_in_drop  # type: ignore[method-assign]
        case "die-at-once":
            pager.main = lambda *_: os.kill(os.getpid(), signal.SIGKILL)  # type: ignore
        case "read-error":
            store.Backing.read = fail_to_read  # type: ignore[method-assign]
            store.PageReadAhead.start = lambda *_: None  # type: ignore[method-assign]
