"""A kernel in a few lines, so that a pager can be killed between any two of its steps.

    Kernel    near memory (a real memory file), which small pages are mapped and which are
              write-protected; each change of it, of flags, copies and the store is one step
    Program   reads and writes as a program would: faults go to a real Pager, without processes

At any step a pager can die (``die_at``), and a second thread of the program can write to whatever
it may write to at that moment (``write_at``). The next pager finds what the last one left.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import socket
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from typing import Any
from unittest import mock

from tidegate.live.arena.setup import ArenaSetup
from tidegate.live.pager.calls import PolicyCalls
from tidegate.live.pager.pager import Pager, PagerState
from tidegate.live.transfer import carrier, mover, store
from tidegate.live.transfer.middle import Middle
from tidegate.live.transfer.page_state import SLOTS, PageFlags, SampledPages
from tidegate.live.transfer.store import Backing
from tidegate.live.transfer.userfault import SMALL_PAGE, Fault, data_pages, punch

BASE = 1 << 40
SMALL_PER_PAGE, PAGES_PER_REGION = 2, 4
PAGE = SMALL_PER_PAGE * SMALL_PAGE
REGION = PAGES_PER_REGION * PAGE
PAGES = 48  # of the whole arena
MOST_FAULTS = 100  # of one access


class Died(BaseException):
    """The pager is killed here."""


class Kernel:
    """Near memory. It takes the place of ``Userfault``, and is told of every other step."""

    fd, can_poison = -1, True

    def __init__(self, huge: bool = False) -> None:
        self.huge, self._solid = huge, set[int]()
        self.memory = os.memfd_create("near")
        os.ftruncate(self.memory, PAGES * PAGE)
        self.mapped: set[int] = set()  # small pages
        self.protected: set[int] = set()
        self.steps = 0
        self.die_at = -1
        self.between: Callable[[], None] = lambda: None  # the second thread

    def step(self) -> None:
        """Count one step; the pager may die in front of it."""
        self.steps += 1
        self.between()
        if self.steps == self.die_at:
            raise Died

    def holds(self, small: int) -> bool:
        """Return whether near memory has this small page."""
        return bool(data_pages(self.memory, small * SMALL_PAGE, SMALL_PAGE))

    # As Userfault

    def copy(self, to: int, source: int, size: int, protect: bool) -> None:
        for i, small in enumerate(self._small(to, size)):
            self.step()
            if not self.holds(small):
                data = ctypes.string_at(source + i * SMALL_PAGE, SMALL_PAGE)
                _pwrite(self.memory, data, small * SMALL_PAGE)
                self.mapped.add(small)
                (self.protected.add if protect else self.protected.discard)(small)

    def map_again(self, address: int, size: int, protect: bool) -> None:
        self.step()
        for small in self._small(address, size):
            if self.holds(small) and small not in self.mapped:
                self.mapped.add(small)
                (self.protected.add if protect else self.protected.discard)(small)

    def protect(self, address: int, size: int) -> None:
        self.step()
        self.protected.update(self._small(address, size))

    def unprotect(self, address: int, size: int) -> None:
        self.step()
        self.protected.difference_update(self._small(address, size))

    def unmap(self, address: int, size: int) -> None:
        self.step()
        self.mapped.difference_update(self._small(address, size))

    def wake(self, address: int, size: int) -> None: ...

    def poison(self, address: int, size: int) -> None:
        raise AssertionError("a page was lost")

    # Other steps

    def punch(self, fd: int, offset: int, size: int) -> None:
        if fd != self.memory:
            self.step()
            punch(fd, offset, size)
            return
        region = offset // REGION
        assert size == REGION or region not in self._solid, "a part of a huge page is punched"
        for small in range(offset // SMALL_PAGE, (offset + size) // SMALL_PAGE):
            self.step()
            punch(fd, small * SMALL_PAGE, SMALL_PAGE)
            self.mapped.discard(small)
            self.protected.discard(small)
        if size == REGION:
            self._solid.discard(region)

    def pwrite(self, fd: int, data: Any, offset: int) -> int:
        if fd != self.memory:
            return _pwrite(fd, data, offset)
        self.step()
        if not self.huge:
            return _pwrite(fd, data, offset)
        assert len(data) == REGION, "any other write could make zeros around it"
        assert not data_pages(fd, offset, REGION), "a huge page over others"
        self._solid.add(offset // REGION)
        for at in range(0, REGION, SMALL_PAGE):
            _pwrite(fd, data[at : at + SMALL_PAGE], offset + at)
            self.step()
        return REGION

    @staticmethod
    def _small(address: int, size: int) -> range:
        first = (address - BASE) // SMALL_PAGE
        return range(first, first + size // SMALL_PAGE)


_pwrite = os.pwrite


class NoReadAhead:
    """In place of asynchronous reads, which the model does not need."""

    works, started = False, ()

    def __init__(self, page: int): ...
    def take(self, page: int) -> None: ...
    def forget(self, pages: Any) -> int:
        return 0


class AtOnce:
    """A thread pool without threads."""

    def __init__(self, *_: Any): ...

    def submit(self, work: Callable[..., Any], *arguments: Any) -> Future[Any]:
        done: Future[Any] = Future()
        done.set_result(work(*arguments))
        return done


@contextlib.contextmanager
def patched(kernel: Kernel, in_threads: bool) -> Iterator[None]:
    """Let all that a pager changes be steps of this kernel."""

    def stepping(owner: Any, name: str) -> Any:
        before = getattr(owner, name)

        def called(*arguments: Any) -> Any:
            kernel.step()
            return before(*arguments)

        return mock.patch.object(owner, name, called)

    write = Backing.write

    def write_in_halves(self: Backing, at: int, data: memoryview) -> None:
        half = len(data) // 2 // SMALL_PAGE * SMALL_PAGE
        kernel.step()
        if half:
            write(self, at, data[:half])
            kernel.step()
        write(self, at + half, data[half:])

    with contextlib.ExitStack() as stack:
        changes = [
            *(stepping(PageFlags, name) for name in ("set_dirty", "set_stored", "set_in_doubt")),
            *(stepping(SampledPages, name) for name in ("put", "remove")),
            *(stepping(Middle, name) for name in ("put", "remove", "note_stored")),
            mock.patch.object(carrier, "Userfault", return_value=kernel),
            *(mock.patch.object(module, "punch", kernel.punch) for module in (carrier, mover)),
            mock.patch.object(os, "pwrite", kernel.pwrite),
            mock.patch.object(Backing, "write", write_in_halves),
            mock.patch.object(carrier, "PageReadAhead", NoReadAhead),
            *(mock.patch.object(m, "ThreadPoolExecutor", AtOnce) for m in (mover, store)),
        ]
        if in_threads:
            changes += [mock.patch.object(mover, "INLINE", 0)]
        for change in changes:
            stack.enter_context(change)
        yield


class Program:
    """A program with one array of its own and one file, and a pager that may die."""

    def __init__(self, kernel: Kernel, eviction: str, prefetch: str, middle: int = 0):
        self.kernel, self._restarts = kernel, 0
        self._files = contextlib.ExitStack()
        scratch, self.file = (self._temporary_file() for _ in range(2))
        os.ftruncate(scratch, PAGES * PAGE)
        self._setup = ArenaSetup(
            name="model",
            page=PAGE,
            region=REGION,
            pages=PAGES,
            frames=2,
            eviction=eviction,
            prefetch=prefetch,
            placement="um",
            observed=None,
            samples=1,
            observe_share=1.0,
            watchdog=1e6,
            tiering="tier-order" if middle else "",
            middle_bytes=middle,
            base=BASE,
            memory=kernel.memory,
            huge=kernel.huge,
            flags=PageFlags.create(PAGES),
            copies=SampledPages.create(PAGE, SLOTS),
            store=scratch,
            store_plain=scratch,
            middle=Middle.create(PAGES, PAGE, middle) if middle else -1,
        )
        regions = PAGES // PAGES_PER_REGION // 2
        size = regions * REGION - SMALL_PAGE  # the last page is not whole
        os.ftruncate(self.file, size)
        own = {"offset": 0, "size": size, "writable": True, "scratch": True}
        self._objects = {
            0: {"id": 0, "name": "own", "bytes": size, "first_page": 0, "backing": own},
            1: {
                "id": 1,
                "name": "file",
                "bytes": size,
                "first_page": regions * PAGES_PER_REGION,
                "backing": own | {"scratch": False},
            },
        }
        begins = (0, regions * REGION // SMALL_PAGE)
        # the right value of every small page
        self.right = {b + i: 0 for b in begins for i in range(size // SMALL_PAGE)}
        self.small = sorted(self.right)
        self._file_begins = begins[1]
        self.pager = self._start()

    def _temporary_file(self) -> int:
        fd = os.open(tempfile.gettempdir(), os.O_TMPFILE | os.O_RDWR)
        self._files.callback(os.close, fd)
        return fd

    def _start(self) -> Pager:
        state = PagerState(self._objects, {1: (self.file, self.file)}, self._restarts)
        self._control, theirs = socket.socketpair()
        self._files.callback(self._control.close)
        self._files.callback(theirs.close)
        return Pager(self._setup, theirs, state, PolicyCalls())

    def close(self) -> None:
        self._files.close()
        middle = [self._setup.middle] if self._setup.middle >= 0 else []
        for fd in (self._setup.memory, self._setup.flags, self._setup.copies, *middle):
            os.close(fd)

    def attempt(self, work: Callable[[], Any]) -> Any:
        """Do this, with a new pager as often as one dies."""
        while True:
            try:
                return work()
            except Died:
                self._restarts += 1
                while True:
                    try:
                        self.pager = self._start()
                        break
                    except Died:
                        self._restarts += 1

    # Accesses

    def write(self, small: int, value: int) -> None:
        self._until_possible(small, True)
        self._put(small, value)

    def check(self, small: int) -> None:
        self._until_possible(small, False)
        data = os.pread(self.kernel.memory, SMALL_PAGE, small * SMALL_PAGE)
        right = self.right[small]
        assert data == bytes([right]) * SMALL_PAGE, f"small page {small}: {data[:1]!r} for {right}"

    def write_if_possible(self, small: int, value: int) -> None:
        """What a thread can do while the pager is in the middle of something."""
        possible = small in self.kernel.mapped and small not in self.kernel.protected
        if possible and self.kernel.holds(small):
            self._put(small, value)

    def _put(self, small: int, value: int) -> None:
        _pwrite(self.kernel.memory, bytes([value]) * SMALL_PAGE, small * SMALL_PAGE)
        self.right[small] = value

    def _until_possible(self, small: int, write: bool) -> None:
        address, kernel = BASE + small * SMALL_PAGE, self.kernel
        for _ in range(MOST_FAULTS):
            if not kernel.holds(small):
                event = Fault(address, write, False, False)
            elif small not in kernel.mapped:
                event = Fault(address, write, False, True)
            elif write and small in kernel.protected:
                event = Fault(address, True, True, False)
            else:
                return
            self.attempt(lambda event=event: self._turn([event]))
        raise AssertionError(f"small page {small} faults for ever")

    def _turn(self, events: list[Fault]) -> None:
        self.pager._take_turn(events)
        while self.pager._left_over or self.pager._engine.queue:
            self.pager._take_turn([])
        self.pager._mover.reap()

    # Verbs

    def verb(self, name: str, small: int = 0) -> None:
        page = small // SMALL_PER_PAGE
        request: dict[str, Any] = {"first": page, "pages": 3}
        if name in ("pin", "unpin"):
            request = {"first": page // PAGES_PER_REGION, "regions": 1}
        elif name in ("far", "not-far"):
            request["far"], name = name == "far", "advise"
        self.attempt(lambda: getattr(self.pager, f"_do_{name}")(request, []))
        self.attempt(lambda: self._turn([]))

    def discard(self, small: int) -> None:
        """Discard the region of this small page, which nobody writes to meanwhile."""
        region = small // SMALL_PER_PAGE // PAGES_PER_REGION
        first = region * PAGES_PER_REGION
        request = {"first": first, "pages": PAGES_PER_REGION}
        self.attempt(lambda: self.pager._do_discard(request, []))
        for i in range(PAGES_PER_REGION * SMALL_PER_PAGE):
            self.right[first * SMALL_PER_PAGE + i] = 0

    def check_all(self) -> None:
        """Check each byte, in near memory and, after a flush, in the file."""
        for small in self.small:
            self.check(small)
        self.verb("flush")
        for small in (s for s in self.small if s >= self._file_begins):
            at = (small - self._file_begins) * SMALL_PAGE
            assert os.pread(self.file, SMALL_PAGE, at) == bytes([self.right[small]]) * SMALL_PAGE
