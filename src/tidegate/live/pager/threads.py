"""Threads that fault: each gets on, whatever the policies answer.

A policy that evicts the most recent (``mru``, ``loop``) takes a page from the thread that it was
brought for before that thread has run, and two threads do so to each other for ever. Therefore:

held       the region of a thread's latest fault is no victim until the thread faults again (then it
           has run), or until HELD_TURNS turns have passed
livelock   the same few faults of one thread, again and again: it needs several regions at a time

A single thread has always run before another victim is needed, so nothing is held for it, and its
faults and victims are those of the simulation.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field

# A thread that was woken runs within milliseconds, in which a pager takes a few turns; on a busy
# machine it takes longer. A thread that ends with its region held costs one frame for so long.
HELD_TURNS = 256
# A livelock is so many faults in a row, each of pages that were among the latest of their thread to
# fault. A processor can need several regions at a time, which a simulated block never does: two
# operands, or the columns of a table. A policy that always evicts one of the latest regions (mru,
# loop) would evict them in turn for ever.
LIVELOCK_FAULTS, LIVELOCK_LATEST, LIVELOCK_MOST = 12, 3, 16
MOST_THREADS = 1024  # that are remembered
UNKNOWN = 0  # the thread of a fault that nobody noted


@dataclass
class FaultingThread:
    """What one thread waits for, or waited for last."""

    latest: deque[tuple[int, int]]  # regions with pages
    region: int = -1
    turn: int = 0
    repeated: int = 0  # faults in a row that were among the latest


@dataclass
class Threads:
    """The threads of an arena's programs. ``watched``: faults of each that are remembered."""

    watched: int
    turn: int = 0
    held: frozenset[int] = frozenset()
    _threads: dict[int, FaultingThread] = field(default_factory=dict)
    # by region: pages that threads wait for
    _waiting: dict[int, dict[int, int]] = field(default_factory=dict)

    @classmethod
    def for_frames(cls, frames: int) -> Threads:
        """Watch fewer faults than a loop has that goes over a few frames: none is a livelock."""
        return cls(max(LIVELOCK_LATEST, min(LIVELOCK_MOST, frames // 4)))

    def note_fault(self, thread: int, region: int, page: int) -> None:
        """Note that a thread waits for this page of a region (a bit), so that it has run before."""
        pages = self._waiting.setdefault(region, {})
        pages[thread] = pages.get(thread, 0) | page
        self.note_use(thread, region)

    def note_use(self, thread: int, region: int) -> None:
        """Note that a thread is about to use a region that is near."""
        found = self._thread(thread)
        found.region, found.turn = region, self.turn

    def begin(self, turn: int) -> None:
        """Begin a turn: hold the regions of threads that may not have run yet."""
        self.turn = turn
        if len(self._threads) < 2:
            self.held = frozenset()
            return
        latest = [t.region for t in self._threads.values() if t.turn >= turn - HELD_TURNS]
        self.held = frozenset(latest) if len(latest) > 1 else frozenset()

    def serve(self, region: int, faulted: int) -> None:
        """Note that a region without a frame is about to be brought."""
        for thread, pages in self._waiting.get(region, {UNKNOWN: faulted}).items():
            found = self._thread(thread)
            found.region, found.turn = region, self.turn
            found.repeated = found.repeated + 1 if (region, pages) in found.latest else 0
            found.latest.append((region, pages))

    def end(self, left: Mapping[int, int]) -> None:
        """End a turn which has left these regions' faults for the next."""
        if self._waiting:
            self._waiting = {r: w for r, w in self._waiting.items() if r in left}

    @property
    def in_livelock(self) -> bool:
        """Whether a thread repeats its faults."""
        recent = (t for t in self._threads.values() if t.turn >= self.turn - HELD_TURNS)
        return any(t.repeated >= LIVELOCK_FAULTS for t in recent)

    def _thread(self, number: int) -> FaultingThread:
        found = self._threads.get(number)
        if found is None:
            if len(self._threads) >= MOST_THREADS:  # most of them have ended
                since = self.turn - HELD_TURNS
                self._threads = {n: t for n, t in self._threads.items() if t.turn >= since}
            found = self._threads[number] = FaultingThread(deque(maxlen=self.watched))
        return found
