"""Reading a page while the policies decide who makes room for it: Linux's own asynchronous reads,
called with ctypes.

    start(key, file, offset)   as soon as a page is known to be wanted
    take(key)                  when there is room: the page's bytes, waited for if they are not here yet

A page that is wanted and far cannot change in the store before it is near, so reading it early is
safe.
"""

from __future__ import annotations

import ctypes
import mmap
import os
from collections.abc import Iterable

SLOTS = 8  # reads at a time
_SETUP, _SUBMIT, _GET_EVENTS = (206, 209, 208) if os.uname().machine == "x86_64" else (0, 2, 4)
_READ = 0


class _Request(ctypes.Structure):
    """The kernel's struct iocb."""

    _fields_ = (
        ("data", ctypes.c_uint64),
        ("key", ctypes.c_uint32),
        ("flags", ctypes.c_uint32),
        ("what", ctypes.c_uint16),
        ("priority", ctypes.c_int16),
        ("file", ctypes.c_uint32),
        ("buffer", ctypes.c_uint64),
        ("bytes", ctypes.c_uint64),
        ("offset", ctypes.c_int64),
        ("rest", ctypes.c_uint64 * 2),
    )


class ReadAhead:
    """Up to SLOTS reads of one page each; where the kernel has no such thing, ``take`` answers
    None.
    """

    def __init__(self, page: int):
        self._page = page
        self._call = ctypes.CDLL(None, use_errno=True).syscall
        self._call.restype, self._call.argtypes = ctypes.c_long, [ctypes.c_long] * 6
        context = ctypes.c_uint64(0)
        self.works = self._call(_SETUP, SLOTS, ctypes.addressof(context), 0, 0, 0) == 0
        self._context = context.value
        area = mmap.mmap(-1, SLOTS * page, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        self._view = memoryview(area)
        self._address = ctypes.addressof(ctypes.c_char.from_buffer(area))
        self._requests = (_Request * SLOTS)()
        self._pointers = (ctypes.c_uint64 * SLOTS)(*(ctypes.addressof(r) for r in self._requests))
        self._lists = [ctypes.addressof(self._pointers) + 8 * slot for slot in range(SLOTS)]
        for slot, request in enumerate(self._requests):
            request.data, request.what, request.bytes = slot, _READ, page
            request.buffer = self._address + slot * page
        self._events = (ctypes.c_int64 * 4)()
        self._event_at = ctypes.addressof(self._events)
        self._slot_of: dict[int, int] = {}
        self._free = list(range(SLOTS))
        self._read: dict[int, int] = {}  # bytes that have come, by slot

    def start(self, key: int, file: int, offset: int) -> None:
        """Begin to read. Nothing happens if too much is on its way already."""
        if not self._free or key in self._slot_of:
            return
        slot = self._free.pop()
        request = self._requests[slot]
        request.file, request.offset = file, offset
        if self._call(_SUBMIT, self._context, 1, self._lists[slot], 0, 0) == 1:
            self._slot_of[key] = slot
        else:
            self._free.append(slot)

    def take(self, key: int) -> tuple[memoryview, int] | None:
        """The page and its address, good until the next ``start``; None if it was not begun, or
        could not be read whole.
        """
        slot = self._slot_of.pop(key, -1)
        if slot < 0:
            return None
        self._wait(slot)
        self._free.append(slot)
        if self._read.pop(slot) != self._page:
            return None
        return self._view[
            slot * self._page : (slot + 1) * self._page
        ], self._address + slot * self._page

    def forget(self, keys: Iterable[int]) -> int:
        """These pages are not wanted any more, or have come another way.

        Answers how many had been begun.
        """
        begun = [key for key in keys if key in self._slot_of]
        for key in begun:
            self.take(key)
        return len(begun)

    @property
    def begun(self) -> list[int]:
        """What is read and not taken yet."""
        return list(self._slot_of)

    def _wait(self, slot: int) -> None:
        while slot not in self._read:
            if self._call(_GET_EVENTS, self._context, 1, 1, self._event_at, 0) == 1:
                self._read[self._events[0]] = self._events[2]
