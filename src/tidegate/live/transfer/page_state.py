"""State of pages that outlives a pager: their flags, and copies of sampled pages.

The supervisor holds both memory files, so that the next pager finds them.

    PageFlags      is a page dirty? has it a copy in the store? is its near memory to be trusted?
    SampledPages   ┌ table: the page that each slot holds
                   └ slots of one page each
"""

from __future__ import annotations

import ctypes
import errno
import mmap
import os
import struct

# pages that may be sampled at a time: as many as the GPU has counters (ObservUVM, IV)
COUNTERS = 256
# a page that is restored keeps its slot until the turn ends; as many may be sampled in that turn
SLOTS = 2 * COUNTERS
_DIGITS = bytes.maketrans(b"\0\1", b"01")
_ENTRY = struct.Struct("=Q")  # the page's number + 1, or 0
_ALIGN = 4096


class PageFlags:
    """Three flags per page, one byte each.

    The dirty flag is set before the first write is allowed, and cleared only when the page's copy
    is in the store and its memory is given back. So a pager may die at any moment and no write is
    lost. A page is in doubt while its region is written as a whole: near memory may then
    be zeros, nobody can use it yet, and what is right is in the store.
    """

    def __init__(self, fd: int, pages: int):
        self._map = mmap.mmap(fd, 3 * pages)
        self._pages = pages

    @staticmethod
    def create(pages: int) -> int:
        """Return a descriptor of new flags: nothing dirty, nothing stored."""
        fd = os.memfd_create("tidegate-flags", os.MFD_CLOEXEC)
        os.ftruncate(fd, 3 * pages)
        return fd

    def dirty(self, first: int, pages: int) -> int:
        """Return the dirty pages among these, as bits."""
        return self._map[first] if pages == 1 else _bits(self._map[first : first + pages])

    def stored(self, first: int, pages: int) -> int:
        """Return the pages with a copy in the store, as bits."""
        return self.dirty(first + self._pages, pages)

    def in_doubt(self, first: int, pages: int) -> int:
        """Return the pages, as bits, whose near memory may be wrong."""
        return self.dirty(first + 2 * self._pages, pages)

    def set_dirty(self, first: int, pages: int, value: bool) -> None:
        self._map[first : first + pages] = (b"\1" if value else b"\0") * pages

    def set_stored(self, first: int, pages: int, value: bool) -> None:
        self.set_dirty(first + self._pages, pages, value)

    def set_in_doubt(self, first: int, pages: int, value: bool) -> None:
        self.set_dirty(first + 2 * self._pages, pages, value)


class SampledPages:
    """Copies of up to ``slots`` sampled pages.

    Near memory of a sampled page is given back, so that its next use is a fault; the copy saves
    reading it from the store. The slot is filled and entered in the table before near memory is
    given back, and freed when the page is near again or stored. So at any moment each page is whole
    in one place, and near memory, where it exists, is the newer.

    Why not keep the memory and only unmap it? MADV_PAGEOUT does that to another process, but
    interrupts every core the program has run on for each 4 KB; punching a hole does so once (374 µs
    against 95 for 64 KB while the program runs, in one measurement).
    """

    def __init__(self, fd: int, page: int, slots: int):
        self._page, self._begin = page, _table_size(slots)
        self._map = mmap.mmap(fd, self._begin + slots * page)
        self._view = memoryview(self._map)
        self._address = ctypes.addressof(ctypes.c_char.from_buffer(self._map))
        entries = (_ENTRY.unpack_from(self._map, slot * _ENTRY.size)[0] for slot in range(slots))
        # a pager that died may have left some
        self._slot = {number - 1: slot for slot, number in enumerate(entries) if number}
        taken = set(self._slot.values())
        self._free = [slot for slot in reversed(range(slots)) if slot not in taken]

    @staticmethod
    def create(page: int, slots: int) -> int:
        """Return a descriptor of an empty file."""
        fd = os.memfd_create("tidegate-sampled", os.MFD_CLOEXEC)
        os.ftruncate(fd, _table_size(slots) + slots * page)
        return fd

    def __contains__(self, number: int) -> bool:
        return number in self._slot

    def pages(self) -> list[int]:
        """Return the numbers of all pages that have a copy."""
        return list(self._slot)

    def put(self, number: int, memory: int) -> None:
        """Copy this page of near memory, which is write-protected; then its memory may go."""
        slot = self._free.pop()
        at = self._begin + slot * self._page
        got = os.preadv(memory, [self._view[at : at + self._page]], number * self._page)
        if got != self._page:
            raise OSError(
                errno.EIO, f"only {got} of {self._page} bytes of near memory could be read"
            )
        _ENTRY.pack_into(self._map, slot * _ENTRY.size, number + 1)  # the copy is valid from here
        self._slot[number] = slot

    def get(self, number: int) -> tuple[memoryview, int]:
        """Return the page's bytes and their address."""
        at = self._begin + self._slot[number] * self._page
        return self._view[at : at + self._page], self._address + at

    def remove(self, number: int) -> None:
        """Free the page's slot, if it has one: the page is near again, stored or dropped."""
        slot = self._slot.pop(number, None)
        if slot is not None:
            _ENTRY.pack_into(self._map, slot * _ENTRY.size, 0)
            self._free.append(slot)


def _bits(flags: bytes) -> int:
    return int(flags[::-1].translate(_DIGITS), 2) if 1 in flags else 0


def _table_size(slots: int) -> int:
    return -(-slots * _ENTRY.size // _ALIGN) * _ALIGN
