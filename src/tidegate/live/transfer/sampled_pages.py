"""Sampled pages, set aside: near memory loses them, so that their next use is a fault, and nothing
has to be read to bring them home.

    file   ┌ table: which page each slot holds
           └ slots, a page each

The supervisor holds the file. A page's slot is filled and noted before its near memory is given
back, and freed when it is near again, or stored. So whatever moment a pager dies in, each page is
whole in one place, and near memory, where it is there, is the newer.

The mover leaves clean pages out while nobody comes back for such pages (IN_VAIN there): the store
has them, too.

Why not leave the memory and only unmap it? MADV_PAGEOUT does that to another process, but
interrupts every core the program has run on for each 4 KB; punching a hole does so once (374 µs
against 95 for 64 KB while the program runs, in one measurement).
"""

from __future__ import annotations

import ctypes
import mmap
import os
import struct

# pages that may be sampled at a time: the hardware's number, so that policies find what they know
COUNTERS = 256
# pages on their way home keep their slots until the turn ends, and as many may be sampled in that
# turn
SLOTS = 2 * COUNTERS
_ENTRY = struct.Struct("=Q")  # the page's number + 1, or 0
_ALIGN = 4096


class Aside:
    """Up to ``slots`` pages."""

    def __init__(self, fd: int, page: int, slots: int):
        self._page, self._begin = page, _table_size(slots)
        self._map = mmap.mmap(fd, self._begin + slots * page)
        self._view = memoryview(self._map)
        self._address = ctypes.addressof(ctypes.c_char.from_buffer(self._map))
        entries = (_ENTRY.unpack_from(self._map, slot * _ENTRY.size)[0] for slot in range(slots))
        # what a pager that died has left
        self._slot = {number - 1: slot for slot, number in enumerate(entries) if number}
        taken = set(self._slot.values())
        self._free = [slot for slot in reversed(range(slots)) if slot not in taken]

    @staticmethod
    def create(page: int, slots: int) -> int:
        """A descriptor of an empty file."""
        fd = os.memfd_create("tidegate-aside", os.MFD_CLOEXEC)
        os.ftruncate(fd, _table_size(slots) + slots * page)
        return fd

    def __contains__(self, number: int) -> bool:
        return number in self._slot

    def pages(self) -> list[int]:
        """All that are set aside."""
        return list(self._slot)

    def put(self, number: int, memory: int) -> None:
        """Copy this page of near memory, which nobody writes to meanwhile.

        When this returns it may go.
        """
        slot = self._free.pop()
        at = self._begin + slot * self._page
        got = os.preadv(memory, [self._view[at : at + self._page]], number * self._page)
        if got != self._page:
            raise OSError(5, f"only {got} of {self._page} bytes of near memory could be read")
        _ENTRY.pack_into(self._map, slot * _ENTRY.size, number + 1)  # from here on it counts
        self._slot[number] = slot

    def get(self, number: int) -> tuple[memoryview, int]:
        """The page's bytes, and their address."""
        at = self._begin + self._slot[number] * self._page
        return self._view[at : at + self._page], self._address + at

    def remove(self, number: int) -> None:
        """The page is near again, or stored, or nobody's."""
        slot = self._slot.pop(number, None)
        if slot is not None:
            _ENTRY.pack_into(self._map, slot * _ENTRY.size, 0)
            self._free.append(slot)


def _table_size(slots: int) -> int:
    return -(-slots * _ENTRY.size // _ALIGN) * _ALIGN
