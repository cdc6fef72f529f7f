"""The mover: pages between the arena's memory and its files, without losing a write.

    load     once what leaves has made room; a stream's next region is read meanwhile (stream.py)
    evict    what was written goes to the store first
    sample   memory ──▶ set aside (aside.py) ──▶ punch the memory: the next use is a fault, and brings it home

Here is what is where, and who waits for whom; carrier.py moves the bytes. Large moves go to a few
threads, so that reading what comes overlaps writing what leaves. One page is moved here and now:
handing it over would cost more than it takes.
"""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait

from tidegate.live.pager.page_bits import bits, runs, span
from tidegate.live.pager.tier_placement import LiveTiers
from tidegate.live.transfer.carrier import INLINE, Carrier
from tidegate.live.transfer.middle import Middle
from tidegate.live.transfer.page_flags import Kept
from tidegate.live.transfer.sampled_pages import Aside
from tidegate.live.transfer.store import Backing
from tidegate.live.transfer.stream import Stream
from tidegate.live.transfer.userfault import SMALL_PAGE, Userfault, punch
from tidegate.trace.geometry import Geometry

WORKERS = 4
# sampled pages that nobody came back for: then clean ones are no longer copied, and read if
# somebody does
IN_VAIN = 64
# pages that came with others show that reading them alone was for nothing: no more of it for so
# many faults
ALONE = 256


class LiveMover:
    """Moves the bytes of one arena (a Mover of engine.py)."""

    def __init__(
        self,
        base: int,
        geometry: Geometry,
        userfault: Userfault,
        memory: int,
        kept: Kept,
        aside: Aside,
        track_touches: bool,
        tiers: LiveTiers | None = None,
        middle: Middle | None = None,
    ):
        self._tiers, self._middle = tiers, middle
        self._page, self._ppr = geometry.page, geometry.pages_per_region
        self._userfault, self._memory, self._kept = userfault, memory, kept
        self._aside, self._track = aside, track_touches
        self._carrier = Carrier(base, geometry, userfault, memory, kept, tiers, middle)
        self._address, self._ahead = self._carrier.address, self._carrier.ahead
        self._pool = ThreadPoolExecutor(WORKERS, "mover")
        self._stream = Stream(geometry.page, self._ppr)
        self._not_yet = 0  # faults to be served before reading ahead is tried again
        self.backing = self._carrier.backing
        self.present: dict[int, int] = {}  # pages whose memory is there
        self._used: dict[int, int] = {}
        self._writes: dict[int, int] = {}  # pages whose load a write waits for
        self._away: dict[int, int] = {}  # pages that are set aside
        self._in_vain = 0  # pages sampled since one of them was used
        self._loading: dict[int, list[tuple[int, Future[None]]]] = {}  # pages, and who loads them
        self._leaving: dict[int, Future[None]] = {}
        self._about_to_leave: list[tuple[int, int, int]] = []  # region, pages, dirty ones
        self.bytes_in = self.observe_ns = 0

    @property
    def bytes_out(self) -> int:
        return self._carrier.bytes_out

    # What the engine asks for

    def load(self, region: int, pages: int, touched: int, apart: int = 0) -> None:
        if self._tiers is not None:
            for page in bits(pages | apart & ~self.present.get(region, 0)):
                self._tiers.returned(region * self._ppr + page)
        self._load(region, pages, touched, apart)

    def _load(self, region: int, pages: int, touched: int, apart: int = 0) -> None:
        if away := self._away.get(region, 0) & pages:
            self._come_home(region, away)
            pages &= ~away
        if not pages:
            return
        # they come along, since it costs little now, and are not mapped
        apart &= ~self.present.get(region, 0)
        pages |= apart
        quiet = pages & ~touched if self._track else apart
        early = self._stream.take_over(region)
        self._start_leaving()
        self._settle_leaving(region)
        if self._carrier.unreadable:
            self._carrier.unreadable.difference_update(
                region * self._ppr + page for page in bits(pages)
            )
        self.present[region] = self.present.get(region, 0) | pages
        self._used[region] = self._used.get(region, 0) & ~pages | touched
        writes = self._writes.pop(region, 0) & pages
        for first, n in runs(writes):  # before anything can be written
            self._kept.set_dirty(region * self._ppr + first, n, True)
        n = pages.bit_count()
        self.bytes_in += n * self._page
        # whatever way a page comes, an early copy of it is old from then on
        if n > 1 and (begun := self._ahead.begun):
            mine = [
                key for key in begun if key // self._ppr == region and pages >> key % self._ppr & 1
            ]
            self._not_yet = ALONE if self._ahead.forget(mine) else self._not_yet
        if n * self._page <= INLINE:
            self._wait(self._must_have_left())
            if n == 1:
                self._carrier.load_run(region, pages.bit_length() - 1, 1, writes, quiet, ())
            else:
                for first, count in runs(pages):
                    self._carrier.load_run(region, first, count, writes, quiet, ())
            return
        after = self._must_have_left()
        parts = sorted(
            self._carrier.parts(pages),
            key=lambda part: not touched & span(part[0], part[0] + part[1]),
        )
        load = self._carrier.load_run
        loads = [
            (
                span(first, first + n),
                self._pool.submit(load, region, first, n, writes, quiet, after, early),
            )
            for first, n in parts
        ]
        self._loading.setdefault(region, []).extend(loads)
        if early is not None:
            early.loads = [future for _, future in loads]
        if self._stream.goes_on(region):
            self._read_early(region + 1, self.backing[region][0])

    def _read_early(self, region: int, of: Backing) -> None:
        """The stream is likely to go on: read this region's bytes, if it is far as a whole."""
        backing, at = self.backing.get(region, (None, 0))
        near = self.present.get(region, 0) | self._away.get(region, 0)
        if backing is of and not near and region not in self._leaving and self._middle is None:
            stored = self._kept.stored(region * self._ppr, self._ppr)
            if (pages := (~stored & stored + 1).bit_length() - 1) > 0:
                self._stream.read(region, pages, of, at)

    def evict(self, region: int, pages: int | None = None) -> None:
        if self._loading:
            self.settle_loading(region)
        if self._leaving:
            self._settle_leaving(region)
        dirty = self._kept.dirty(region * self._ppr, self._ppr)
        if away := self._away.get(region, 0) & (-1 if pages is None else pages):
            self._leave_from_aside(region, away, dirty)
        here = self.present.get(region, 0)
        going = here if pages is None else here & pages
        self.present[region] = here & ~going
        dirty &= going
        if self._tiers is not None and pages is None:
            for page in bits(going):
                number, is_dirty = region * self._ppr + page, bool(dirty >> page & 1)
                if self._tiers.leaves(number) and self._carrier.to_middle(region, page, is_dirty):
                    going &= ~(1 << page)
                else:
                    self._tiers.went(number, 0)
            dirty &= going
        self._carrier.bytes_out += dirty.bit_count() * self._page
        if going.bit_count() * self._page <= INLINE:
            self._carrier.evict_now(region, going, dirty)
        else:
            # one hole costs less than one on each side of a sample
            rest = 0 if self.present[region] else span(0, self._ppr)
            self._about_to_leave.append((region, going | rest, dirty))

    def sample(self, region: int, pages: int) -> None:
        begin = time.thread_time_ns()
        self.settle_loading(region, pages)
        number = region * self._ppr
        dirty = self._kept.dirty(number, self._ppr) & pages
        for first, n in runs(dirty):  # clean pages are protected anyway
            self._userfault.protect(self._address(region, first), n * self._page)
        # no memory of theirs is there, and zeros are not what they hold
        if self._carrier.unreadable:
            pages &= ~sum(
                1 << page for page in bits(pages) if number + page in self._carrier.unreadable
            )
        copied = pages & dirty if self._in_vain >= IN_VAIN and self._tiers is None else pages
        for page in bits(copied):
            self._aside.put(number + page, self._memory)
        for first, n in runs(pages):
            punch(self._memory, (number + first) * self._page, n * self._page)
        self.present[region] &= ~pages
        self._away[region] = self._away.get(region, 0) | copied
        self._in_vain += pages.bit_count()
        self.observe_ns += time.thread_time_ns() - begin

    def bring_home(self, region: int, pages: int) -> None:
        begin = time.thread_time_ns()
        self.settle_loading(region, pages)
        # they fault again, with a page to write to
        self._writes[region] = self._writes.get(region, 0) & ~pages
        there = self.present.get(region, 0) & pages
        for page in bits(there):
            self.map_again(region, page)
        if pages != there:
            self._in_vain = 0
            self._load(region, pages & ~there, pages & ~there)
        self.observe_ns += time.thread_time_ns() - begin

    def expect_only(self, pages: list[int]) -> None:
        """What else was expected has come another way, or is not wanted any more."""
        if begun := self._ahead.begun:
            self._ahead.forget(set(begun) - set(pages))

    def drop(self, region: int) -> None:
        self._ahead.forget(self._ahead.begun)
        self._stream.forget(region)
        self.settle_loading(region)
        self._start_leaving()
        self._settle_leaving(region)
        first = region * self._ppr
        for page in bits(self._away.get(region, 0)):
            self._aside.remove(first + page)
        for kind in (self.present, self._used, self._writes, self._away):
            kind.pop(region, None)
        if self._tiers is not None and self._middle is not None:
            for number in range(first, first + self._ppr):
                self._tiers.gone(number)
                self._middle.remove(number)
        punch(self._memory, first * self._page, self._ppr * self._page)
        self._kept.set_dirty(first, self._ppr, False)
        self._kept.set_stored(first, self._ppr, False)
        backing, at = self.backing.pop(region)
        if backing.scratch:
            punch(backing.plain, backing.offset + at, self._ppr * self._page)

    def hold(self, region: int, pages: int) -> None:
        self.settle_loading(region)
        for first, n in runs(pages):
            self._kept.set_dirty(region * self._ppr + first, n, True)
            self._userfault.map_again(self._address(region, first), n * self._page, False)
            self._userfault.unprotect(self._address(region, first), n * self._page)

    def touched(self, region: int) -> int:
        return self._used.get(region, 0)

    # What the pager asks for

    def will_write(self, region: int, page: int) -> None:
        """The thread that waits for this page is going to write to it."""
        self._writes[region] = self._writes.get(region, 0) | 1 << page

    def expect(self, region: int, page: int) -> None:
        """This page is going to be loaded: begin to read it, while policies decide who makes room."""
        number = region * self._ppr + page
        if self._tiers is not None:
            self._tiers.returns(number)
        if self._middle is not None and number in self._middle:
            return
        if self._not_yet:
            self._not_yet -= 1
        elif (
            self._carrier.reads_ahead
            and region not in self._leaving
            and self._kept.stored(number, 1)
        ):
            backing, at = self.backing[region]
            self._ahead.start(number, backing.direct, backing.offset + at + page * self._page)

    def let_write(self, region: int, page: int) -> None:
        """The first write to a clean page."""
        self._kept.set_dirty(region * self._ppr + page, 1, True)
        self._userfault.unprotect(self._address(region, page), self._page)

    def map_again(self, region: int, page: int) -> None:
        """The page is there and not mapped."""
        self._used[region] = self._used.get(region, 0) | 1 << page
        dirty = self._kept.dirty(region * self._ppr + page, 1)
        self._userfault.map_again(self._address(region, page), self._page, protect=not dirty)

    def wake(self, region: int, page: int) -> None:
        """Somebody waits for a page that has come meanwhile, or is coming, and will be woken again
        then.
        """
        self._userfault.wake(self._address(region, page), self._page)

    def flush(self, held: set[int], regions: range | None = None) -> None:
        """Copy dirty pages of users' files (all, or those in these regions) to them; they stay
        near, clean.
        """
        own = {
            r
            for r, (b, _) in self.backing.items()
            if not b.scratch and (regions is None or r in regions)
        }
        for region in own & self.present.keys():
            self.settle_loading(region)
            dirty = self._kept.dirty(region * self._ppr, self._ppr) & self.present[region]
            for first, n in self._carrier.parts(dirty):
                self._carrier.write_back(region, first, n, protect=region not in held)
                if region not in held:
                    self._kept.set_dirty(region * self._ppr + first, n, False)
            dirty |= self._flush_aside(region)
            self._carrier.bytes_out += dirty.bit_count() * self._page
        if self._middle is not None:
            for number in [n for n in self._middle.oldest_first() if self._middle.is_newer(n)]:
                if number // self._ppr in own:
                    self._carrier.store_from_middle(number)
        for fd in {
            self.backing[region][0].plain for region in own if self.backing[region][0].writable
        }:
            os.fsync(fd)

    def recover(self, region: int) -> int:
        """Which pages of this region did the last pager leave near?

        Half-moved ones are completed first.
        """
        start = region * self._ppr * self._page
        small = _there(self._memory, start, self._ppr * self._page)
        per_page = self._page // SMALL_PAGE
        present = 0
        for page in range(self._ppr):
            part = small >> page * per_page & span(0, per_page)
            if (number := region * self._ppr + page) in self._aside:  # what is missing is there
                self._userfault.copy(
                    self._address(region, page),
                    self._aside.get(number)[1],
                    self._page,
                    protect=True,
                )
                self._aside.remove(number)
                part = span(0, per_page)
            if not part:
                self._kept.set_dirty(region * self._ppr + page, 1, False)
                continue
            present |= 1 << page
            # what is missing is as it was in the store, or in the middle
            if part != span(0, per_page):
                self._carrier.load_run(region, page, 1, 0, 0, [])
            elif self._middle is not None:
                self._middle.remove(region * self._ppr + page)  # what is near is newer
        self.present[region] = self._used[region] = present
        return present

    def settle_loading(self, region: int, pages: int = -1) -> bool:
        """Wait until nothing of this region is on its way in, or none of these pages.

        Was there anything?
        """
        parts = self._loading.pop(region, [])
        if rest := [part for part in parts if not part[0] & pages]:
            self._loading[region] = rest
        awaited = [future for mask, future in parts if mask & pages]
        self._wait(awaited)
        return bool(awaited)

    def is_loading(self, region: int) -> bool:
        return region in self._loading

    def settle(self) -> None:
        """Wait until nothing moves; raises what went wrong."""
        self._start_leaving()
        for region in list(self._loading):
            self.settle_loading(region)
        for region in list(self._leaving):
            self._settle_leaving(region)

    def reap(self) -> None:
        """Forget moves that are done; raises what went wrong in them."""
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

    # Details

    def _start_leaving(self) -> None:
        """Evictions begin when their turn's samples are taken: beside them, that would take several
        times as long.
        """
        for region, pages, dirty in self._about_to_leave:
            self._leaving[region] = self._pool.submit(self._carrier.evict_now, region, pages, dirty)
        self._about_to_leave.clear()

    def _must_have_left(self) -> list[Future[None]]:
        """Evictions that something that comes has to wait for.

        It is one region at most that is near beside the others.
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

    # Sampled pages

    def _come_home(self, region: int, pages: int) -> None:
        number = region * self._ppr
        dirty = self._kept.dirty(number, self._ppr)
        for page in bits(pages):
            source = self._aside.get(number + page)[1]
            self._userfault.copy(
                self._address(region, page), source, self._page, protect=not dirty >> page & 1
            )
            self._aside.remove(number + page)
        self._are_back(region, pages)

    def _leave_from_aside(self, region: int, pages: int, dirty: int) -> None:
        """Their region goes far.

        What has to be written goes by way of near memory, as all that leaves does.
        """
        number = region * self._ppr
        back = pages if self._tiers is not None else pages & dirty
        for page in bits(pages):
            if back >> page & 1:
                os.pwrite(
                    self._memory, self._aside.get(number + page)[0], (number + page) * self._page
                )
            self._aside.remove(number + page)
        self._are_back(region, back)
        self._away[region] &= ~pages

    def _are_back(self, region: int, pages: int) -> None:
        self.present[region] |= pages
        self._used[region] |= pages
        self._away[region] &= ~pages

    def _flush_aside(self, region: int) -> int:
        """Write dirty pages that are set aside; answers which."""
        number = region * self._ppr
        dirty = self._kept.dirty(number, self._ppr) & self._away.get(region, 0)
        for page in bits(dirty):
            self._carrier.write_store(region, page, self._aside.get(number + page)[0])
            self._kept.set_stored(number + page, 1, True)
            self._kept.set_dirty(number + page, 1, False)
        return dirty


def _there(fd: int, start: int, size: int) -> int:
    """Which small pages of a memory file hold data, as bits."""
    found, at = 0, start
    seek: Callable[[int, int, int], int] = os.lseek
    while at < start + size:
        try:
            data = seek(fd, at, os.SEEK_DATA)
        except OSError as error:
            if error.errno == errno.ENXIO:
                break
            raise
        if data >= start + size:
            break
        hole = min(seek(fd, data, os.SEEK_HOLE), start + size)
        found |= span((data - start) // SMALL_PAGE, (hole - start) // SMALL_PAGE)
        at = hole
    return found
