"""Arena: ordinary NumPy arrays, larger than the memory they are given.

with tidegate.Arena(near="256MiB") as arena:
    a = arena.empty((10_000, 10_000), "f8")     # 800 MB behind 256 MB of RAM
    a += 1
    print(arena.stats())
"""

from __future__ import annotations

import atexit
import contextlib
import itertools
import math
import os
import sys
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
from tidegate.live.arena import files, process
from tidegate.live.arena.arguments import (
    check_memory,
    check_names,
    check_observation,
    check_options,
    check_watchdog,
    dims_of,
)
from tidegate.live.arena.connection import Connection, RequestError
from tidegate.live.arena.free_runs import FreeRuns
from tidegate.live.arena.peers import new_name
from tidegate.live.arena.setup import EVICTION, PREFETCH, ArenaSetup
from tidegate.live.arena.sharing import SharedArray, note_own
from tidegate.live.transfer import userfault
from tidegate.live.transfer.middle import Middle
from tidegate.live.transfer.page_state import SLOTS, PageFlags, SampledPages
from tidegate.live.transfer.store import ALIGN, Backing
from tidegate.trace.geometry import Geometry

SPAN = 256 * units.GiB  # addresses that an arena reserves for all its arrays together
LONGEST_NAME = 256  # characters; the statistics hold twenty names
Shape = int | tuple[int, ...]
_open_arenas: weakref.WeakSet[Arena] = weakref.WeakSet()


class _Allocation:
    """One object's bytes. An array holds its allocation, which holds the arena."""

    def __init__(self, arena: Arena, address: int, size: int, writable: bool):
        self._arena = arena
        self.__array_interface__ = {
            "version": 3,
            "data": (address, not writable),
            "shape": (size,),
            "typestr": "|u1",
        }


class _AllocationRef(weakref.ref[_Allocation]):
    """Notes in C that an allocation is gone: a finalizer in Python could swallow a Ctrl-C."""

    ident = -1  # the object's number


class Arena:
    """Memory of a bounded size behind arrays of any size; policies move the pages.

    ``near``: RAM that all arrays together may take. ``store``: the file for the rest, which is
    gone afterwards (in the temporary folder by default). ``eviction``, ``prefetch``,
    ``placement``: names of policies, as for the simulator. ``middle``: RAM for a tier of compressed
    pages between near memory and the store; ``tiering``: the policy that decides what goes there
    (tier-order by default). ``geometry``: PAGE/REGION. ``observed``, ``samples``: as for
    ``tidegate run``. ``observe_share``: of time, for observation. ``watchdog``: seconds that one
    call of a policy may take. ``span``: bytes of addresses to reserve.
    ``record``: keep a log of faults, of all or of so many at most.
    """

    def __init__(
        self,
        near: str | int,
        store: str | os.PathLike[str] | None = None,
        *,
        eviction: str = EVICTION,
        prefetch: str = PREFETCH,
        placement: str = "um",
        middle: str | int = 0,
        tiering: str | None = None,
        geometry: str | Geometry = "64KiB/2MiB",
        observed: int | None = None,
        samples: int = 0,
        observe_share: float = 0.03,
        watchdog: float = 5.0,
        span: str | int = SPAN,
        record: bool | int = False,
    ):
        self._state, self._pid = "opening", os.getpid()
        self.geometry = Geometry.parse(geometry) if isinstance(geometry, str) else geometry
        self.near, middle, span = units.size(near), units.size(middle), units.size(span)
        check_memory(self.geometry, self.near, middle)
        check_names(eviction=eviction, prefetch=prefetch, placement=placement, tiering=tiering)
        check_observation(observed, samples, observe_share)
        check_options(span, self.geometry, middle, tiering)
        check_watchdog(watchdog)
        setup = ArenaSetup(
            name=new_name(),
            page=self.geometry.page,
            region=self.geometry.region,
            pages=span // self.geometry.region * self.geometry.pages_per_region,
            frames=self.near // self.geometry.region,
            eviction=eviction,
            prefetch=prefetch,
            placement=placement,
            observed=observed,
            samples=samples,
            observe_share=observe_share,
            watchdog=watchdog,
            tiering=(tiering or "tier-order") if middle else "",
            middle_bytes=middle,
        )
        self._free = FreeRuns(setup.pages // self.geometry.pages_per_region)
        # objects that are not used any more, of which the pager does not know yet
        self._released: deque[int | _AllocationRef] = deque()
        self._refs: dict[int, _AllocationRef] = {}
        self._ids = itertools.count()
        self._objects: dict[int, dict[str, Any]] = {}
        self._recorded: list[dict[str, Any]] = []  # all objects that ever were, if record is set
        self._shared: set[int] = set()  # objects that other processes may use, until the end
        self._unwritten: set[int] = set()  # released objects whose changes could not be written
        try:
            with contextlib.ExitStack() as undo:
                uffd = self._reserve(setup, undo)
                self._open_files(setup, None if store is None else os.fspath(store), record, undo)
                self._connection = Connection(setup, undo)
                self._supervisor = self._connection.supervisor
                undo.callback(os.close, self._connection.memory)
                size = setup.pages * setup.page
                userfault.map_shared(self._base, size, self._connection.memory)
                uffd.register(self._base, size)
                self._undo = undo.pop_all()
        except OSError as error:
            raise TidegateError(f"the arena cannot be opened: {files.explain(error)}") from error
        self._state = "open"
        self._name = setup.name
        self._policies = " + ".join(filter(None, (eviction, prefetch, placement, setup.tiering)))
        self._finalizer = weakref.finalize(self, self._undo.close)
        self._finalizer.atexit = False  # see process.write_back
        _open_arenas.add(self)
        note_own(setup.name, self)

    def _reserve(self, setup: ArenaSetup, undo: contextlib.ExitStack) -> userfault.Userfault:
        """Reserve addresses, and open the descriptor by which their faults go to the pager."""
        size = setup.pages * setup.page
        uffd, self.serves_system_calls = userfault.Userfault.open()
        setup.uffd, setup.can_poison = uffd.fd, uffd.can_poison
        undo.callback(os.close, setup.uffd)
        setup.base = self._base = userfault.reserve(size)
        undo.callback(userfault.seal, self._base, size)
        return uffd

    def _open_files(
        self, setup: ArenaSetup, store: str | None, record: int, undo: contextlib.ExitStack
    ) -> None:
        """Open the store and all that outlives a pager."""
        setup.flags = PageFlags.create(setup.pages)
        undo.callback(os.close, setup.flags)
        setup.copies = SampledPages.create(setup.page, SLOTS)
        undo.callback(os.close, setup.copies)
        setup.store, setup.store_plain, self._folder = files.open_store(store)
        undo.callback(os.close, setup.store)
        undo.callback(os.close, setup.store_plain)
        self._store = setup.store_plain
        os.ftruncate(self._store, setup.pages * setup.page)
        setup.pidfd = os.pidfd_open(self._pid)
        undo.callback(os.close, setup.pidfd)
        if record:
            setup.log = os.memfd_create("tidegate-log", os.MFD_CLOEXEC)
            undo.callback(os.close, setup.log)
            setup.log_events = sys.maxsize if record is True else record
        self._log = setup.log
        if setup.middle_bytes:
            setup.middle = Middle.create(setup.pages, setup.page, setup.middle_bytes)
            undo.callback(os.close, setup.middle)

    def __repr__(self) -> str:
        if self._state == "opening":
            return "<Arena, not open>"
        gone = {r if isinstance(r, int) else r.ident for r in tuple(self._released)}
        held = [one["bytes"] for one in tuple(self._objects.values()) if one["id"] not in gone]
        arrays = f"{units.counted(len(held), 'array')} of {units.show_size(sum(held))}"
        state = "" if self._state == "open" else ", closed"
        return f"<Arena: {arrays} in {units.show_size(self.near)}, {self._policies}{state}>"

    def _repr_html_(self) -> str:
        from tidegate.live.arena.display import arena_html

        return arena_html(self)

    # Arrays

    def empty(
        self, shape: Shape, dtype: DTypeLike = float, name: str | None = None
    ) -> NDArray[Any]:
        """Return a new array. It reads as zeros, as fresh memory does."""
        return self._array(shape, dtype, name, None)

    zeros = empty

    def ones(self, shape: Shape, dtype: DTypeLike = float, name: str | None = None) -> NDArray[Any]:
        """Return a new array of ones."""
        return self.full(shape, 1, dtype, name)

    def full(
        self, shape: Shape, value: Any, dtype: DTypeLike | None = None, name: str | None = None
    ) -> NDArray[Any]:
        """Return a new array that holds ``value`` everywhere; its type, unless one is given."""
        made = self.empty(shape, np.asarray(value).dtype if dtype is None else dtype, name)
        made[...] = value
        return made

    def array(
        self, values: Any, dtype: DTypeLike | None = None, name: str | None = None
    ) -> NDArray[Any]:
        """Return a new array with these values: a list, an array, or anything NumPy reads."""
        given = np.asarray(values, dtype)
        made = self.empty(given.shape, given.dtype, name)
        made[...] = given
        return made

    def open(
        self,
        path: str | os.PathLike[str],
        dtype: DTypeLike | None = None,
        shape: Shape | None = None,
        mode: str = "r",
        offset: int = 0,
    ) -> NDArray[Any]:
        """Return a file as an array. A ``.npy`` file has its type and shape in it; of other files
        give the type, and the shape unless it is flat.

        ``mode``: ``r`` to read; ``r+`` to write changes back, at ``flush`` and ``close``.
        """
        if mode not in ("r", "r+"):
            raise TidegateError(f"mode must be r or r+, got '{mode}'")
        if offset == 0 and (head := files.npy_head(os.fspath(path))) is not None:
            return self._open_npy(path, head, dtype, shape, mode)
        if dtype is None:
            raise TidegateError(
                f"dtype must be given, because {path} is not a .npy file; give one such as f8"
            )
        return self._open_raw(path, np.dtype(dtype), shape, mode, offset)

    def _open_raw(
        self,
        path: str | os.PathLike[str],
        kind: np.dtype[Any],
        shape: Shape | None,
        mode: str,
        offset: int,
    ) -> NDArray[Any]:
        if offset < 0 or offset % ALIGN:
            raise TidegateError(f"offset must be a multiple of {ALIGN}, from 0 on, got {offset}")
        if kind.itemsize == 0:
            raise TidegateError(f"dtype must be a type with bytes, such as f8, got {kind}")
        descriptors = files.open_file(os.fspath(path), mode == "r+")
        try:
            there = max(0, os.fstat(descriptors[1]).st_size - offset)
            dims = dims_of(shape) if shape is not None else (there // kind.itemsize,)
            wanted = math.prod(dims) * kind.itemsize
            if wanted > there or wanted == 0:
                raise TidegateError(
                    f"{path} must have {wanted} bytes from {offset} on, got {there}; "
                    "give another shape or offset"
                )
            backing = Backing(*descriptors, offset, wanted, mode == "r+", scratch=False)
            return self._array(dims, kind, Path(path).name, backing)
        finally:
            for fd in descriptors:
                os.close(fd)

    def _open_npy(
        self,
        path: str | os.PathLike[str],
        head: files.NpyHead,
        dtype: DTypeLike | None,
        shape: Shape | None,
        mode: str,
    ) -> NDArray[Any]:
        """Return a .npy file as an array. The whole file is opened, because its data do not begin
        at a multiple of what direct transfers need.
        """
        wanted = None if dtype is None else np.dtype(dtype)
        head.check(path, wanted, None if shape is None else dims_of(shape))
        if head.bytes == 0:
            return np.empty(head.shape, head.dtype)
        raw = self._open_raw(path, np.dtype(np.uint8), None, mode, 0)
        data = raw[head.offset : head.offset + head.bytes].view(head.dtype)
        return data.reshape(head.shape, order="F" if head.fortran else "C")

    def _array(
        self, shape: Shape, dtype: DTypeLike, name: str | None, backing: Backing | None
    ) -> NDArray[Any]:
        kind, dims = np.dtype(dtype), dims_of(shape)
        if kind.hasobject:
            raise TidegateError(f"dtype must be of numbers, not of Python objects, got {kind}")
        size = math.prod(dims) * kind.itemsize
        if size == 0:
            return np.empty(dims, kind)
        ident, address = self.allocate(size, name, backing)
        writable = backing is None or backing.writable
        allocation = _Allocation(self, address, size, writable)
        ref = _AllocationRef(allocation, self._released.append)
        ref.ident = ident
        self._refs[ident] = ref
        raw: NDArray[Any] = np.asarray(allocation)
        return raw.view(kind.base).reshape(dims + kind.shape)

    def allocate(
        self, size: int, name: str | None = None, backing: Backing | None = None
    ) -> tuple[int, int]:
        """Return the number and the address of a new object, which ``release`` takes back."""
        if name is not None and len(name) > LONGEST_NAME:
            raise TidegateError(
                f"name must be of at most {LONGEST_NAME} characters, got {len(name)}"
            )
        self._check_open()
        self._send_removals()
        geometry = self.geometry
        regions = geometry.regions(size)
        first = self._free.take(regions)
        offset, length = first * geometry.region, regions * geometry.region
        fds = [] if backing is None else [backing.direct, backing.plain]
        if backing is None:
            try:
                files.reserve_space(self._store, offset, length, self._folder)
            except BaseException:
                self._free.give_back(first, regions)
                raise
            backing = Backing(-1, -1, offset, size, writable=True, scratch=True)
        ident = next(self._ids)
        one = self._objects[ident] = {
            "id": ident,
            "name": name or f"array{ident}",
            "bytes": size,
            "first_page": first * geometry.pages_per_region,
            "backing": backing.description(),
        }
        try:
            self._request({"do": "add", "object": one}, fds)
            userfault.set_writable(self._base + offset, length, backing.writable)
        except BaseException:  # refused, or interrupted: the pager may have it
            self._released.append(ident)
            raise
        if self._log >= 0:
            self._recorded.append(one)
        return ident, self._base + offset

    def release(self, ident: int) -> None:
        """Note that an object is not needed any more; the next call tells the pager."""
        self._released.append(ident)

    def _send_removals(self) -> None:
        while self._released:
            # it stays noted until the pager has answered: a Ctrl-C may come at any moment
            released = self._released[0]
            ident = released if isinstance(released, int) else released.ident
            if ident in self._shared:
                self._released.popleft()
                continue
            try:
                self._connection.request({"do": "remove", "id": ident})
            except RequestError as error:
                print(f"tidegate: {error}; flush and close will try again", file=sys.stderr)
                self._unwritten.add(ident)
            with contextlib.suppress(ValueError):  # another thread sent it, too
                self._released.remove(released)
            if ident in self._unwritten:
                continue
            self._refs.pop(ident, None)
            if one := self._objects.pop(ident, None):
                first = one["first_page"] // self.geometry.pages_per_region
                self._free.give_back(first, self.geometry.regions(one["bytes"]))

    # Verbs

    def prefetch(self, array: NDArray[Any]) -> None:
        """Bring these elements near, before they are used."""
        first, pages = self._pages(array)
        self._request({"do": "prefetch", "first": first, "pages": pages})

    def advise(self, array: NDArray[Any], prefer: str | None) -> None:
        """``"far"``: let these elements take no frames; None takes it back."""
        if prefer not in ("far", None):
            raise TidegateError(f"prefer must be 'far' or None, got '{prefer}'")
        first, pages = self._pages(array)
        self._request({"do": "advise", "first": first, "pages": pages, "far": prefer == "far"})

    def discard(self, array: NDArray[Any]) -> None:
        """Say that these elements' values are not needed any more, so that none is written back.

        Whole regions of the array read as zeros from now on; what lies in a region that is shared
        with other elements stays as it is. Only for arrays that are not of a file.
        """
        first, _ = self._pages(array)  # of this arena
        if not (array.flags.c_contiguous or array.flags.f_contiguous):
            raise TidegateError("discard needs a contiguous array, such as a[10:20]")
        o = self._object_at(first)
        if not o["backing"]["scratch"]:
            raise TidegateError(
                f"{o['name']} is a file, whose content must stay; discard an array that is not"
            )
        page, (begin, _) = self.geometry.page, self.addresses
        low, high = (at - begin for at in np.lib.array_utils.byte_bounds(array))
        if high == o["first_page"] * page + o["bytes"]:  # nothing else lies in its last page
            high += -high % page
        first = -(-low // page)
        if high // page > first:
            self._request({"do": "discard", "first": first, "pages": high // page - first})

    def share(self, array: NDArray[Any]) -> SharedArray:
        """Return a handle by which processes of the same user can read this array.

        Pickle it, and ``open`` it there. The array then stays until the arena is closed.
        """
        self._check_open()
        first, _ = self._pages(array)
        self._shared.add(self._object_at(first)["id"])
        return SharedArray.of(self._name, self._base, array)

    def _object_at(self, page: int) -> dict[str, Any]:
        """Return the object that has this page."""
        pages = self.geometry.pages
        return next(
            o
            for o in self._objects.values()
            if o["first_page"] <= page < o["first_page"] + pages(o["bytes"])
        )

    @contextlib.contextmanager
    def pin(self, array: NDArray[Any]) -> Iterator[NDArray[Any]]:
        """Keep these elements near and writable, for O_DIRECT, RDMA and other direct writes."""
        first, pages = self._pages(array)
        ppr = self.geometry.pages_per_region
        regions = {"first": first // ppr, "regions": -(-(first + pages) // ppr) - first // ppr}
        try:
            self._request({"do": "pin", **regions})
            yield array
        finally:
            if self._state == "open":
                self._request({"do": "unpin", **regions})

    def flush(self) -> None:
        """Write changes back to the files of ``open``; on return they are on storage."""
        self._request({"do": "flush"})
        self._released.extend(self._unwritten)  # their changes are written now
        self._unwritten.clear()
        self._send_removals()

    def settle(self) -> None:
        """Wait until every prefetch is done."""
        self._request({"do": "settle"})

    def stats(self) -> dict[str, Any]:
        """Return faults, evictions, bytes moved, and the objects with most faults."""
        if self._state == "closed":
            return self._last_stats
        return dict(self._request({"do": "stats"})["stats"])

    def close(self) -> None:
        """Write back and end the processes. Using an array afterwards is a SIGSEGV."""
        if not self.is_open:
            return
        try:
            answer, interrupt = self._connection.request_uninterrupted({"do": "close"})
            self._last_stats = dict(answer["stats"])
        finally:
            self._state = "closed"
            # detach, not call: at the interpreter's end a finalizer does nothing
            self._finalizer.detach()
            self._undo.close()
        if interrupt is not None:
            raise interrupt

    def __del__(self) -> None:
        try:
            self.close()
        except TidegateError as error:
            process.report(error)
        except Exception:  # at the interpreter's end anything may be missing
            pass

    def __enter__(self) -> Arena:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def is_open(self) -> bool:
        """Whether arrays can be made and used in this process."""
        return self._state == "open" and os.getpid() == self._pid

    # For scripts that run in an arena

    @property
    def addresses(self) -> tuple[int, int]:
        """The first address, and the one behind the last."""
        return self._base, self._base + self._free.size * self.geometry.region

    def finish(self) -> None:
        """Let each policy check its own books, as ``close`` does."""
        self._request({"do": "finish"})

    def leave_open(self) -> None:
        """Serve arrays until the process ends; no verb works any more."""
        self._finalizer.detach()
        self._connection.leave_open()
        self._state = "closed"

    def recorded(self) -> tuple[tuple[dict[str, Any], ...], NDArray[np.int32]]:
        """Return all objects that ever were, and the pager's log (script/recording.py)."""
        if self._log < 0:
            raise TidegateError("this arena records nothing; open it with record=True")
        events = np.frombuffer(os.pread(self._log, os.fstat(self._log).st_size, 0), np.int32)
        return tuple(self._recorded), events

    # Details

    def holds(self, array: NDArray[Any]) -> bool:
        """Return whether the array is of this arena."""
        low, high = np.lib.array_utils.byte_bounds(array)
        begin, end = self.addresses
        return begin <= low <= high <= end

    def _pages(self, array: NDArray[Any]) -> tuple[int, int]:
        if not isinstance(array, np.ndarray):
            raise TidegateError(
                f"expected an array of this arena, got {type(array).__name__}; "
                "make it with arena.empty or arena.open"
            )
        if not self.holds(array):
            raise TidegateError(
                "this array is not of this arena; make it with arena.empty or arena.open"
            )
        low, high = np.lib.array_utils.byte_bounds(array)
        begin, _ = self.addresses
        first = (low - begin) // self.geometry.page
        return first, max(1, -(-(high - begin) // self.geometry.page) - first)

    def _request(self, request: dict[str, Any], fds: list[int] | None = None) -> dict[str, Any]:
        self._check_open()
        self._send_removals()
        return self._connection.request(request, fds)

    def _check_open(self) -> None:
        if os.getpid() != self._pid:
            raise TidegateError(
                "this arena belongs to the process that opened it; a forked child cannot use it"
            )
        if self._state == "closed":
            raise TidegateError("this arena is closed")


os.register_at_fork(after_in_child=lambda: process.detach_child(list(_open_arenas)))
atexit.register(lambda: process.write_back(list(_open_arenas)))
