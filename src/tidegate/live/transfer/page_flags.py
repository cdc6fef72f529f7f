"""What must outlive a pager that dies: which pages are dirty and which have a copy in the store;
one byte each.

A page's dirty byte is set before the first write is let through, and cleared only when its copy is
in the store and its memory given back. So whatever moment a pager dies in, its successor loses
nothing.
"""

from __future__ import annotations

import mmap
import os

_DIGITS = bytes.maketrans(b"\0\1", b"01")


class Kept:
    """The two maps, in memory that all of an arena's processes share."""

    def __init__(self, fd: int, pages: int):
        self._map = mmap.mmap(fd, 2 * pages)
        self._pages = pages

    @staticmethod
    def create(pages: int) -> int:
        """A descriptor of new maps: nothing dirty, nothing stored."""
        fd = os.memfd_create("tidegate-kept", os.MFD_CLOEXEC)
        os.ftruncate(fd, 2 * pages)
        return fd

    def dirty(self, first: int, pages: int) -> int:
        """The dirty ones among these pages, as bits."""
        return self._map[first] if pages == 1 else _bits(self._map[first : first + pages])

    def stored(self, first: int, pages: int) -> int:
        """Those with a copy in the store, as bits."""
        first += self._pages
        return self._map[first] if pages == 1 else _bits(self._map[first : first + pages])

    def set_dirty(self, first: int, pages: int, value: bool) -> None:
        self._map[first : first + pages] = (b"\1" if value else b"\0") * pages

    def set_stored(self, first: int, pages: int, value: bool) -> None:
        first += self._pages
        self._map[first : first + pages] = (b"\1" if value else b"\0") * pages


def _bits(flags: bytes) -> int:
    if 1 not in flags:
        return 0
    return int(flags[::-1].translate(_DIGITS), 2)
