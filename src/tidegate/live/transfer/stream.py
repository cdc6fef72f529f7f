"""Streams: while a program uses one region, the next one is read from the store.

    loads of regions 4, 5  ──▶ 6 is read into a buffer      nothing comes near, and no policy hears of it
    load of region 6       ──▶ its bytes are here, or nearly

A region of which nothing is near cannot change in the store, so what was read early is right until
any page of it is loaded. From then on it is old: whoever loads takes the buffer over, once.
"""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field

from tidegate.live.transfer.buffer import Buffer
from tidegate.live.transfer.store import Backing

BUFFERS = 2


@dataclass(eq=False)
class Early:
    """What was read of one region: its first ``pages``."""

    region: int
    pages: int
    page: int  # bytes of one
    buffer: Buffer
    read: Future[bool]
    loads: list[Future[None]] = field(default_factory=list)  # who copies from the buffer

    def take(self, first: int, n: int) -> tuple[memoryview, int] | None:
        """These pages and their address, waited for; None if they were not read, or could not be."""
        if first + n > self.pages or not self.read.result():
            return None
        at = first * self.page
        return self.buffer.view[at : at + n * self.page], self.buffer.address + at

    @property
    def is_in_use(self) -> bool:
        return not self.read.done() or not all(load.done() for load in self.loads)


class Stream:
    """Reads one region early at a time; there are two buffers, since what was read before may still
    be copied from.

    Its threads are its own: the mover's may all be busy, some of them waiting for what is read
    here, while the disk idles.
    """

    def __init__(self, page: int, pages_per_region: int):
        self._page = page
        self._pool = ThreadPoolExecutor(BUFFERS, "stream")
        self._free = [Buffer(pages_per_region * page) for _ in range(BUFFERS)]
        self._latest = -2  # the region that was loaded last
        self._early: Early | None = None
        self._taken: list[Early] = []  # whose buffers may be in use

    def goes_on(self, region: int) -> bool:
        """A region is loaded, as a whole or nearly: does it follow the one before?

        The next one may be worth reading.
        """
        follows = region == self._latest + 1
        self._latest = region
        return follows

    def read(self, region: int, pages: int, backing: Backing, at: int) -> None:
        """Begin to read the first ``pages`` of this region, which is far, unless both buffers are
        in use.
        """
        if self._early is not None:  # nobody came for it
            self.take_over(self._early.region)
        self._free += [early.buffer for early in self._taken if not early.is_in_use]
        self._taken = [early for early in self._taken if early.is_in_use]
        if self._free:
            buffer = self._free.pop()
            reading = self._pool.submit(_read, backing, at, buffer.view[: pages * self._page])
            self._early = Early(region, pages, self._page, buffer, reading)

    def take_over(self, region: int) -> Early | None:
        """Some of this region is loaded: what was read of it, if anything, is for this load and no
        other.
        """
        if self._early is None or self._early.region != region:
            return None
        early, self._early = self._early, None
        self._taken.append(early)
        return early

    def forget(self, region: int) -> None:
        """The region is gone, and so may be its file."""
        if (early := self.take_over(region)) is not None:
            wait([early.read])


def _read(backing: Backing, at: int, into: memoryview) -> bool:
    try:
        backing.read(at, into)
    except OSError:
        return False  # who needs it reads it again, and hears why not
    return True
