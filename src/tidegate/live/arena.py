"""Arena: ordinary NumPy arrays, larger than the memory they are given.

with tidegate.Arena(near="256MiB", eviction="tournament", prefetch="fdp+rgp") as arena:
    a = arena.empty((10_000, 10_000), "f8")     # 800 MB behind 256 MB of RAM
    a += 1
    print(arena.stats())
"""

from __future__ import annotations

import contextlib
import faulthandler
import fcntl
import itertools
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import weakref
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from tidegate import units
from tidegate.errors import TidegateError
from tidegate.live import store as far
from tidegate.live import userfault
from tidegate.live.kept import Kept
from tidegate.live.middle import Middle
from tidegate.live.setup import Setup
from tidegate.live.space import Space
from tidegate.mechanism.geometry import Geometry

SPAN = 256 * units.GiB  # addresses an arena reserves: what all its arrays together may take
_MESSAGE = 1 << 17
_F_SETSIG = 10
_numbers = itertools.count()
_open_arenas: weakref.WeakSet[Arena] = weakref.WeakSet()


class _Lease:
    """One object's memory. An array made from it keeps it alive; when it goes, so does the object."""

    def __init__(self, address: int, shape: tuple[int, ...], dtype: np.dtype[Any], writable: bool):
        self.__array_interface__ = {
            "version": 3, "data": (address, not writable), "shape": shape, "typestr": dtype.str, "descr": dtype.descr,
        }  # fmt: skip


class Arena:
    """Memory of a bounded size, behind arrays of any size; policies move the pages.

    ``near``: RAM that all arrays together may take. ``store``: where the rest is kept, a file that is gone
    afterwards (in the temporary folder if not said). ``eviction``, ``prefetch``, ``placement``: policies by name,
    the same that are simulated. ``middle``: RAM for a tier of compressed pages between near memory and the store, and
    ``tiering``, who decides what goes there. ``geometry``: PAGE/REGION. ``observed``, ``samples``: as for ``tidegate run``.
    """

    def __init__(
        self,
        near: str | int,
        store: str | os.PathLike[str] | None = None,
        *,
        eviction: str = "lru",
        prefetch: str = "none",
        placement: str = "um",
        middle: str | int = 0,
        tiering: str = "tier-order",
        geometry: str | Geometry = "64KiB/2MiB",
        observed: int | None = None,
        samples: int = 0,
        span: str | int = SPAN,
        record: bool = False,
        _keep_victims: bool = False,
    ):
        self.geometry = Geometry.parse(geometry) if isinstance(geometry, str) else geometry
        self.near = units.size(near)
        frames = self.near // self.geometry.region
        middle_bytes = units.size(middle)
        _check(self.geometry, frames, self.near, middle_bytes)
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._gone: deque[int] = deque()  # objects whose arrays are gone and that the pager has yet to hear of
        self._ids = itertools.count()
        self._objects: dict[int, dict[str, Any]] = {}
        self._recorded: list[dict[str, Any]] = []  # all objects that ever were, if they are to be recorded
        self._state = "opening"
        with contextlib.ExitStack() as undo:
            setup = self._prepare(units.size(span), store, record, undo)
            setup.frames, setup.keep_victims = frames, _keep_victims
            setup.eviction, setup.prefetch, setup.placement = eviction, prefetch, placement
            setup.observed, setup.samples = observed, samples
            if middle_bytes:
                setup.middle, setup.middle_bytes = Middle.create(setup.pages, setup.page, middle_bytes), middle_bytes
                setup.tiering = tiering
                undo.callback(os.close, setup.middle)
            self._start(setup, undo)
            self._undo = undo.pop_all()
        self._state = "open"
        self._finalizer = weakref.finalize(self, self._undo.close)
        _open_arenas.add(self)

    def _prepare(self, span: int, store: str | os.PathLike[str] | None, record: bool, undo: contextlib.ExitStack) -> Setup:
        """Memory, its addresses and all descriptors."""
        geometry = self.geometry
        pages = span // geometry.region * geometry.pages_per_region
        size = pages * geometry.page
        self._space = Space(pages // geometry.pages_per_region)
        self._userfault, self.serves_system_calls = userfault.Userfault.open()
        undo.callback(os.close, self._userfault.fd)
        memory = os.memfd_create("tidegate-near", os.MFD_CLOEXEC)
        undo.callback(os.close, memory)
        os.ftruncate(memory, size)
        self._base = userfault.reserve(size)
        undo.callback(userfault.seal, self._base, size)
        userfault.map_shared(self._base, size, memory)
        self._userfault.register(self._base, size)
        kept = Kept.create(pages)
        undo.callback(os.close, kept)
        direct, plain, self._folder = far.open_scratch(None if store is None else os.fspath(store))
        self._store = plain
        undo.callback(os.close, direct)
        undo.callback(os.close, plain)
        os.ftruncate(plain, size)
        pidfd = os.pidfd_open(os.getpid())
        undo.callback(os.close, pidfd)
        pagemap = os.open("/proc/self/pagemap", os.O_RDONLY | os.O_CLOEXEC)
        undo.callback(os.close, pagemap)
        self._log = -1
        if record:
            self._log = os.memfd_create("tidegate-log", os.MFD_CLOEXEC)
            undo.callback(os.close, self._log)
        return Setup(
            page=geometry.page, region=geometry.region, pages=pages, base=self._base, frames=0, eviction="", prefetch="",
            placement="", observed=None, samples=0, uffd=self._userfault.fd, can_poison=self._userfault.can_poison,
            memory=memory, kept=kept, pidfd=pidfd, pagemap=pagemap, store=direct, store_plain=plain, lifeline=-1,
            log=self._log, name=f"tidegate-live-{os.getuid()}-{os.getpid()}-{next(_numbers)}",
        )  # fmt: skip

    def _start(self, setup: Setup, undo: contextlib.ExitStack) -> None:
        """Start the supervisor and hear whether it likes its orders."""
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        undo.callback(self._control.close)
        self._lifeline, setup.lifeline = os.pipe()
        undo.callback(os.close, self._lifeline)
        package = str(Path(__file__).parents[2])
        paths = [package, *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
        self._supervisor = subprocess.Popen(
            [sys.executable, "-m", "tidegate.live.supervisor", setup.text(), str(theirs.fileno())],
            pass_fds=[*setup.descriptors, theirs.fileno()], stdin=subprocess.DEVNULL, start_new_session=True,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(paths)},
        )  # fmt: skip
        undo.callback(_end, self._supervisor, self._control)
        theirs.close()
        os.close(setup.lifeline)
        answer = self._control.recv(_MESSAGE)
        if not answer:
            raise TidegateError("the supervisor of the arena did not start; see what it wrote to stderr")
        if "error" in (said := json.loads(answer)):
            raise TidegateError(said["error"])
        # if the supervisor dies, the kernel itself sends SIGBUS: no Python here may be able to run
        fcntl.fcntl(self._lifeline, _F_SETSIG, signal.SIGBUS)
        fcntl.fcntl(self._lifeline, fcntl.F_SETOWN, os.getpid())
        fcntl.fcntl(self._lifeline, fcntl.F_SETFL, os.O_ASYNC | os.O_NONBLOCK)
        undo.callback(fcntl.fcntl, self._lifeline, fcntl.F_SETFL, os.O_NONBLOCK)  # before the supervisor is let go

    # Arrays

    def empty(self, shape: int | tuple[int, ...], dtype: DTypeLike = float, name: str | None = None) -> NDArray[Any]:
        """A new array. It reads as zeros, as fresh memory does."""
        return self._array(shape, dtype, name, None, None)

    zeros = empty

    def open(self, path: str | os.PathLike[str], dtype: DTypeLike, shape: int | tuple[int, ...] | None = None,
             mode: str = "r", offset: int = 0) -> NDArray[Any]:  # fmt: skip
        """A file as an array: ``r`` to read, ``r+`` to write back what is changed (at ``flush`` and ``close``)."""
        if mode not in ("r", "r+"):
            raise TidegateError(f"mode '{mode}' is not known; expected r or r+")
        if offset % far.ALIGN:
            raise TidegateError(f"an offset of {offset} bytes is not a multiple of {far.ALIGN}")
        descriptors = far.open_file(os.fspath(path), mode == "r+")
        try:
            there = os.fstat(descriptors[1]).st_size - offset
            kind = np.dtype(dtype)
            dims = _dims(shape) if shape is not None else (max(0, there) // kind.itemsize,)
            wanted = int(np.prod(dims)) * kind.itemsize
            if wanted > there or wanted == 0:
                raise TidegateError(f"{path} has {max(0, there)} bytes from {offset} on; an array of {wanted} was asked for")
            backing = far.Backing(*descriptors, offset, wanted, mode == "r+", scratch=False)
            return self._array(dims, kind, Path(path).name, backing, list(descriptors))
        finally:
            for fd in descriptors:
                os.close(fd)

    def _array(self, shape: int | tuple[int, ...], dtype: DTypeLike, name: str | None, backing: far.Backing | None,
               fds: list[int] | None) -> NDArray[Any]:  # fmt: skip
        kind, dims = np.dtype(dtype), _dims(shape)
        if kind.hasobject:
            raise TidegateError(f"dtype {kind} holds Python objects, which cannot leave memory; expected numbers")
        size = int(np.prod(dims)) * kind.itemsize
        if size == 0:
            return np.empty(dims, kind)
        ident, address = self.allocate(size, name, backing, fds)
        writable = backing is None or backing.writable
        lease = _Lease(address, dims, kind, writable)
        weakref.finalize(lease, _release, weakref.ref(self), ident).atexit = False
        array = np.asarray(lease)
        if not writable:
            array.flags.writeable = False
        return array

    def allocate(self, size: int, name: str | None = None, backing: far.Backing | None = None,
                 fds: list[int] | None = None) -> tuple[int, int]:  # fmt: skip
        """Room for ``size`` bytes: the object's number and its address. ``release`` takes it back."""
        self._check_open()
        geometry = self.geometry
        self._tell_gone()
        regions = geometry.regions(size)
        first = self._space.take(regions)
        try:
            if backing is None:
                far.make_space(self._store, first * geometry.region, regions * geometry.region, self._folder)
                backing = far.Backing(-1, -1, first * geometry.region, size, writable=True, scratch=True)
            ident = next(self._ids)
            one = {
                "id": ident, "name": name or f"array{ident}", "bytes": size,
                "first_page": first * geometry.pages_per_region, "backing": far.describe(backing),
            }  # fmt: skip
            self._ask({"do": "add", "object": one}, fds or [])
        except BaseException:
            self._space.give_back(first, regions)
            raise
        self._objects[ident] = one
        if self._log >= 0:
            self._recorded.append(one)
        address = self._base + first * geometry.region
        userfault.set_writable(address, regions * geometry.region, backing.writable)
        return ident, address

    def release(self, ident: int) -> None:
        """The object is not needed any more; told to the pager now, or when it can be."""
        self._gone.append(ident)
        if self._state == "open" and self._lock.acquire(blocking=False):
            self._lock.release()
            self._tell_gone()

    def _tell_gone(self) -> None:
        while self._gone:
            ident = self._gone.popleft()
            one = self._objects.pop(ident)
            self._ask({"do": "remove", "id": ident})
            self._space.give_back(one["first_page"] // self.geometry.pages_per_region, self.geometry.regions(one["bytes"]))

    # Verbs

    def prefetch(self, array: NDArray[Any]) -> None:
        """Bring these elements near, before they are used."""
        first, pages = self._pages(array)
        self._ask({"do": "prefetch", "first": first, "pages": pages})

    def advise(self, array: NDArray[Any], prefer: str | None) -> None:
        """``"far"``: these elements are seldom used and shall take no frames; None takes it back."""
        if prefer not in ("far", None):
            raise TidegateError(f"prefer='{prefer}' is not known; expected 'far' or None")
        first, pages = self._pages(array)
        self._ask({"do": "advise", "first": first, "pages": pages, "far": prefer == "far"})

    @contextlib.contextmanager
    def pin(self, array: NDArray[Any]) -> Iterator[NDArray[Any]]:
        """Keep these elements near and writable: for O_DIRECT, RDMA, and whatever else writes behind the kernel's back."""
        first, pages = self._pages(array)
        ppr = self.geometry.pages_per_region
        asked = {"first": first // ppr, "regions": -(-(first + pages) // ppr) - first // ppr}
        try:
            self._ask({"do": "hold", **asked})
            yield array
        finally:
            if self._state == "open":
                self._ask({"do": "let_go", **asked})

    def flush(self) -> None:
        """Write what was changed back to the files of ``open``; when this returns it is on storage."""
        self._ask({"do": "flush"})

    def stats(self) -> dict[str, Any]:
        """Faults, evictions, bytes moved, and the objects with most faults."""
        if self._state == "closed":
            return self._last_stats
        return dict(self._ask({"do": "stats"})["stats"])

    @property
    def addresses(self) -> tuple[int, int]:
        """The first address, and the first behind the last."""
        return self._base, self._base + self._space.regions * self.geometry.region

    def leave_open(self) -> None:
        """Close when the process ends, no earlier: arrays may be used until then. No verb works any more."""
        self._finalizer.detach()
        self._control.detach()  # hanging up would end the supervisor
        self._state = "closed"

    def settle(self) -> None:
        """Wait until every prefetch is done."""
        self._ask({"do": "settle"})

    def victims(self) -> list[int]:
        """Regions evicted so far, in order, if they were to be kept: for tests."""
        found: list[int] = []
        while part := self._ask({"do": "victims", "from": len(found)})["victims"]:
            found += part
        return found

    def recorded(self) -> tuple[tuple[dict[str, Any], ...], NDArray[np.int32]]:
        """All objects that ever were, and what the pager logged (``recorded.py`` reads it); if the arena records."""
        if self._log < 0:
            raise TidegateError("this arena records nothing; open it with record=True")
        events = np.frombuffer(os.pread(self._log, os.fstat(self._log).st_size, 0), np.int32)
        return tuple(self._recorded), events

    def close(self) -> None:
        """Write back, end the processes. Arrays of this arena must not be used any more: that is a SIGSEGV."""
        if self._state != "open" or os.getpid() != self._pid:
            return
        try:
            self._last_stats = dict(self._ask({"do": "close"})["stats"])
        finally:
            self._state = "closed"
            self._finalizer()

    def __enter__(self) -> Arena:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    # Details

    def _pages(self, array: NDArray[Any]) -> tuple[int, int]:
        low, high = np.lib.array_utils.byte_bounds(array)
        low, high = low - self._base, high - self._base
        if not 0 <= low <= high <= self._space.regions * self.geometry.region:
            raise TidegateError("this array is not of this arena; make it with arena.empty, or open it")
        first = low // self.geometry.page
        return first, max(1, -(-high // self.geometry.page) - first)

    def _ask(self, request: dict[str, Any], fds: list[int] | None = None) -> dict[str, Any]:
        self._check_open()
        with self._lock:
            try:
                socket.send_fds(self._control, [json.dumps(request).encode()], fds or [])
                data = self._control.recv(_MESSAGE)
            except OSError:
                data = b""
        if not data:
            raise TidegateError("the arena's pager is gone; what was flushed is intact, the rest is lost")
        answer: dict[str, Any] = json.loads(data)
        if "error" in answer:
            raise TidegateError(answer["error"])
        return answer

    def _check_open(self) -> None:
        if os.getpid() != self._pid:
            raise TidegateError("this arena belongs to the process that opened it; a forked child cannot use it")
        if self._state == "closed":
            raise TidegateError("this arena is closed")


def _end(supervisor: subprocess.Popen[bytes], control: socket.socket) -> None:
    """Hang up, which ends the supervisor and its pager."""
    with contextlib.suppress(OSError):
        control.shutdown(socket.SHUT_WR)
    try:
        supervisor.wait(timeout=10)
    except subprocess.TimeoutExpired:
        supervisor.kill()
        supervisor.wait()


def _release(arena: weakref.ref[Arena], ident: int) -> None:
    if (found := arena()) is not None and found._state == "open" and os.getpid() == found._pid:
        with contextlib.suppress(TidegateError):
            found.release(ident)


def _check(geometry: Geometry, frames: int, near: int, middle: int) -> None:
    if sys.platform != "linux":
        raise TidegateError("live memory needs Linux's userfaultfd")
    if geometry.page % userfault.SMALL_PAGE:
        raise TidegateError(f"a page of {geometry.page} bytes is not a multiple of the system's {userfault.SMALL_PAGE}")
    if frames < 2:
        raise TidegateError(
            f"near memory of {units.show_size(near)} is less than two regions of {units.show_size(geometry.region)}; "
            "give more, or a smaller region with geometry="
        )
    if 0 < middle < geometry.page:
        raise TidegateError(
            f"a middle of {units.show_size(middle)} holds no page of {units.show_size(geometry.page)}; give more"
        )


def _dims(shape: int | tuple[int, ...]) -> tuple[int, ...]:
    dims = (int(shape),) if isinstance(shape, int | np.integer) else tuple(int(n) for n in shape)
    if any(n < 0 for n in dims):
        raise TidegateError(f"shape {dims} has a negative length")
    return dims


def _forked() -> None:
    """In a forked child: the arrays are not there (their use is a SIGSEGV, which is said then), nor is the arena."""
    for arena in list(_open_arenas):
        arena._finalizer.detach()
        arena._control.close()
        if not faulthandler.is_enabled():
            faulthandler.enable()


os.register_at_fork(after_in_child=_forked)
