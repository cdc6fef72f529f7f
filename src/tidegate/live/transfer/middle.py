"""The middle tier: pages compressed (lz4) in memory that outlives the pager, within a budget.

    file   ┌ table: per page, first unit, length, whether the store's copy is older, and its time
           └ data, in units of 4 KB

The supervisor holds the file. A page's data are written before its entry, and the entry is removed
when the page is near again. So at any moment each page is whole in one place at least, and near
memory, where it exists, is the newest.
"""

from __future__ import annotations

import mmap
import os
import struct
import threading
from collections.abc import Iterator

import lz4.block

from tidegate.errors import TidegateError
from tidegate.live.arena.free_runs import FreeRuns

UNIT = 4096
SLACK = 16  # pages beside the budget: a page that is loaded keeps its data until it is near
# first unit + 1, or 0 for none; length in bytes, and _OLDER; when it came, as a count of pages
_ENTRY = struct.Struct("=IIQ")
_OLDER = 1 << 31  # the store's copy is older, or there is none


class Middle:
    """Compressed pages. Any thread may call."""

    def __init__(self, fd: int, pages: int, page: int, budget: int):
        self._fd, self._page, self.budget = fd, page, budget // UNIT
        self._begin = _table_size(pages)
        units = self.budget + SLACK * -(-page // UNIT)
        self._map = mmap.mmap(fd, self._begin + units * UNIT)
        self._free = FreeRuns(units)
        # by page: first unit, length, whether the store's copy is older
        self._where: dict[int, tuple[int, int, bool]] = {}
        self._lock = threading.Lock()
        self._time = 0

    @staticmethod
    def create(pages: int, page: int, budget: int) -> int:
        """Return a descriptor of an empty middle tier."""
        fd = os.memfd_create("tidegate-middle", os.MFD_CLOEXEC)
        os.ftruncate(fd, _table_size(pages) + (budget // UNIT + SLACK * -(-page // UNIT)) * UNIT)
        return fd

    def __contains__(self, number: int) -> bool:
        return number in self._where

    def units(self, number: int) -> int:
        """Return the units that a page takes."""
        return -(-self._where[number][1] // UNIT)

    def is_newer(self, number: int) -> bool:
        """Return whether the store's copy is older."""
        return self._where[number][2]

    @staticmethod
    def pack(data: memoryview) -> bytes:
        """Compress a page; return it as it is if that is not shorter."""
        packed: bytes = lz4.block.compress(data, store_size=False)
        return packed if len(packed) < len(data) else bytes(data)

    def put(self, number: int, packed: bytes, newer: bool) -> bool:
        """Keep a page. Return False if there is no room, which is rare: see SLACK."""
        with self._lock:
            try:
                first = self._free.take(-(-len(packed) // UNIT))
            except TidegateError:
                return False
            at = self._begin + first * UNIT
            self._map[at : at + len(packed)] = packed
            self._time += 1
            entry = _ENTRY.pack(first + 1, len(packed) | (_OLDER if newer else 0), self._time)
            where = number * _ENTRY.size
            self._map[where + 4 : where + _ENTRY.size] = entry[4:]
            self._map[where : where + 4] = entry[:4]  # the entry is valid from here
            self._where[number] = first, len(packed), newer
            return True

    def get(self, number: int, into: memoryview) -> None:
        """Copy the page's bytes to ``into``."""
        first, length, _ = self._where[number]
        at = self._begin + first * UNIT
        data = memoryview(self._map)[at : at + length]
        if length < self._page:
            data = lz4.block.decompress(data, uncompressed_size=self._page)
        into[: self._page] = data

    def note_stored(self, number: int) -> None:
        """Note that the store has this page's bytes, too."""
        first, length, _ = self._where[number]
        self._where[number] = first, length, False
        where = number * _ENTRY.size + 4
        self._map[where : where + 4] = struct.pack("=I", length)

    def remove(self, number: int) -> None:
        """Remove a page, if it is here: it is near, in the store, or its object is gone."""
        with self._lock:
            if (found := self._where.pop(number, None)) is not None:
                where = number * _ENTRY.size
                self._map[where : where + 4] = bytes(4)
                self._free.give_back(found[0], -(-found[1] // UNIT))

    def recover(self, first_page: int, pages: int) -> None:
        """Find the pages, among these, that a pager that died has kept."""
        # pread of a hole allocates no memory
        table = os.pread(self._fd, pages * _ENTRY.size, first_page * _ENTRY.size)
        for i, (unit, length, time) in enumerate(_ENTRY.iter_unpack(table)):
            if unit:
                size = length & ~_OLDER
                self._free.take_at(unit - 1, -(-size // UNIT))
                self._where[first_page + i] = unit - 1, size, bool(length & _OLDER)
                self._time = max(self._time, time)

    def oldest_first(self) -> Iterator[int]:
        """Return all pages, by when they came."""
        time_of = {n: _ENTRY.unpack_from(self._map, n * _ENTRY.size)[2] for n in self._where}
        yield from sorted(time_of, key=time_of.__getitem__)


def _table_size(pages: int) -> int:
    return -(-pages * _ENTRY.size // UNIT) * UNIT
