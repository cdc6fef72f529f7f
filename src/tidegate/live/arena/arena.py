"""Arena: ordinary NumPy arrays, larger than the memory they are given.

with tidegate.Arena(near="256MiB", eviction="tournament", prefetch="fdp+rgp") as arena:
    a = arena.empty((10_000, 10_000), "f8")     # 800 MB behind 256 MB of RAM
    a += 1
    print(arena.stats())
"""

from __future__ import annotations

import atexit
import contextlib
import faulthandler
import itertools
import math
import os
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
from tidegate.live.arena.arguments import check_choices, check_memory, check_names, dims_of
from tidegate.live.arena.connection import Connection
from tidegate.live.arena.setup import Setup
from tidegate.live.arena.space import Space
from tidegate.live.transfer import store as far
from tidegate.live.transfer import userfault
from tidegate.live.transfer.middle import Middle
from tidegate.live.transfer.page_flags import Kept
from tidegate.live.transfer.sampled_pages import SLOTS, Aside
from tidegate.trace.geometry import Geometry

SPAN = 256 * units.GiB  # addresses an arena reserves: what all its arrays together may take
_numbers = itertools.count()
_open_arenas: weakref.WeakSet[Arena] = weakref.WeakSet()


class _Lease:
    """One object's bytes.

    An array made from them keeps this alive, and this the arena; when it goes, so does the object.
    """

    def __init__(self, arena: Arena, address: int, size: int, writable: bool):
        self._arena = arena
        self.__array_interface__ = {
            "version": 3,
            "data": (address, not writable),
            "shape": (size,),
            "typestr": "|u1",
        }


class _Watch(weakref.ref[_Lease]):
    """Notes that a lease is gone, in C alone: a Ctrl-C that landed in a finalizer written in Python
    would be lost.
    """

    ident = -1  # until it is said


class Arena:
    """Memory of a bounded size, behind arrays of any size; policies move the pages.

    ``near``: RAM that all arrays together may take. ``store``: where the rest is kept, a file that
    is gone afterwards (in the temporary folder if not said). ``eviction``, ``prefetch``,
    ``placement``: policies by name, the same that are simulated. ``middle``: RAM for a tier of
    compressed pages between near memory and the store, and ``tiering``, who decides what goes there
    (tier-order if not said). ``geometry``: PAGE/REGION. ``observed``, ``samples``: as for
    ``tidegate run``.
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
        tiering: str | None = None,
        geometry: str | Geometry = "64KiB/2MiB",
        observed: int | None = None,
        samples: int = 0,
        span: str | int = SPAN,
        record: bool = False,
        _keep_victims: bool = False,
    ):
        self._state, self._pid = "opening", os.getpid()
        self.geometry = Geometry.parse(geometry) if isinstance(geometry, str) else geometry
        self.near = units.size(near)
        frames = self.near // self.geometry.region
        middle_bytes = units.size(middle)
        check_memory(self.geometry, frames, self.near, middle_bytes)
        check_names(eviction=eviction, prefetch=prefetch, placement=placement, tiering=tiering)
        check_choices(observed, samples, units.size(span), self.geometry, middle_bytes, tiering)
        # whose arrays are gone and that the pager has yet to hear of
        self._gone: deque[int | _Watch] = deque()
        self._watches: dict[int, _Watch] = {}
        self._ids = itertools.count()
        self._objects: dict[int, dict[str, Any]] = {}
        # all objects that ever were, if they are to be recorded
        self._recorded: list[dict[str, Any]] = []
        with contextlib.ExitStack() as undo:
            setup = self._prepare(units.size(span), store, record, undo)
            setup.frames, setup.keep_victims = frames, _keep_victims
            setup.eviction, setup.prefetch, setup.placement = eviction, prefetch, placement
            setup.observed, setup.samples = observed, samples
            if middle_bytes:
                setup.middle, setup.middle_bytes = (
                    Middle.create(setup.pages, setup.page, middle_bytes),
                    middle_bytes,
                )
                setup.tiering = tiering or "tier-order"
                undo.callback(os.close, setup.middle)
            self._line = Connection(setup, undo)
            self._supervisor = self._line.supervisor
            self._undo = undo.pop_all()
        self._state = "open"
        self._finalizer = weakref.finalize(self, self._undo.close)
        self._finalizer.atexit = False  # see _close_all
        _open_arenas.add(self)

    def _prepare(
        self,
        span: int,
        store: str | os.PathLike[str] | None,
        record: bool,
        undo: contextlib.ExitStack,
    ) -> Setup:
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
        aside = Aside.create(geometry.page, SLOTS)
        undo.callback(os.close, aside)
        direct, plain, self._folder = far.open_scratch(None if store is None else os.fspath(store))
        self._store = plain
        undo.callback(os.close, direct)
        undo.callback(os.close, plain)
        os.ftruncate(plain, size)
        pidfd = os.pidfd_open(os.getpid())
        undo.callback(os.close, pidfd)
        self._log = -1
        if record:
            self._log = os.memfd_create("tidegate-log", os.MFD_CLOEXEC)
            undo.callback(os.close, self._log)
        return Setup(
            page=geometry.page,
            region=geometry.region,
            pages=pages,
            base=self._base,
            frames=0,
            eviction="",
            prefetch="",
            placement="",
            observed=None,
            samples=0,
            uffd=self._userfault.fd,
            can_poison=self._userfault.can_poison,
            memory=memory,
            kept=kept,
            aside=aside,
            pidfd=pidfd,
            store=direct,
            store_plain=plain,
            lifeline=-1,
            log=self._log,
            name=f"tidegate-live-{os.getuid()}-{os.getpid()}-{next(_numbers)}",
        )

    # Arrays

    def empty(
        self, shape: int | tuple[int, ...], dtype: DTypeLike = float, name: str | None = None
    ) -> NDArray[Any]:
        """A new array. It reads as zeros, as fresh memory does."""
        return self._array(shape, dtype, name, None, None)

    zeros = empty

    def open(
        self,
        path: str | os.PathLike[str],
        dtype: DTypeLike,
        shape: int | tuple[int, ...] | None = None,
        mode: str = "r",
        offset: int = 0,
    ) -> NDArray[Any]:
        """A file as an array: ``r`` to read, ``r+`` to write back what is changed (at ``flush`` and
        ``close``).
        """
        if mode not in ("r", "r+"):
            raise TidegateError(f"mode '{mode}' is not known; expected r or r+")
        if offset < 0 or offset % far.ALIGN:
            raise TidegateError(
                f"an offset of {offset} bytes is not a multiple of {far.ALIGN}, from 0 on"
            )
        if np.dtype(dtype).itemsize == 0:
            raise TidegateError(
                f"elements of {np.dtype(dtype)} have no bytes; expected a type such as f8"
            )
        descriptors = far.open_file(os.fspath(path), mode == "r+")
        try:
            there = os.fstat(descriptors[1]).st_size - offset
            kind = np.dtype(dtype)
            dims = dims_of(shape) if shape is not None else (max(0, there) // kind.itemsize,)
            wanted = math.prod(dims) * kind.itemsize
            if wanted > there or wanted == 0:
                raise TidegateError(
                    f"{path} has {max(0, there)} bytes from {offset} on; an array of {wanted} was asked for"
                )
            backing = far.Backing(*descriptors, offset, wanted, mode == "r+", scratch=False)
            return self._array(dims, kind, Path(path).name, backing, list(descriptors))
        finally:
            for fd in descriptors:
                os.close(fd)

    def _array(
        self,
        shape: int | tuple[int, ...],
        dtype: DTypeLike,
        name: str | None,
        backing: far.Backing | None,
        fds: list[int] | None,
    ) -> NDArray[Any]:
        kind, dims = np.dtype(dtype), dims_of(shape)
        if kind.hasobject:
            raise TidegateError(
                f"dtype {kind} holds Python objects, which cannot leave memory; expected numbers"
            )
        size = math.prod(dims) * kind.itemsize
        if size == 0:
            return np.empty(dims, kind)
        ident, address = self.allocate(size, name, backing, fds)
        writable = backing is None or backing.writable
        lease = _Lease(self, address, size, writable)
        watch = _Watch(lease, self._gone.append)
        watch.ident = ident
        self._watches[ident] = watch
        raw: NDArray[Any] = np.asarray(lease)
        return raw.view(kind.base).reshape(dims + kind.shape)

    def allocate(
        self,
        size: int,
        name: str | None = None,
        backing: far.Backing | None = None,
        fds: list[int] | None = None,
    ) -> tuple[int, int]:
        """Room for ``size`` bytes: the object's number and its address.

        ``release`` takes it back.
        """
        self._check_open()
        self._tell_gone()
        geometry = self.geometry
        regions = geometry.regions(size)
        first = self._space.take(regions)
        try:
            if backing is None:
                far.make_space(
                    self._store, first * geometry.region, regions * geometry.region, self._folder
                )
                backing = far.Backing(
                    -1, -1, first * geometry.region, size, writable=True, scratch=True
                )
        except BaseException:
            self._space.give_back(first, regions)
            raise
        ident = next(self._ids)
        one = self._objects[ident] = {
            "id": ident,
            "name": name or f"array{ident}",
            "bytes": size,
            "first_page": first * geometry.pages_per_region,
            "backing": far.describe(backing),
        }
        address = self._base + first * geometry.region
        try:
            self._ask({"do": "add", "object": one}, fds or [])
            userfault.set_writable(address, regions * geometry.region, backing.writable)
        except BaseException:  # refused; or interrupted, and nobody knows whether the pager has it
            self._gone.append(ident)
            raise
        if self._log >= 0:
            self._recorded.append(one)
        return ident, address

    def release(self, ident: int) -> None:
        """The object is not needed any more.

        It is only noted: the next call of the arena tells the pager.
        """
        self._gone.append(ident)

    def _tell_gone(self) -> None:
        while self._gone:
            # it stays noted until the pager has heard of it: a Ctrl-C may come at any moment
            gone = self._gone[0]
            ident = gone if isinstance(gone, int) else gone.ident
            self._line.ask({"do": "remove", "id": ident})
            with contextlib.suppress(ValueError):  # another thread told it too
                self._gone.remove(gone)
            self._watches.pop(ident, None)
            if one := self._objects.pop(ident, None):
                first = one["first_page"] // self.geometry.pages_per_region
                self._space.give_back(first, self.geometry.regions(one["bytes"]))

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
        """Keep these elements near and writable: for O_DIRECT, RDMA, and whatever else writes
        behind the kernel's back.
        """
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
        """Close when the process ends, no earlier: arrays may be used until then.

        No verb works any more.
        """
        self._finalizer.detach()
        self._line.leave_open()
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
        """All objects that ever were, and what the pager logged (``recorded.py`` reads it); if the
        arena records.
        """
        if self._log < 0:
            raise TidegateError("this arena records nothing; open it with record=True")
        events = np.frombuffer(os.pread(self._log, os.fstat(self._log).st_size, 0), np.int32)
        return tuple(self._recorded), events

    def close(self) -> None:
        """Write back, end the processes.

        Arrays of this arena must not be used any more: that is a SIGSEGV.
        """
        if self._state != "open" or os.getpid() != self._pid:
            return
        try:
            answer, late = self._line.insist({"do": "close"})  # writing back comes first
            self._last_stats = dict(answer["stats"])
        finally:
            self._state = "closed"
            # not called: when the interpreter ends, weakref.finalize does nothing more
            self._finalizer.detach()
            self._undo.close()
        if late is not None:
            raise late

    def __del__(self) -> None:
        with contextlib.suppress(Exception):
            self.close()

    def __enter__(self) -> Arena:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    # Details

    def _pages(self, array: NDArray[Any]) -> tuple[int, int]:
        low, high = np.lib.array_utils.byte_bounds(array)
        low, high = low - self._base, high - self._base
        if not 0 <= low <= high <= self._space.regions * self.geometry.region:
            raise TidegateError(
                "this array is not of this arena; make it with arena.empty, or open it"
            )
        first = low // self.geometry.page
        return first, max(1, -(-high // self.geometry.page) - first)

    def _ask(self, request: dict[str, Any], fds: list[int] | None = None) -> dict[str, Any]:
        self._check_open()
        self._tell_gone()
        return self._line.ask(request, fds)

    def _check_open(self) -> None:
        if os.getpid() != self._pid:
            raise TidegateError(
                "this arena belongs to the process that opened it; a forked child cannot use it"
            )
        if self._state == "closed":
            raise TidegateError("this arena is closed")


def _close_all() -> None:
    """The program ends: what was changed in files is written back, even if nobody closed the arena."""
    for arena in list(_open_arenas):
        with contextlib.suppress(TidegateError):
            arena.close()


def _forked() -> None:
    """In a forked child: the arrays are not there (their use is a SIGSEGV, which is said then), nor
    is the arena.
    """
    for arena in list(_open_arenas):
        arena._finalizer.detach()
        arena._line.forget()
        if not faulthandler.is_enabled():
            faulthandler.enable()


os.register_at_fork(after_in_child=_forked)
atexit.register(_close_all)
