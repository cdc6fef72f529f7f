"""The mover: moves pages between the arena's memory and its store, without losing a write.

    load     once evictions have made room; the next region of a stream is read meanwhile
    evict    dirty pages go to the store first
    sample   near page ──▶ copy (page_state.py) ──▶ punch near memory: its next use is a fault
    restore  copy ──▶ near

The mover keeps the books: which page is where, and which move waits for which. The carrier
(carrier.py) moves the bytes. Large moves go to a few threads, so that reads overlap writes. A
single page is moved at once: handing it over would take longer.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import partial

from tidegate.live.pager.regions import bits, runs, span
from tidegate.live.transfer.carrier import INLINE, ArenaMemory, Carrier, Load
from tidegate.live.transfer.store import RegionReadAhead
from tidegate.live.transfer.streams import Streams
from tidegate.live.transfer.userfault import SMALL_PAGE, data_pages, punch

WORKERS = 4
# after so many sampled pages without a use, clean ones are not copied; a use reads the store
UNUSED_SAMPLES = 64
# if pages read early alone come with others, no page is read early for so many faults
EARLY_READ_PAUSE = 256
WRITTEN_IN_A_ROW = 2  # pages that make a walk which writes


class LiveMover:
    """Moves the pages of one arena. Sets of a region's pages are the bits of an integer."""

    def __init__(self, memory: ArenaMemory, track_touches: bool):
        self._tiers, self._middle, geometry = memory.tiers, memory.middle, memory.geometry
        self._page, self._ppr = geometry.page, geometry.pages_per_region
        self._userfault, self._memory, self._flags = memory.userfault, memory.file, memory.flags
        self._copies, self._track_touches = memory.copies, track_touches
        self._huge = memory.huge  # whole regions are loaded as huge pages
        self._solid: set[int] = set()  # such regions, of which no part may be punched alone
        self._unmapped: dict[int, int] = {}  # of these, unmapped ones, and their sampled pages
        self._carrier = Carrier(memory)
        self._address, self._page_reads = self._carrier.address, self._carrier.page_reads
        self._pool = ThreadPoolExecutor(WORKERS, "mover")
        self._region_reads = RegionReadAhead(geometry.page, self._ppr)
        self._early_read_pause = 0  # faults until pages are read early again
        self.backing = self._carrier.backing
        # by region: pages whose memory is there, touched ones, those that a blocked thread will
        # write to, and sampled ones that have a copy
        self.present: dict[int, int] = {}
        self._touched: dict[int, int] = {}
        self._to_write: dict[int, int] = {}
        self._copied: dict[int, int] = {}
        self._streams = Streams(self._region_reads, self.present, self._read_region_early)
        self._unused_samples = 0  # pages sampled since one of them was used
        self._loading: dict[int, list[tuple[int, Future[None]]]] = {}  # pages and their load
        self._leaving: dict[int, Future[None]] = {}
        self._about_to_leave: list[tuple[int, int, int]] = []  # region, pages, dirty ones
        self.bytes_in = self.observe_ns = 0

    @property
    def bytes_out(self) -> int:
        return self._carrier.bytes_out

    # Called by the engine

    def load(self, region: int, pages: int, touched: int, unmapped: int = 0) -> None:
        """Bring pages near.

        ``touched``: a thread waits for these. ``unmapped``: further pages, whose use must fault.
        """
        if self._tiers is not None:
            for page in bits(pages | unmapped & ~self.present.get(region, 0)):
                self._tiers.note_loaded(region * self._ppr + page)
        self._load(region, pages, touched, unmapped)

    def _load(self, region: int, pages: int, touched: int, unmapped: int = 0) -> None:
        if copied := self._copied.get(region, 0) & pages:
            self._restore_copies(region, copied)
            pages &= ~copied
        # A present page is newer than the store, also one that the engine does not count as near:
        # a remote page that was mapped near and whose advice was taken back.
        present = self.present.get(region, 0)
        pages &= ~present | touched
        if not pages:
            return
        unmapped &= ~present
        is_whole = self._huge and not present and pages | unmapped == span(0, self._ppr)
        if self._huge and not is_whole:
            unmapped = 0  # they stay far: no part of a region may be written to the memory file
        pages |= unmapped
        if self._track_touches:
            unmapped = pages & ~touched
        early = self._region_reads.take_over(region)
        self._start_leaving()
        self._settle_leaving(region)
        writable = self._note_load(region, pages, touched)
        after = self._awaited_evictions()
        if is_whole:
            self._load_whole(Load(region, writable, unmapped, after, early))
            return
        if pages.bit_count() * self._page <= INLINE:
            self._wait(after)
            for first, n in runs(pages):
                self._carrier.load_run(Load(region, writable, unmapped), first, n)
            return
        self._load_in_threads(Load(region, writable, unmapped, after, early), pages, touched)
        self._streams.note_loaded(region)

    def _note_load(self, region: int, pages: int, touched: int) -> int:
        """Update the books for a load; return the pages that are to be writable."""
        number = region * self._ppr
        if self._carrier.unreadable:
            self._carrier.unreadable.difference_update(number + page for page in bits(pages))
        self.present[region] = self.present.get(region, 0) | pages
        self._touched[region] = self._touched.get(region, 0) & ~pages | touched
        writable = self._to_write.pop(region, 0) & pages
        if writable & 1 and self._is_written_walk(region, pages):
            writable = pages
        for first, n in runs(writable):  # before anything can be written
            self._flags.set_dirty(number + first, n, True)
        n = pages.bit_count()
        self.bytes_in += n * self._page
        # early copies of these pages are old from now on
        if n > 1 and (started := self._page_reads.started):
            mine = [p for p in started if p // self._ppr == region and pages >> p % self._ppr & 1]
            if self._page_reads.forget(mine):
                self._early_read_pause = EARLY_READ_PAUSE
        return writable

    def _is_written_walk(self, region: int, pages: int) -> bool:
        """Return whether a whole region is loaded, and all pages in front of it were written."""
        whole, before = span(0, self._ppr), (region - 1) * self._ppr
        return region > 0 and pages == whole == self._flags.dirty(before, self._ppr)

    def _load_whole(self, load: Load) -> None:
        """Load a region that will be one huge page; at once, if its bytes are here."""
        self._solid.add(load.region)
        if load.early is not None and load.early.read.done() and not load.after:
            placed: Future[None] = Future()
            load.early.loads = [placed]
            self._streams.note_loaded(load.region)
            self._carrier.load_region(load)
            placed.set_result(None)
            return
        future = self._pool.submit(self._carrier.load_region, load)
        self._loading.setdefault(load.region, []).append((span(0, self._ppr), future))
        if load.early is not None:
            load.early.loads = [future]
        self._streams.note_loaded(load.region)

    def _load_in_threads(self, load: Load, pages: int, touched: int) -> None:
        """Start loads of these pages, those first that a thread waits for."""
        parts = [(first, n, span(first, first + n)) for first, n in self._carrier.parts(pages)]
        parts.sort(key=lambda part: not touched & part[2])
        loads = [
            (mask, self._pool.submit(self._carrier.load_run, load, first, n))
            for first, n, mask in parts
        ]
        self._loading.setdefault(load.region, []).extend(loads)
        if load.early is not None:
            load.early.loads = [future for _, future in loads]

    def _read_region_early(self, region: int, like: int) -> None:
        """Read a region early, if all of it is far and kept in the same file as the other."""
        (of, _), (backing, at) = self.backing[like], self.backing.get(region, (None, 0))
        near = self.present.get(region, 0) | self._copied.get(region, 0)
        if backing is of and not near and region not in self._leaving and self._middle is None:
            stored = self._flags.stored(region * self._ppr, self._ppr)
            if (pages := (~stored & stored + 1).bit_length() - 1) > 0:
                self._region_reads.read(region, pages, of, at)

    def evict(self, region: int, pages: int | None = None) -> None:
        """Send these pages far (all, by default), without losing a write."""
        if self._loading:
            self.settle_loading(region)
        if self._leaving:
            self._settle_leaving(region)
        dirty = self._flags.dirty(region * self._ppr, self._ppr)
        if copied := self._copied.get(region, 0) & (-1 if pages is None else pages):
            self._evict_copies(region, copied, dirty)
        present = self.present.get(region, 0)
        leaving = present if pages is None else present & pages
        if region in self._solid and leaving != present:
            return  # a part of a huge page would leave zeros; it goes with its region
        self.present[region] = present & ~leaving
        if self._tiers is not None and pages is None:
            leaving &= ~self._evict_to_middle(region, leaving, dirty)
        dirty &= leaving
        self._carrier.bytes_out += dirty.bit_count() * self._page
        if leaving.bit_count() * self._page <= INLINE and region not in self._solid:
            self._carrier.evict_now(region, leaving, dirty)
        else:
            # one hole costs less than one on each side of a sampled page
            rest = 0 if self.present[region] else span(0, self._ppr)
            self._about_to_leave.append((region, leaving | rest, dirty))
        self._forget_solid(region)

    def _evict_to_middle(self, region: int, pages: int, dirty: int) -> int:
        """Move pages to the middle tier as its policy decides; return those that went there."""
        assert self._tiers is not None
        moved = 0
        for page in bits(pages):
            number, is_dirty = region * self._ppr + page, bool(dirty >> page & 1)
            if self._tiers.leaves(number) and self._carrier.to_middle(region, page, is_dirty):
                moved |= 1 << page
            else:
                self._tiers.note_placed(number, 0)
        return moved

    def sample(self, region: int, pages: int) -> None:
        """Take these near pages away, so that their next use is a fault."""
        begin = time.thread_time_ns()
        self.settle_loading(region, pages)
        if region in self._solid:
            # to take a part out of a huge page would split it
            self._userfault.unmap(self._address(region, 0), self._ppr * self._page)
            self._unmapped[region] = pages
        else:
            self._take_away(region, pages)
        self._unused_samples += pages.bit_count()
        self.observe_ns += time.thread_time_ns() - begin

    def _take_away(self, region: int, pages: int) -> None:
        """Copy sampled pages and punch their memory."""
        number = region * self._ppr
        dirty = self._flags.dirty(number, self._ppr) & pages
        for first, n in runs(dirty):  # clean pages are protected anyway
            self._userfault.protect(self._address(region, first), n * self._page)
        unreadable = self._carrier.unreadable  # they have no memory, and must not become zeros
        if unreadable:
            pages &= ~sum(1 << page for page in bits(pages) if number + page in unreadable)
        unused = self._unused_samples >= UNUSED_SAMPLES and self._tiers is None
        copied = pages & dirty if unused else pages
        for page in bits(copied):
            self._copies.put(number + page, self._memory)
        for first, n in runs(pages):
            punch(self._memory, (number + first) * self._page, n * self._page)
        self.present[region] &= ~pages
        self._copied[region] = self._copied.get(region, 0) | copied

    def restore(self, region: int, pages: int) -> None:
        """Make sampled pages usable again; load those that a prefetch left far."""
        begin, before = time.thread_time_ns(), self.observe_ns
        self.settle_loading(region, pages)
        # a writer faults again, and finds the page present
        self._to_write[region] = self._to_write.get(region, 0) & ~pages
        present = self.present.get(region, 0) & pages
        for page in bits(present):
            self.map_again(region, page)
        if pages != present:
            self._unused_samples = 0
            self._load(region, pages & ~present, pages & ~present)
        self.observe_ns = before + time.thread_time_ns() - begin

    def drop(self, region: int) -> None:
        """Discard this region's content and forget where it is kept: its object is gone."""
        self.discard(region)
        del self.backing[region]

    def discard(self, region: int) -> None:
        """Discard this region's content, near and far."""
        self._page_reads.forget(self._page_reads.started)
        self._region_reads.forget(region)
        self.settle_loading(region)
        self._start_leaving()
        self._settle_leaving(region)
        first = region * self._ppr
        for page in bits(self._copied.get(region, 0)):
            self._copies.remove(first + page)
        for pages in (self.present, self._touched, self._to_write, self._copied):
            pages.pop(region, None)
        if self._tiers is not None and self._middle is not None:
            for number in range(first, first + self._ppr):
                self._tiers.note_dropped(number)
                self._middle.remove(number)
        punch(self._memory, first * self._page, self._ppr * self._page)
        self._forget_solid(region)
        self._flags.set_dirty(first, self._ppr, False)
        self._flags.set_stored(first, self._ppr, False)
        backing, at = self.backing[region]
        if backing.scratch:
            punch(backing.plain, backing.offset + at, self._ppr * self._page)

    def pin(self, region: int, pages: int) -> None:
        """Make these near pages writable, for writes that no protection can stop.

        Pages of a read-only file stay protected: they are pinned to be read.
        """
        self.settle_loading(region)
        writable = self.backing[region][0].writable
        for first, n in runs(pages):
            if not writable:
                self._userfault.map_again(self._address(region, first), n * self._page, True)
                continue
            self._flags.set_dirty(region * self._ppr + first, n, True)
            self._userfault.map_again(self._address(region, first), n * self._page, False)
            self._userfault.unprotect(self._address(region, first), n * self._page)

    def touched(self, region: int) -> int:
        """Return the pages used since they came near, if touches are tracked."""
        return self._touched.get(region, 0)

    # Called by the pager

    def note_write(self, region: int, page: int) -> None:
        """Note that the thread that waits for this page will write to it."""
        self._to_write[region] = self._to_write.get(region, 0) | 1 << page

    def read_early(self, region: int, page: int) -> None:
        """Start to read a page that faulted, while policies decide which region to evict."""
        number = region * self._ppr + page
        if self._tiers is not None:
            self._tiers.note_fault(number)
        if self._middle is not None and number in self._middle:
            return
        if self._early_read_pause:
            self._early_read_pause -= 1
            return
        leaving = region in self._leaving
        if self._carrier.reads_pages_early and not leaving and self._flags.stored(number, 1):
            backing, at = self.backing[region]
            offset = backing.offset + at + page * self._page
            self._page_reads.start(number, backing.direct, offset)

    def keep_early_reads(self, pages: list[int]) -> None:
        """Discard early reads of all pages but these."""
        if started := self._page_reads.started:
            self._page_reads.forget(set(started) - set(pages))

    def allow_write(self, region: int, page: int) -> None:
        """Let the first write to a clean page through, and to those that are likely next."""
        n = self._likely_written(region, page)
        self._flags.set_dirty(region * self._ppr + page, n, True)
        self._userfault.unprotect(self._address(region, page), n * self._page)

    def _likely_written(self, region: int, page: int) -> int:
        """Return how many pages from this one on to let through: as many as were written in front
        of it, so that at most half of what counts as written is not.
        """
        dirty = self._flags.dirty(region * self._ppr, self._ppr)
        written = page - (span(0, page) & ~dirty).bit_length()
        clean = (self.present[region] & ~dirty) >> page
        following = (clean + 1 & ~clean).bit_length() - 1
        return max(1, min(written, following)) if written >= WRITTEN_IN_A_ROW else 1

    def map_again(self, region: int, page: int) -> None:
        """Map a page that is present and not mapped.

        If its region was unmapped so that it can be observed, map all but the sampled pages.
        """
        self._touched[region] = self._touched.get(region, 0) | 1 << page
        if region not in self._unmapped:
            dirty = self._flags.dirty(region * self._ppr + page, 1)
            self._userfault.map_again(self._address(region, page), self._page, protect=not dirty)
            return
        begin = time.thread_time_ns()
        pages = self.present[region] & ~self._unmapped.pop(region) | 1 << page
        dirty = self._flags.dirty(region * self._ppr, self._ppr)
        for protect, some in ((True, pages & ~dirty), (False, pages & dirty)):
            for first, n in runs(some):
                self._userfault.map_again(self._address(region, first), n * self._page, protect)
        self.observe_ns += time.thread_time_ns() - begin

    def map_for_reader(self, reader: int, region: int, page: int, sampled: int) -> None:
        """Map a present page in a process that shares the arena, and with it its whole region.

        Pages whose first use must be noticed are left out.
        """
        self.settle_loading(region)
        self._touched[region] = self._touched.get(region, 0) | 1 << page
        others = 0 if self._track_touches else self.present[region] & ~sampled
        userfault, shift = self._userfault.readers[reader]
        for first, n in runs(others | 1 << page):
            userfault.map_again(self._address(region, first) + shift, n * self._page, True)

    def _forget_solid(self, region: int) -> None:
        self._solid.discard(region)
        self._unmapped.pop(region, None)

    def wake(self, region: int, page: int) -> None:
        """Wake the threads that wait for a page that is present, or still loading."""
        self._userfault.wake(self._address(region, page), self._page)

    def flush(self, pinned: set[int], regions: range | None = None) -> None:
        """Copy dirty pages of users' files (in these regions, or all) to them; they stay near.

        If some cannot be written, the others are; then the first error is raised.
        """
        own = {
            r: b
            for r, (b, _) in self.backing.items()
            if not b.scratch and (regions is None or r in regions)
        }
        steps: list[Callable[[], None]] = [
            partial(self._flush_region, region, region in pinned)
            for region in own.keys() & self.present.keys()
        ]
        if self._middle is not None:
            newer = [n for n in self._middle.oldest_first() if self._middle.is_newer(n)]
            in_own = [n for n in newer if n // self._ppr in own]
            steps += [partial(self._carrier.store_from_middle, number) for number in in_own]
        files = {backing.plain for backing in own.values() if backing.writable}
        steps += [partial(os.fsync, fd) for fd in files]
        errors = []
        for step in steps:
            try:
                step()
            except OSError as error:
                errors.append(error)
        if errors:
            raise errors[0]

    def _flush_region(self, region: int, is_pinned: bool) -> None:
        self.settle_loading(region)
        dirty = self._flags.dirty(region * self._ppr, self._ppr) & self.present[region]
        for first, n in self._carrier.parts(dirty):
            self._carrier.write_back(region, first, n, protect=not is_pinned)
            if not is_pinned:
                self._flags.set_dirty(region * self._ppr + first, n, False)
        dirty |= self._flush_copies(region)
        self._carrier.bytes_out += dirty.bit_count() * self._page

    def recover(self, region: int) -> int:
        """Return the pages of this region that the last pager left near; complete them first."""
        first, size, per_page = region * self._ppr, self._ppr * self._page, self._page // SMALL_PAGE
        small, whole = data_pages(self._memory, first * self._page, size), span(0, per_page)
        present = 0
        if self._huge and self._flags.in_doubt(first, self._ppr):
            # it was being written as a whole, and nobody could use it yet
            punch(self._memory, first * self._page, size)
            self._flags.set_in_doubt(first, self._ppr, False)
            small = 0
        if self._huge and small:
            self._solid.add(region)
        for page in range(self._ppr):
            part = small >> page * per_page & whole
            if first + page in self._copies:  # what is missing is in the copy
                source = self._copies.get(first + page)[1]
                self._userfault.copy(self._address(region, page), source, self._page, protect=True)
                self._copies.remove(first + page)
                part = whole
            if not part:
                self._flags.set_dirty(first + page, 1, False)
                continue
            present |= 1 << page
            if part != whole:  # what is missing is in the store or in the middle, unchanged
                self._carrier.load_run(Load(region, 0, 0), page, 1)
            elif self._middle is not None:
                self._middle.remove(first + page)  # near memory is newer
        self.present[region] = self._touched[region] = present
        return present

    # Waiting

    def settle_loading(self, region: int, pages: int = -1) -> bool:
        """Wait until none of these pages is being loaded; return whether any was."""
        parts = self._loading.pop(region, [])
        if rest := [part for part in parts if not part[0] & pages]:
            self._loading[region] = rest
        awaited = [future for mask, future in parts if mask & pages]
        self._wait(awaited)
        return bool(awaited)

    def is_loading(self, region: int) -> bool:
        return region in self._loading

    def settle(self) -> None:
        """Wait until nothing moves; raise what failed."""
        self._start_leaving()
        for region in list(self._loading):
            self.settle_loading(region)
        for region in list(self._leaving):
            self._settle_leaving(region)

    def reap(self) -> None:
        """Forget moves that are done; raise what failed."""
        self._start_leaving()
        if not self._leaving and not self._loading:
            return
        for region, future in list(self._leaving.items()):
            if future.done():
                del self._leaving[region]
                future.result()
        for region, futures in list(self._loading.items()):
            if all(f.done() for _, f in futures):
                self.settle_loading(region)

    def _start_leaving(self) -> None:
        """Start this turn's evictions, after its samples: together both would take far longer."""
        for region, pages, dirty in self._about_to_leave:
            self._leaving[region] = self._pool.submit(self._carrier.evict_now, region, pages, dirty)
        self._about_to_leave.clear()

    def _awaited_evictions(self) -> list[Future[None]]:
        """Return the evictions that a load must wait for: all but the last.

        So near memory exceeds its limit by one region at most.
        """
        return [leaving for leaving in list(self._leaving.values())[:-1] if not leaving.done()]

    def _settle_leaving(self, region: int) -> None:
        if region in self._leaving:
            self._wait([self._leaving.pop(region)])

    @staticmethod
    def _wait(futures: list[Future[None]]) -> None:
        if not all(future.done() for future in futures):
            wait(futures)
        for future in futures:
            future.result()

    # Copies of sampled pages

    def _restore_copies(self, region: int, pages: int) -> None:
        number = region * self._ppr
        dirty = self._flags.dirty(number, self._ppr)
        for page in bits(pages):
            source, protect = self._copies.get(number + page)[1], not dirty >> page & 1
            self._userfault.copy(self._address(region, page), source, self._page, protect)
            self._copies.remove(number + page)
        self._note_restored(region, pages)

    def _evict_copies(self, region: int, pages: int, dirty: int) -> None:
        """Evict sampled pages; with a middle tier they go through near memory, like others."""
        number = region * self._ppr
        if self._tiers is None:
            for page in bits(pages):
                if dirty >> page & 1:
                    self._carrier.write_store(region, page, self._copies.get(number + page)[0])
                    self._flags.set_stored(number + page, 1, True)
                    self._flags.set_dirty(number + page, 1, False)
                    self._carrier.bytes_out += self._page
                self._copies.remove(number + page)
            self._copied[region] &= ~pages
            return
        for page in bits(pages):
            data = self._copies.get(number + page)[0]
            os.pwrite(self._memory, data, (number + page) * self._page)
            self._copies.remove(number + page)
        self._note_restored(region, pages)

    def _note_restored(self, region: int, pages: int) -> None:
        self.present[region] |= pages
        self._touched[region] |= pages
        self._copied[region] &= ~pages

    def _flush_copies(self, region: int) -> int:
        """Write dirty copies to the store; return their pages."""
        number = region * self._ppr
        dirty = self._flags.dirty(number, self._ppr) & self._copied.get(region, 0)
        for page in bits(dirty):
            self._carrier.write_store(region, page, self._copies.get(number + page)[0])
            self._flags.set_stored(number + page, 1, True)
            self._flags.set_dirty(number + page, 1, False)
        return dirty
