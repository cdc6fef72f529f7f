"""Arrays of an arena in other processes, read-only: one pager, many readers.

    owner    arena.share(a) ──▶ SharedArray ──pickle──▶ reader    handle.open() ──▶ an array
    reader   maps the same memory file, with a userfaultfd of its own, which the arena's supervisor
             passes to the pager; near memory is shared, so each page is read once for all

Faults of readers are served like the owner's. A page that leaves leaves all processes at once, for
its memory is one. If the owner or the supervisor ends, readers end with SIGBUS: their memory would
read as zeros.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import socket
import weakref
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tidegate.errors import TidegateError
from tidegate.live.arena import files, process
from tidegate.live.arena.connection import MESSAGE, tie_lifeline
from tidegate.live.arena.peers import connect
from tidegate.live.transfer import userfault

if TYPE_CHECKING:
    from tidegate.live.arena.arena import Arena

# of this process, by the arena's name: its arenas, and others' that it reads
_own: weakref.WeakValueDictionary[str, Arena] = weakref.WeakValueDictionary()
_readers: dict[str, weakref.ref[Reader]] = {}


@dataclass(frozen=True)
class SharedArray:
    """A handle of an array, which can be pickled; ``open`` it in any process of the same user."""

    arena: str  # its name
    offset: int  # of the array's first byte in the arena
    bytes: int
    start: int  # of the first element, from there; strides may be negative
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    strides: tuple[int, ...]

    @classmethod
    def of(cls, arena: str, base: int, array: NDArray[Any]) -> SharedArray:
        """Describe an array of the arena that begins at ``base``."""
        low, high = np.lib.array_utils.byte_bounds(array)
        start = array.__array_interface__["data"][0] - low
        return cls(arena, low - base, high - low, start, array.dtype, array.shape, array.strides)

    def open(self) -> NDArray[Any]:
        """Return the array, read-only, over the same memory as the owner's."""
        own = _own.get(self.arena)
        if own is not None and own.is_open:
            part = _Part(own, own.addresses[0] + self.offset, self.bytes)
        else:
            reader = reader_of(self.arena)
            part = _Part(reader, reader.base + self.offset, self.bytes)
        raw = np.asarray(part)
        return np.ndarray(self.shape, self.dtype, raw, self.start, self.strides)


class _Part:
    """Some bytes of an arena. An array holds its part, which holds the reader or the arena."""

    def __init__(self, owner: Reader | Arena, address: int, size: int):
        self._owner = owner
        self.__array_interface__ = {
            "version": 3,
            "data": (address, True),
            "shape": (size,),
            "typestr": "|u1",
        }


class Reader:
    """This process's view of an arena; it ends when its last array is gone."""

    def __init__(self, name: str):
        self.pid = os.getpid()
        try:
            with contextlib.ExitStack() as undo:
                self._attach(name, undo)
                self._finalizer = weakref.finalize(self, undo.pop_all().close)
        except OSError as error:
            raise TidegateError(
                f"the shared arena cannot be opened: {files.explain(error)}; "
                "the process that made it must be running, as the same user"
            ) from error
        self._finalizer.atexit = False  # see leave_open

    def leave_open(self) -> None:
        """Stay connected until the process is gone: daemon threads may still use the arrays."""
        self._finalizer.detach()
        self._peer.detach()

    def _attach(self, name: str, undo: contextlib.ExitStack) -> None:
        """Map the arena's memory, and have its pager serve our faults."""
        self._peer = peer = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        undo.enter_context(peer)
        connect(peer, name)
        peer.send(json.dumps({"do": "join"}).encode())
        answer, memory, _, _ = socket.recv_fds(peer, MESSAGE, 1)
        size = json.loads(answer)["bytes"]
        uffd, _ = userfault.Userfault.open()
        with contextlib.ExitStack() as passed_on:
            for fd in (*memory, uffd.fd):
                passed_on.callback(os.close, fd)
            self.base = userfault.reserve(size)
            self.end = self.base + size
            undo.callback(userfault.seal, self.base, size)
            userfault.map_shared(self.base, size, memory[0])
            userfault.set_writable(self.base, size, False)
            uffd.register(self.base, size)
            lifeline, theirs = os.pipe()
            undo.callback(os.close, lifeline)
            passed_on.callback(os.close, theirs)
            process_fd = os.pidfd_open(self.pid)
            passed_on.callback(os.close, process_fd)
            request = json.dumps({"do": "attach", "base": self.base}).encode()
            socket.send_fds(peer, [request], [uffd.fd, process_fd, theirs])
            if "error" in (said := json.loads(peer.recv(MESSAGE) or b"{}")) or not said:
                raise TidegateError(said.get("error", "the shared arena has just ended"))
        # undone first: that the supervisor lets go is no accident then
        undo.callback(tie_lifeline, lifeline, False)
        tie_lifeline(lifeline, True)


def note_own(name: str, arena: Arena) -> None:
    """Note an arena of this process, whose handles need no reader here."""
    _own[name] = arena


def reader_of(name: str) -> Reader:
    """Return this process's view of an arena; attach to it at first."""
    ref = _readers.get(name)
    found = ref() if ref is not None else None
    if found is None or found.pid != os.getpid():
        found = Reader(name)
        _readers[name] = weakref.ref(found)
    return found


def _take_readers() -> list[Reader]:
    """Return the readers of this process, and forget them."""
    found = [reader for ref in _readers.values() if (reader := ref()) is not None]
    _readers.clear()
    return found


def _leave_open() -> None:
    for reader in _take_readers():
        reader.leave_open()


def _detach_child() -> None:
    """Detach a forked child: what it inherited is its parent's."""
    found = _take_readers()
    for reader in found:
        reader._finalizer.detach()
    process.end_on_use([(reader.base, reader.end) for reader in found])


os.register_at_fork(after_in_child=_detach_child)
atexit.register(_leave_open)
