"""The carrier: bytes of pages between near memory, the middle tier and the store; in whatever
thread it is called.

    load_run   store or middle ──▶ buffer ──▶ near, write-protected, so that the first write is noticed
    evict_now  protect ──▶ near ──▶ buffer ──▶ store ──▶ punch near memory ──▶ wake who tried to write meanwhile

Which pages, and when, the mover says (mover.py), which also keeps the books.
"""

from __future__ import annotations

import errno
import os
import sys
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, wait

from tidegate.live.pager.page_bits import runs, span
from tidegate.live.pager.tier_placement import LiveTiers
from tidegate.live.transfer.buffer import Buffer
from tidegate.live.transfer.middle import UNIT, Middle
from tidegate.live.transfer.page_flags import Kept
from tidegate.live.transfer.read_ahead import ReadAhead
from tidegate.live.transfer.store import Backing
from tidegate.live.transfer.stream import Early
from tidegate.live.transfer.userfault import Userfault, punch
from tidegate.trace.geometry import Geometry

# bytes a thread moves at a time: two are busy with one region of 2 MB, and handing over costs, too
CHUNK = 1024 * 1024
INLINE = 128 * 1024  # moves of no more than this are done at once


class StoreError(OSError):
    """The far tier failed while something was to be written there."""


class Carrier:
    """Carries the bytes of one arena."""

    def __init__(
        self,
        base: int,
        geometry: Geometry,
        userfault: Userfault,
        memory: int,
        kept: Kept,
        tiers: LiveTiers | None,
        middle: Middle | None,
    ):
        self._tiers, self._middle = tiers, middle
        self._base, self._page, self._ppr = base, geometry.page, geometry.pages_per_region
        self._userfault, self._memory, self._kept = userfault, memory, kept
        self._chunk = max(1, CHUNK // geometry.page)
        self._buffers = threading.local()
        self._buffer_size = max(CHUNK, geometry.page)
        self._zeros = Buffer(self._buffer_size)
        self.ahead = ReadAhead(geometry.page)
        self.reads_ahead = self.ahead.works and geometry.page <= INLINE
        # of each region, and where in the object it begins
        self.backing: dict[int, tuple[Backing, int]] = {}
        self.unreadable: set[int] = set()  # pages whose use is a SIGBUS
        self.bytes_out = 0

    def load_run(
        self,
        region: int,
        first: int,
        n: int,
        writes: int,
        quiet: int,
        after: Sequence[Future[None]],
        begun: Early | None = None,
    ) -> None:
        """Read pages and put them in place, once what leaves has made room."""
        number = region * self._ppr + first
        backing, at = self.backing[region]
        own = self._own_buffer()
        stored = self._kept.stored(number, n) << first
        if self._middle is not None and (
            inside := [i for i in range(n) if number + i in self._middle]
        ):
            for i in inside:
                self._from_middle(region, first + i, writes, quiet, after)
            for start, count in runs(span(first, first + n) & ~sum(1 << first + i for i in inside)):
                self.load_run(region, start, count, writes, quiet, after)
            return
        for start, count in ((first, 1),) if n == 1 else _split(first, n, stored, self._chunk):
            size = count * self._page
            early = self.ahead.take(number) if n == 1 and self.reads_ahead else None
            if early is not None:
                data, source = early
            elif (
                stored >> start & 1
                and begun is not None
                and (found := begun.take(start, count)) is not None
            ):
                data, source = found
            elif stored >> start & 1:
                try:
                    backing.read(at + start * self._page, own.view[:size])
                except OSError as error:
                    self._poison(region, start, count, error)
                    continue
                source, data = own.address, own.view
            else:
                source, data = self._zeros.address, self._zeros.view
            if after:
                wait(after)
            if count == 1 and not quiet >> start & 1:
                to = self._base + (region * self._ppr + start) * self._page
                self._userfault.copy(to, source, size, not writes >> start & 1)
            else:
                self._place(region, start, count, source, data, writes, quiet)

    def _place(
        self,
        region: int,
        first: int,
        n: int,
        source: int,
        data: memoryview,
        writes: int,
        quiet: int,
    ) -> None:
        mask = span(first, first + n)
        quiet &= mask  # there, but not mapped: their first use shows
        for start, count in runs(quiet):
            offset = (start - first) * self._page
            os.pwrite(
                self._memory,
                data[offset : offset + count * self._page],
                (region * self._ppr + start) * self._page,
            )
            self._userfault.wake(self.address(region, start), count * self._page)
        for protect, pages in ((True, mask & ~writes & ~quiet), (False, mask & writes & ~quiet)):
            for start, count in runs(pages):
                offset = (start - first) * self._page
                self._userfault.copy(
                    self.address(region, start), source + offset, count * self._page, protect
                )

    def _poison(self, region: int, first: int, n: int, error: OSError) -> None:
        """What cannot be read must not look like zeros: its use is a SIGBUS."""
        print(
            f"tidegate: the store cannot be read: {error.strerror}; using these {n} pages ends the program with SIGBUS",
            file=sys.stderr,
            flush=True,
        )
        self.unreadable.update(range(region * self._ppr + first, region * self._ppr + first + n))
        self._userfault.poison(self.address(region, first), n * self._page)
        self._userfault.wake(self.address(region, first), n * self._page)

    # Out of near memory

    def evict_now(self, region: int, pages: int, dirty: int) -> None:
        for first, n in self.parts(dirty):
            self.write_back(region, first, n, protect=True)
        for first, n in runs(pages):
            punch(self._memory, (region * self._ppr + first) * self._page, n * self._page)
            self._kept.set_dirty(region * self._ppr + first, n, False)
            self._userfault.wake(self.address(region, first), n * self._page)

    def write_back(self, region: int, first: int, n: int, protect: bool) -> None:
        view = self._own_buffer().view
        number, size = region * self._ppr + first, n * self._page
        if protect:
            self._userfault.protect(self.address(region, first), size)
        self._read_near(number, view[:size])
        self.write_store(region, first, view[:size])
        self._kept.set_stored(number, n, True)

    def _read_near(self, number: int, into: memoryview) -> None:
        got = os.preadv(self._memory, [into], number * self._page)
        if got != len(into):
            raise StoreError(
                errno.EIO, f"only {got} of {len(into)} bytes of near memory could be read"
            )

    def write_store(self, region: int, first: int, data: memoryview) -> None:
        backing, at = self.backing[region]
        try:
            backing.write(at + first * self._page, data)
        except OSError as error:
            raise StoreError(
                error.errno, f"the store cannot be written: {error.strerror}"
            ) from error

    # The middle tier

    def _from_middle(
        self, region: int, page: int, writes: int, quiet: int, after: Sequence[Future[None]]
    ) -> None:
        """Near first, then no longer in the middle: it is whole in one of them, whenever we die."""
        assert self._middle is not None
        own = self._own_buffer()
        number = region * self._ppr + page
        self._middle.get(number, own.view)
        if self._middle.is_newer(number):
            self._kept.set_dirty(number, 1, True)
        if after:
            wait(after)
        self._place(region, page, 1, own.address, own.view, writes, quiet)
        self._middle.remove(number)

    def to_middle(self, region: int, page: int, dirty: bool) -> bool:
        """A page leaves for the middle, if it can have room there."""
        assert self._middle is not None
        assert self._tiers is not None
        number, address = region * self._ppr + page, self.address(region, page)
        view = self._own_buffer().view[: self._page]
        if dirty:
            self._userfault.protect(address, self._page)
        self._read_near(number, view)
        packed = self._middle.pack(view)
        units = -(-len(packed) // UNIT)
        if not self._tiers.make_room(units, self._spill) or not self._middle.put(
            number, packed, dirty
        ):
            return False
        self._tiers.went(number, units)
        punch(self._memory, number * self._page, self._page)
        self._kept.set_dirty(number, 1, False)
        self._userfault.wake(address, self._page)
        return True

    def _spill(self, number: int) -> None:
        """A page leaves the middle for the store."""
        assert self._middle is not None
        if self._middle.is_newer(number):
            self.store_from_middle(number)
        self._middle.remove(number)

    def store_from_middle(self, number: int) -> None:
        assert self._middle is not None
        view = self._own_buffer().view[: self._page]
        self._middle.get(number, view)
        self.write_store(number // self._ppr, number % self._ppr, view)
        self._kept.set_stored(number, 1, True)
        self._middle.stored(number)
        self.bytes_out += self._page

    # Where

    def address(self, region: int, page: int) -> int:
        return self._base + (region * self._ppr + page) * self._page

    def parts(self, pages: int) -> Iterator[tuple[int, int]]:
        for first, n in runs(pages):
            for i in range(first, first + n, self._chunk):
                yield i, min(self._chunk, first + n - i)

    def _own_buffer(self) -> Buffer:
        if not hasattr(self._buffers, "own"):
            self._buffers.own = Buffer(self._buffer_size)
        return self._buffers.own  # type: ignore[no-any-return]


def _split(first: int, n: int, stored: int, most: int) -> Iterator[tuple[int, int]]:
    """Runs of pages that are all stored or all not."""
    for mask in (stored & span(first, first + n), ~stored & span(first, first + n)):
        for start, count in runs(mask):
            for i in range(start, start + count, most):
                yield i, min(most, start + count - i)
