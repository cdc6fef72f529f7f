"""The middle tier: pages compressed (lz4) in memory that outlives the pager, with a budget of its
own.

    file   ┌ table: for each page where its data begin, how long they are, whether the store's copy is older, and since when
           └ data, in units of 4 KB

The supervisor holds the file. A page's data are written before its entry, and the entry goes when
the page is near again; so whatever moment a pager dies in, each page is whole in one place at
least, and near memory, if it is there, is the newest.
"""

from __future__ import annotations

import mmap
import os
import struct
import threading
from collections.abc import Iterator

import lz4.block

from tidegate.errors import TidegateError
from tidegate.live.arena.space import Space

UNIT = 4096
SLACK = 16  # pages that are coming near keep their data until they are there, beside the budget
# first unit + 1, or 0 for none; length in bytes, and _OLDER; its number in time
_ENTRY = struct.Struct("=IIQ")
_OLDER = 1 << 31  # the store's copy is older, or there is none


class Middle:
    """Compressed pages. Any thread may ask."""

    def __init__(self, fd: int, pages: int, page: int, budget: int):
        self._fd, self._page, self.budget = fd, page, budget // UNIT
        self._begin = _table_size(pages)
        self._units = self.budget + SLACK * -(-page // UNIT)
        self._map = mmap.mmap(fd, self._begin + self._units * UNIT)
        self._space = Space(self._units)
        # page: first unit, length, the store's copy is older
        self._where: dict[int, tuple[int, int, bool]] = {}
        self._lock = threading.Lock()
        self._time = 0

    @staticmethod
    def create(pages: int, page: int, budget: int) -> int:
        """A descriptor of an empty middle."""
        fd = os.memfd_create("tidegate-middle", os.MFD_CLOEXEC)
        os.ftruncate(fd, _table_size(pages) + (budget // UNIT + SLACK * -(-page // UNIT)) * UNIT)
        return fd

    def __contains__(self, number: int) -> bool:
        return number in self._where

    def units(self, number: int) -> int:
        """How much room a page takes."""
        return -(-self._where[number][1] // UNIT)

    def is_newer(self, number: int) -> bool:
        """Is the store's copy older?"""
        return self._where[number][2]

    @staticmethod
    def pack(data: memoryview) -> bytes:
        """A page as it is kept: compressed, or as it is if that is no longer."""
        packed: bytes = lz4.block.compress(data, store_size=False)
        return packed if len(packed) < len(data) else bytes(data)

    def put(self, number: int, packed: bytes, newer: bool) -> bool:
        """Keep a page; False if there is no room, which can be only while many others are on their
        way out.
        """
        with self._lock:
            try:
                first = self._space.take(-(-len(packed) // UNIT))
            except TidegateError:
                return False
            at = self._begin + first * UNIT
            self._map[at : at + len(packed)] = packed
            self._time += 1
            entry = _ENTRY.pack(first + 1, len(packed) | (_OLDER if newer else 0), self._time)
            where = number * _ENTRY.size
            self._map[where + 4 : where + _ENTRY.size] = entry[4:]
            self._map[where : where + 4] = entry[:4]  # from here on it counts
            self._where[number] = first, len(packed), newer
            return True

    def get(self, number: int, into: memoryview) -> None:
        """The page's bytes."""
        first, length, _ = self._where[number]
        at = self._begin + first * UNIT
        packed = memoryview(self._map)[at : at + length]
        into[: self._page] = (
            packed
            if length == self._page
            else lz4.block.decompress(packed, uncompressed_size=self._page)
        )

    def stored(self, number: int) -> None:
        """The store has this page now, too."""
        first, length, _ = self._where[number]
        self._where[number] = first, length, False
        where = number * _ENTRY.size + 4
        self._map[where : where + 4] = struct.pack("=I", length)

    def remove(self, number: int) -> None:
        """The page is somewhere else, or nobody's."""
        with self._lock:
            if (found := self._where.pop(number, None)) is not None:
                where = number * _ENTRY.size
                self._map[where : where + 4] = bytes(4)
                self._space.give_back(found[0], -(-found[1] // UNIT))

    def recover(self, first_page: int, pages: int) -> None:
        """Find what a pager that died has kept of these pages."""
        # reading a hole so makes no memory
        table = os.pread(self._fd, pages * _ENTRY.size, first_page * _ENTRY.size)
        for i, (unit, length, time) in enumerate(_ENTRY.iter_unpack(table)):
            if unit:
                size = length & ~_OLDER
                self._space.take_at(unit - 1, -(-size // UNIT))
                self._where[first_page + i] = unit - 1, size, bool(length & _OLDER)
                self._time = max(self._time, time)

    def oldest_first(self) -> Iterator[int]:
        """All pages, by when they came."""
        time_of = {
            n: _ENTRY.unpack(self._map[n * _ENTRY.size : (n + 1) * _ENTRY.size])[2]
            for n in self._where
        }
        yield from sorted(time_of, key=time_of.__getitem__)


def _table_size(pages: int) -> int:
    return -(-pages * _ENTRY.size // UNIT) * UNIT
