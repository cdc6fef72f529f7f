"""The store: files, read and written past the page cache, which would hold everything twice.

    Backing           reads and writes one object's bytes, now
    PageReadAhead     reads single pages while the policies decide which region to evict
    RegionReadAhead   reads the next regions of a stream while the program uses this one

Reading early is safe: a page that is far cannot change in the store before it is near. An early
copy is old as soon as any page of it is loaded, so it is used for one load only. No policy sees
early reads, and no page comes near by them.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import mmap
import os
from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from typing import Any

ALIGN = 4096  # of offsets, sizes and addresses for O_DIRECT
PAGE_READS = 8  # single pages read early at a time
# regions of a stream read early at a time; reads of two at a time keep a disk busy
REGIONS_AHEAD = 3
REGION_BUFFERS = REGIONS_AHEAD + 1  # these are filled while another is copied from
_HUGE = 2 * 1024 * 1024
_POPULATE_WRITE = 23
_SETUP, _SUBMIT, _GET_EVENTS = (206, 209, 208) if os.uname().machine == "x86_64" else (0, 2, 4)
_READ = 0


class Buffer:
    """Aligned memory that O_DIRECT can read into and whose address the kernel can be given.

    A large buffer is of huge pages where the kernel has some: a disk then fills one long piece of
    memory for each region instead of 512 short ones, and reads up to twice as fast.
    """

    def __init__(self, size: int):
        room = size if size < _HUGE // 2 else -(-size // _HUGE) * _HUGE + _HUGE
        area = mmap.mmap(-1, room, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        start = ctypes.addressof(ctypes.c_char.from_buffer(area))
        skipped = -start % _HUGE if room > size else 0
        if room > size:
            with contextlib.suppress(OSError):  # a kernel without them
                area.madvise(mmap.MADV_HUGEPAGE, skipped, room - _HUGE)
        self.view = memoryview(area)[skipped : skipped + size]
        self.address = start + skipped
        self._area, self._used = area, (skipped, size)

    def populate(self) -> None:
        """Take the memory now: where a host has taken it back, first use costs milliseconds."""
        with contextlib.suppress(OSError):  # a kernel older than 5.14
            self._area.madvise(_POPULATE_WRITE, *self._used)


@dataclass(frozen=True)
class Backing:
    """Where one object's bytes are when they are far: ``size`` bytes of a file from ``offset`` on.

    ``direct`` is a descriptor with O_DIRECT, or a plain one where the file system has no O_DIRECT.
    ``scratch``: the file is the arena's own, so bytes behind the object's end may be written.
    ``name`` is the object's, for errors.
    """

    direct: int
    plain: int
    offset: int
    size: int
    writable: bool
    scratch: bool
    name: str = ""

    def read(self, at: int, into: memoryview) -> None:
        """Fill ``into`` from the object's byte ``at`` on; with zeros behind its end."""
        wanted = max(0, min(len(into), self.size - at))
        done = 0
        while done < wanted:
            try:
                n = os.preadv(self.direct, [into[done:]], self.offset + at + done)
            except OSError as error:
                if error.errno != errno.EINVAL:
                    raise
                n = os.preadv(self.plain, [into[done:wanted]], self.offset + at + done)
            if n == 0:
                raise OSError(errno.EIO, "the file has become shorter than it was")
            done += n
        if done != len(into):
            into[wanted:] = bytes(len(into) - wanted)

    def write(self, at: int, data: memoryview) -> None:
        """Write from the object's byte ``at`` on, and nothing behind its end."""
        wanted = min(len(data), self.size - at)
        whole = len(data) if self.scratch else wanted // ALIGN * ALIGN
        done = 0
        while done < whole:
            try:
                done += os.pwritev(self.direct, [data[done:whole]], self.offset + at + done)
            except OSError as error:
                if error.errno != errno.EINVAL:
                    raise
                break
        while done < wanted:  # an unaligned end
            done += os.pwritev(self.plain, [data[done:wanted]], self.offset + at + done)

    def description(self) -> dict[str, Any]:
        """Return what another process needs beside the descriptors, which it gets its own way."""
        return {name: getattr(self, name) for name in ("offset", "size", "writable", "scratch")}


class _ReadRequest(ctypes.Structure):
    """The kernel's struct iocb."""

    _fields_ = (
        ("data", ctypes.c_uint64),
        ("key", ctypes.c_uint32),
        ("flags", ctypes.c_uint32),
        ("operation", ctypes.c_uint16),
        ("priority", ctypes.c_int16),
        ("file", ctypes.c_uint32),
        ("buffer", ctypes.c_uint64),
        ("bytes", ctypes.c_uint64),
        ("offset", ctypes.c_int64),
        ("rest", ctypes.c_uint64 * 2),
    )


class PageReadAhead:
    """Up to PAGE_READS asynchronous reads of one page each (Linux AIO).

    ``works`` is False where the kernel has no AIO; then ``take`` returns None.
    """

    def __init__(self, page: int):
        self._page = page
        self._call = ctypes.CDLL(None, use_errno=True).syscall
        self._call.restype, self._call.argtypes = ctypes.c_long, [ctypes.c_long] * 6
        context = ctypes.c_uint64(0)
        self.works = self._call(_SETUP, PAGE_READS, ctypes.addressof(context), 0, 0, 0) == 0
        self._context = context.value
        area = mmap.mmap(-1, PAGE_READS * page, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        self._view = memoryview(area)
        self._address = ctypes.addressof(ctypes.c_char.from_buffer(area))
        self._requests = (_ReadRequest * PAGE_READS)()
        for slot, request in enumerate(self._requests):
            request.data, request.operation, request.bytes = slot, _READ, page
            request.buffer = self._address + slot * page
        addresses = (ctypes.addressof(request) for request in self._requests)
        self._pointers = (ctypes.c_uint64 * PAGE_READS)(*addresses)
        self._lists = [ctypes.addressof(self._pointers) + 8 * slot for slot in range(PAGE_READS)]
        self._events = (ctypes.c_int64 * 4)()
        self._event_at = ctypes.addressof(self._events)
        self._slot_of: dict[int, int] = {}  # by page
        self._free = list(range(PAGE_READS))
        self._read: dict[int, int] = {}  # bytes that were read, by slot

    def start(self, page: int, file: int, offset: int) -> None:
        """Start to read, unless all slots are in use."""
        if not self._free or page in self._slot_of:
            return
        slot = self._free.pop()
        request = self._requests[slot]
        request.file, request.offset = file, offset
        if self._call(_SUBMIT, self._context, 1, self._lists[slot], 0, 0) == 1:
            self._slot_of[page] = slot
        else:
            self._free.append(slot)

    def take(self, page: int) -> tuple[memoryview, int] | None:
        """Return the page's bytes and their address, valid until the next ``start``.

        None if its read was not started, or did not return the whole page.
        """
        slot = self._slot_of.pop(page, -1)
        if slot < 0:
            return None
        while slot not in self._read:
            if self._call(_GET_EVENTS, self._context, 1, 1, self._event_at, 0) == 1:
                self._read[self._events[0]] = self._events[2]
        self._free.append(slot)
        if self._read.pop(slot) != self._page:
            return None
        at = slot * self._page
        return self._view[at : at + self._page], self._address + at

    def forget(self, pages: Iterable[int]) -> int:
        """Discard the early reads of these pages; return how many there were."""
        started = [page for page in pages if page in self._slot_of]
        for page in started:
            self.take(page)
        return len(started)

    @property
    def started(self) -> list[int]:
        """Pages that are read and not taken yet."""
        return list(self._slot_of)


@dataclass(eq=False)
class EarlyRegion:
    """The first ``pages`` pages of a region, read early."""

    region: int
    pages: int
    page: int  # bytes
    buffer: Buffer
    read: Future[bool]
    loads: list[Future[None]] = field(default_factory=list)  # which copy from the buffer

    def take(self, first: int, n: int) -> tuple[memoryview, int] | None:
        """Wait for these pages and return their bytes and address; None if they were not read."""
        if first + n > self.pages or not self.read.result():
            return None
        at = first * self.page
        return self.buffer.view[at : at + n * self.page], self.buffer.address + at

    @property
    def is_in_use(self) -> bool:
        return not self.read.done() or not all(load.done() for load in self.loads)


class RegionReadAhead:
    """Reads regions early that a stream (streams.py) will load.

    It has threads of its own: the mover's may all be busy, some of them waiting for these reads,
    while the disk is idle.
    """

    def __init__(self, page: int, pages_per_region: int):
        self._page = page
        self._pool = ThreadPoolExecutor(REGIONS_AHEAD, "read-ahead")
        self._free = [Buffer(pages_per_region * page) for _ in range(REGION_BUFFERS)]
        for buffer in self._free:
            self._pool.submit(buffer.populate)
        self._early: dict[int, EarlyRegion] = {}  # by region
        self._taken: list[EarlyRegion] = []  # whose buffers may be in use

    def expect(self, regions: Iterable[int]) -> None:
        """Discard what was read of regions other than these: it was not needed."""
        for region in self._early.keys() - set(regions):
            self.take_over(region)

    def read(self, region: int, pages: int, backing: Backing, at: int) -> None:
        """Start to read the first ``pages`` of this far region, unless all buffers are in use."""
        if region in self._early:
            return
        self._free += [early.buffer for early in self._taken if not early.is_in_use]
        self._taken = [early for early in self._taken if early.is_in_use]
        if self._free:
            buffer = self._free.pop()
            reading = self._pool.submit(_read, backing, at, buffer.view[: pages * self._page])
            self._early[region] = EarlyRegion(region, pages, self._page, buffer, reading)

    def take_over(self, region: int) -> EarlyRegion | None:
        """Return what was read of this region, if anything, for the load that begins now."""
        early = self._early.pop(region, None)
        if early is not None:
            self._taken.append(early)
        return early

    def forget(self, region: int) -> None:
        """Discard what was read of this region: its file may be closed next."""
        if (early := self.take_over(region)) is not None:
            wait([early.read])


def _read(backing: Backing, at: int, into: memoryview) -> bool:
    try:
        backing.read(at, into)
    except OSError:
        return False  # the load reads it again and reports the error
    return True
