"""The carrier: moves bytes of pages between near memory, the middle tier and the store.

    load_run   store or middle ──▶ buffer ──▶ near, write-protected, so that a first write faults
    load_region  the same for a whole region, into a huge page
    evict_now  protect ──▶ near ──▶ buffer ──▶ store ──▶ punch near memory ──▶ wake blocked writers

The mover (mover.py) decides which pages and when, and keeps the books. Any thread may call.
"""

from __future__ import annotations

import errno
import os
import sys
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass
from typing import NamedTuple

from tidegate.live.arena.setup import ArenaSetup
from tidegate.live.pager.calls import PolicyCalls
from tidegate.live.pager.policies import make_tiering
from tidegate.live.pager.regions import runs, span
from tidegate.live.pager.tier_placement import LiveTiers
from tidegate.live.transfer.middle import UNIT, Middle
from tidegate.live.transfer.page_state import SLOTS, PageFlags, SampledPages
from tidegate.live.transfer.store import Backing, Buffer, EarlyRegion, PageReadAhead
from tidegate.live.transfer.userfault import Userfault, punch
from tidegate.trace.geometry import Geometry

# bytes a thread moves at a time: two threads share a region of 2 MB; handing over costs time, too
CHUNK = 1024 * 1024
INLINE = 128 * 1024  # moves of up to so many bytes are made at once, in the calling thread


class StoreError(OSError):
    """The store could not be written."""


@dataclass(frozen=True)
class ArenaMemory:
    """The memory of an arena, the state of its pages, and its middle tier if there is one."""

    base: int  # the first address
    geometry: Geometry
    userfault: Userfault
    file: int  # the memory file that is mapped at base
    flags: PageFlags
    copies: SampledPages
    tiers: LiveTiers | None
    middle: Middle | None
    huge: bool = False  # whole regions are written to the memory file, and nothing else

    @classmethod
    def of(cls, setup: ArenaSetup, calls: PolicyCalls) -> ArenaMemory:
        """Open the memory of an arena in the pager."""
        geometry, tiers, middle = Geometry(setup.page, setup.region), None, None
        if setup.middle >= 0:
            middle = Middle(setup.middle, setup.pages, setup.page, setup.middle_bytes)
            near_pages, units = setup.frames * geometry.pages_per_region, -(-setup.page // UNIT)
            with calls.of("tiering", "__init__"):
                policy = make_tiering(setup)
            tiers = LiveTiers(policy, near_pages, units, middle.budget, calls)
        return cls(
            setup.base,
            geometry,
            Userfault(setup.uffd, setup.can_poison, setup.pidfd),
            setup.memory,
            PageFlags(setup.flags, setup.pages),
            SampledPages(setup.copies, setup.page, SLOTS),
            tiers,
            middle,
            setup.huge,
        )


class Load(NamedTuple):
    """One load: the region, pages to map writable, pages not to map, and what it waits for.

    ``unmapped`` pages are put in memory but not mapped, so that their first use is noticed.
    """

    region: int
    writable: int
    unmapped: int
    after: Sequence[Future[None]] = ()
    early: EarlyRegion | None = None


class Carrier:
    """Moves the bytes of one arena."""

    def __init__(self, memory: ArenaMemory):
        self._tiers, self._middle, geometry = memory.tiers, memory.middle, memory.geometry
        self._base, self._page, self._ppr = memory.base, geometry.page, geometry.pages_per_region
        self._userfault, self._memory, self._flags = memory.userfault, memory.file, memory.flags
        self._chunk = max(1, CHUNK // geometry.page)
        self._buffers = threading.local()
        self._buffer_size = geometry.region if memory.huge else max(CHUNK, geometry.page)
        self._zeros = Buffer(self._buffer_size)
        self.page_reads = PageReadAhead(geometry.page)
        self.reads_pages_early = self.page_reads.works and geometry.page <= INLINE
        # by region: its object's backing, and where in the object it begins
        self.backing: dict[int, tuple[Backing, int]] = {}
        self.unreadable: set[int] = set()  # pages whose use is a SIGBUS
        self.bytes_out = 0

    # Into near memory

    def load_run(self, load: Load, first: int, n: int) -> None:
        """Read ``n`` pages and put them in place, once the evictions of ``load.after`` are done."""
        number = load.region * self._ppr + first
        if self._middle is not None:
            inside = sum(1 << first + i for i in range(n) if number + i in self._middle)
            if inside:
                self._load_through_middle(load, first, n, inside)
                return
        stored = self._flags.stored(number, n) << first
        for start, count in ((first, 1),) if n == 1 else self._split(first, n, stored):
            data = self._read(load, start, count, bool(stored >> start & 1), alone=n == 1)
            if data is None:
                continue
            view, address = data
            if load.after:
                wait(load.after)
            if count == 1 and not load.unmapped >> start & 1:
                to = self._base + (load.region * self._ppr + start) * self._page
                self._userfault.copy(to, address, self._page, not load.writable >> start & 1)
            else:
                self._place(load, start, count, view, address)

    def load_region(self, load: Load) -> None:
        """Read a whole region, of which nothing is near, and put it in place by one write."""
        number, size = load.region * self._ppr, self._ppr * self._page
        data = self._read_region(load, self._flags.stored(number, self._ppr))
        if data is None:
            self.load_run(load, 0, self._ppr)  # some of it can be read
            return
        if load.after:
            wait(load.after)
        self._flags.set_in_doubt(number, self._ppr, True)
        done = 0
        while done < size:
            done += os.pwrite(self._memory, data[done:size], number * self._page + done)
        self._flags.set_in_doubt(number, self._ppr, False)
        mapped = span(0, self._ppr) & ~load.unmapped
        for protect, pages in ((True, mapped & ~load.writable), (False, mapped & load.writable)):
            for first, n in runs(pages):
                self._userfault.map_again(self.address(load.region, first), n * self._page, protect)
        for first, n in runs(load.unmapped):  # who waits for another page of it tries again
            self._userfault.wake(self.address(load.region, first), n * self._page)

    def _read_region(self, load: Load, stored: int) -> memoryview | None:
        """Return the bytes of a region; None if they cannot be read."""
        if not stored:
            return self._zeros.view
        whole = span(0, self._ppr)
        early = load.early.take(0, self._ppr) if load.early is not None else None
        if early is not None and stored == whole:
            return early[0]
        view, (backing, at) = self._own_buffer().view, self.backing[load.region]
        try:
            backing.read(at, view)
        except OSError:
            return None
        for first, n in runs(whole & ~stored):
            view[first * self._page : (first + n) * self._page] = bytes(n * self._page)
        return view

    def _read(
        self, load: Load, first: int, n: int, stored: bool, alone: bool
    ) -> tuple[memoryview, int] | None:
        """Return the bytes of these pages and their address; None if they cannot be read."""
        if alone and self.reads_pages_early:
            early = self.page_reads.take(load.region * self._ppr + first)
            if early is not None:
                return early
        if not stored:
            return self._zeros.view, self._zeros.address
        if load.early is not None and (found := load.early.take(first, n)) is not None:
            return found
        buffer, (backing, at) = self._own_buffer(), self.backing[load.region]
        try:
            backing.read(at + first * self._page, buffer.view[: n * self._page])
        except OSError as error:
            self._poison(load.region, first, n, error)
            return None
        return buffer.view, buffer.address

    def _place(self, load: Load, first: int, n: int, data: memoryview, source: int) -> None:
        mask, region = span(first, first + n), load.region
        for start, count in runs(load.unmapped & mask):
            offset, size = (start - first) * self._page, count * self._page
            at = (region * self._ppr + start) * self._page
            os.pwrite(self._memory, data[offset : offset + size], at)
            self._userfault.wake(self.address(region, start), size)
        mapped = mask & ~load.unmapped
        for protect, pages in ((True, mapped & ~load.writable), (False, mapped & load.writable)):
            for start, count in runs(pages):
                at = source + (start - first) * self._page
                to = self.address(region, start)
                self._userfault.copy(to, at, count * self._page, protect)

    def _poison(self, region: int, first: int, n: int, error: OSError) -> None:
        """Make each use of these pages a SIGBUS: bytes that cannot be read must not be zeros."""
        print(
            f"tidegate: the store cannot be read: {error.strerror}; "
            f"using these {n} pages ends the program with SIGBUS",
            file=sys.stderr,
            flush=True,
        )
        number = region * self._ppr + first
        self.unreadable.update(range(number, number + n))
        self._userfault.poison(self.address(region, first), n * self._page)
        self._userfault.wake(self.address(region, first), n * self._page)

    # Out of near memory

    def evict_now(self, region: int, pages: int, dirty: int) -> None:
        """Write the dirty pages back and give the memory of all these pages back."""
        for first, n in self.parts(dirty):
            self.write_back(region, first, n, protect=True)
        for first, n in runs(pages):
            punch(self._memory, (region * self._ppr + first) * self._page, n * self._page)
            self._flags.set_dirty(region * self._ppr + first, n, False)
            self._userfault.wake(self.address(region, first), n * self._page)

    def write_back(self, region: int, first: int, n: int, protect: bool) -> None:
        """Copy near pages to the store."""
        number, size = region * self._ppr + first, n * self._page
        view = self._own_buffer().view[:size]
        if protect:
            self._userfault.protect(self.address(region, first), size)
        self._read_near(number, view)
        self.write_store(region, first, view)
        self._flags.set_stored(number, n, True)

    def _read_near(self, number: int, into: memoryview) -> None:
        got = os.preadv(self._memory, [into], number * self._page)
        if got != len(into):
            raise StoreError(
                errno.EIO, f"only {got} of {len(into)} bytes of near memory could be read"
            )

    def write_store(self, region: int, first: int, data: memoryview) -> None:
        """Write pages to the store from page ``first`` on."""
        backing, at = self.backing[region]
        try:
            backing.write(at + first * self._page, data)
        except OSError as error:
            said = f"{backing.name}: the store cannot be written: {error.strerror}"
            raise StoreError(error.errno, said) from error

    # The middle tier

    def _load_through_middle(self, load: Load, first: int, n: int, inside: int) -> None:
        """Load pages of which some are in the middle tier."""
        for page, count in runs(inside):
            for i in range(page, page + count):
                self._from_middle(load, i)
        for start, count in runs(span(first, first + n) & ~inside):
            # early reads are of regions without pages in the middle
            self.load_run(load, start, count)

    def _from_middle(self, load: Load, page: int) -> None:
        """Put a page near, then remove it from the middle: at any moment it is whole in one."""
        assert self._middle is not None
        buffer, number = self._own_buffer(), load.region * self._ppr + page
        self._middle.get(number, buffer.view)
        if self._middle.is_newer(number):
            self._flags.set_dirty(number, 1, True)
        if load.after:
            wait(load.after)
        self._place(load, page, 1, buffer.view, buffer.address)
        self._middle.remove(number)

    def to_middle(self, region: int, page: int, dirty: bool) -> bool:
        """Move a page from near memory to the middle; return False if there is no room."""
        assert self._middle is not None
        assert self._tiers is not None
        number, address = region * self._ppr + page, self.address(region, page)
        view = self._own_buffer().view[: self._page]
        if dirty:
            self._userfault.protect(address, self._page)
        self._read_near(number, view)
        packed = self._middle.pack(view)
        units = -(-len(packed) // UNIT)
        has_room = self._tiers.make_room(units, self._spill)
        if not has_room or not self._middle.put(number, packed, dirty):
            return False
        self._tiers.note_placed(number, units)
        punch(self._memory, number * self._page, self._page)
        self._flags.set_dirty(number, 1, False)
        self._userfault.wake(address, self._page)
        return True

    def _spill(self, number: int) -> None:
        """Move a page from the middle to the store."""
        assert self._middle is not None
        if self._middle.is_newer(number):
            self.store_from_middle(number)
        self._middle.remove(number)

    def store_from_middle(self, number: int) -> None:
        """Copy a page of the middle to the store."""
        assert self._middle is not None
        view = self._own_buffer().view[: self._page]
        self._middle.get(number, view)
        self.write_store(number // self._ppr, number % self._ppr, view)
        self._flags.set_stored(number, 1, True)
        self._middle.note_stored(number)
        self.bytes_out += self._page

    # Where

    def address(self, region: int, page: int) -> int:
        """Return the address of a page in the program."""
        return self._base + (region * self._ppr + page) * self._page

    def parts(self, pages: int) -> Iterator[tuple[int, int]]:
        """Return runs of these pages as (first, how many), of CHUNK bytes at most."""
        for first, n in runs(pages):
            for i in range(first, first + n, self._chunk):
                yield i, min(self._chunk, first + n - i)

    def _split(self, first: int, n: int, stored: int) -> Iterator[tuple[int, int]]:
        """Return parts of this run in which all pages are stored, or none."""
        whole = span(first, first + n)
        yield from self.parts(whole & stored)
        yield from self.parts(whole & ~stored)

    def _own_buffer(self) -> Buffer:
        """Return this thread's buffer."""
        if not hasattr(self._buffers, "own"):
            self._buffers.own = Buffer(self._buffer_size)
        return self._buffers.own  # type: ignore[no-any-return]
