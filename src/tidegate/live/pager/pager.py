"""The pager: a process of its own, because the thread that faults may hold Python's lock.

loop ──▶ faults from the kernel: the use of a sampled page · a first write · a page that is missing
     ──▶ prefetches, in turn with faults
     ──▶ requests of the program, by way of the supervisor
"""

from __future__ import annotations

import array
import contextlib
import json
import os
import select
import signal
import socket
import time
from typing import Any

from tidegate.errors import TidegateError
from tidegate.live.arena.setup import Setup
from tidegate.live.pager.engine import Engine
from tidegate.live.pager.page_bits import bits
from tidegate.live.pager.tier_placement import LiveTiers
from tidegate.live.transfer.middle import UNIT, Middle
from tidegate.live.transfer.mover import LiveMover
from tidegate.live.transfer.page_flags import Kept
from tidegate.live.transfer.sampled_pages import SLOTS, Aside
from tidegate.live.transfer.store import Backing
from tidegate.live.transfer.userfault import Fault, Userfault, die_with_parent
from tidegate.policies.interface.policy import EvictionPolicy, PlacementPolicy, PrefetchPolicy
from tidegate.policies.interface.visibility import TouchBits
from tidegate.policies.prefetch.together import make_prefetch
from tidegate.policies.registries import eviction, placement, tiering
from tidegate.trace.geometry import Geometry
from tidegate.trace.trace import Object

MESSAGE = 1 << 17  # bytes of a request or an answer at most
TOP_OBJECTS = 20
# seconds for a program to end at SIGBUS; one that handles it may be caught in a system call
HEED = 3
CLOSED, FAILED = 0, 3  # exit codes: all is well; the program must not go on

Policies = tuple[EvictionPolicy, PrefetchPolicy, PlacementPolicy]


def make_policies(setup: Setup) -> Policies:
    """The policies by their names."""
    return (
        eviction.make(setup.eviction),
        make_prefetch(setup.prefetch),
        placement.make(setup.placement),
    )


class Pager:
    """Serves one arena."""

    def __init__(
        self,
        setup: Setup,
        control: socket.socket,
        objects: dict[int, dict[str, Any]],
        files: dict[int, tuple[int, int]],
        restarts: int,
    ):
        self._setup, self._control, self._restarts = setup, control, restarts
        self._geometry = Geometry(setup.page, setup.region)
        self._ppr = self._geometry.pages_per_region
        self._userfault = Userfault(setup.uffd, setup.can_poison)
        policies = make_policies(setup)
        self._kept = Kept(setup.kept, setup.pages)
        self._aside = Aside(setup.aside, setup.page, SLOTS)
        self._tiers, self._middle = self._make_tiers(setup)
        self._mover = LiveMover(
            setup.base,
            self._geometry,
            self._userfault,
            setup.memory,
            self._kept,
            self._aside,
            any(isinstance(p.sees, TouchBits) for p in policies),
            self._tiers,
            self._middle,
        )
        self._engine = Engine(
            self._geometry,
            setup.frames,
            *policies,
            self._mover,
            setup.observed,
            setup.samples,
            self._tiers,
        )
        self._engine.victims = [] if setup.keep_victims else None
        self._objects: dict[int, dict[str, Any]] = {}
        self._waiting: list[int] = []  # faults that the last turn left over
        self._after_faults = False
        self._arrays = 0
        self._log = array.array("i")
        self._began = time.monotonic()
        self._open = True
        for given in objects.values():
            self._add(given, files.get(given["id"]))
        if restarts:
            self._recover()

    def _make_tiers(self, setup: Setup) -> tuple[LiveTiers | None, Middle | None]:
        if setup.middle < 0:
            return None, None
        middle = Middle(setup.middle, setup.pages, setup.page, setup.middle_bytes)
        near = setup.frames * self._ppr
        return LiveTiers(
            tiering.make(setup.tiering), near, -(-setup.page // UNIT), middle.budget
        ), middle

    def run(self) -> int:
        """Serve until the arena is closed."""
        poll = select.poll()
        poll.register(self._userfault.fd, select.POLLIN)
        poll.register(self._control, select.POLLIN)
        control, faults = self._control.fileno(), self._userfault.fd
        while self._open:
            idle = not self._waiting and not self._engine.queue
            ready = [fd for fd, _ in poll.poll(None if idle else 0)]
            if faults in ready or not idle:
                self._take_turn(self._userfault.read() if faults in ready else [])
            if control in ready:
                self._answer()
            self._mover.reap()
        return CLOSED

    # Faults

    def _take_turn(self, events: list[Fault]) -> None:
        engine = self._engine
        notices, faults = self._classify(events)
        if not engine.started:
            engine.start()
        if (notices or faults) and not (engine.queue and self._after_faults):
            self._waiting = engine.serve(faults, notices)
            self._after_faults = True
        else:
            if notices:
                engine.serve([], notices)
            self._waiting = faults
            if engine.queue:
                engine.prefetch_turn()
                self._after_faults = False
        self._mover.expect_only(self._waiting)

    def _classify(self, events: list[Fault]) -> tuple[list[int], list[int]]:
        """What the kernel tells of, sorted: notices and faults.

        First writes are dealt with at once.
        """
        notices: list[int] = []
        faults = self._waiting
        for event in events:
            page = (event.address - self._setup.base) // self._geometry.page
            number, within = divmod(page, self._ppr)
            region = self._engine.region.get(number)
            if region is None or within >= region.pages:
                self._userfault.poison(
                    self._setup.base + page * self._geometry.page, self._geometry.page
                )
                continue
            bit = 1 << within
            there = self._mover.present.get(number, 0) & bit
            if self._tiers is not None and (region.sampled & bit or not there):
                self._tiers.noticed()
            if region.sampled & bit:
                notices.append(page)
                self._note(page, event.write)
            elif event.protected and there:
                self._mover.let_write(number, within)
            elif event.minor and there:
                # mapping it once more would cost more than its load did
                if self._mover.settle_loading(number, bit):
                    # if it came without being mapped, its next use says so
                    self._mover.wake(number, within)
                else:
                    self._mover.map_again(number, within)
            elif there:
                if not self._mover.is_loading(number):
                    self._mover.wake(number, within)
            else:
                faults.append(page)
                self._note(page, event.write)
                self._mover.expect(number, within)
                if event.write:
                    self._mover.will_write(number, within)
        self._waiting = []
        if self._log:
            os.write(self._setup.log, self._log.tobytes())
            del self._log[:]
        return notices, faults

    def _note(self, page: int, write: bool) -> None:
        if self._setup.log >= 0:
            self._log.append(2 * page + write)

    # Requests

    def _answer(self) -> None:
        data, fds, _, _ = socket.recv_fds(self._control, MESSAGE, 2)
        if not data:
            # the supervisor is gone: the signal that says so is on its way, and ends us
            time.sleep(HEED)
            self._open = False
            return
        request = json.loads(data)
        try:
            reply = getattr(self, f"_do_{request['do']}")(request, fds) or {}
        except (TidegateError, OSError) as error:
            said = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
            reply = {"error": said}
        self._control.send(json.dumps(reply | {"number": request.get("number")}).encode())

    def _do_add(self, request: dict[str, Any], fds: list[int]) -> None:
        self._add(request["object"], (fds[0], fds[1]) if fds else None)

    def _do_remove(self, request: dict[str, Any], fds: list[int]) -> None:
        if request["id"] in self._objects:
            self._mover.settle()
            gone = self._objects[request["id"]]
            first = gone["first_page"] // self._ppr
            backing, _ = self._mover.backing[first]
            if not backing.scratch and backing.writable:  # nobody will be able to ask for it later
                self._mover.flush(
                    self._held(), range(first, first + self._geometry.regions(gone["bytes"]))
                )
            del self._objects[request["id"]]
            self._set_objects()
            if not backing.scratch:
                os.close(backing.direct)
                os.close(backing.plain)

    def _do_prefetch(self, request: dict[str, Any], fds: list[int]) -> None:
        self._start()
        self._engine.want(request["first"], request["pages"])

    def _do_advise(self, request: dict[str, Any], fds: list[int]) -> None:
        self._start()
        self._engine.advise(request["first"], request["pages"], request["far"])

    def _do_hold(self, request: dict[str, Any], fds: list[int]) -> None:
        self._start()
        for number in range(request["first"], request["first"] + request["regions"]):
            self._engine.hold(number)
        self._mover.settle()

    def _do_let_go(self, request: dict[str, Any], fds: list[int]) -> None:
        for number in range(request["first"], request["first"] + request["regions"]):
            self._engine.let_go(number)

    def _do_flush(self, request: dict[str, Any], fds: list[int]) -> None:
        self._mover.settle()
        self._mover.flush(self._held())

    def _do_settle(self, request: dict[str, Any], fds: list[int]) -> None:
        while self._engine.queue:
            self._engine.prefetch_turn()
        self._mover.settle()

    def _do_victims(self, request: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        return {"victims": (self._engine.victims or [])[request["from"] :][:1000]}

    def _do_stats(self, request: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        return {"stats": self._stats()}

    def _do_close(self, request: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        self._mover.settle()
        self._mover.flush(self._held())
        if self._engine.started:
            self._engine.finished()
        self._open = False
        return {"stats": self._stats()}

    def _start(self) -> None:
        if not self._engine.started:
            self._engine.start()

    def _held(self) -> set[int]:
        return {number for number, region in self._engine.region.items() if region.held}

    def _stats(self) -> dict[str, Any]:
        page, engine = self._geometry.page, self._engine
        names = {o["id"]: self._of_object(o) for o in self._objects.values()}
        most = sorted(names.values(), key=lambda o: -o["faults"])[:TOP_OBJECTS]
        return (
            engine.count
            | {
                "seconds": time.monotonic() - self._began,
                "near_bytes": engine.used * self._geometry.region,
                "near_limit": self._setup.frames * self._geometry.region,
                "bytes": sum(o["bytes"] for o in self._objects.values()),
                "bytes_in": self._mover.bytes_in,
                "bytes_out": self._mover.bytes_out,
                "prefetched_bytes": engine.count["pages_prefetched"] * page,
                "observe_seconds": self._mover.observe_ns / 1e9,
                "arrays": self._arrays,
                "restarts": self._restarts,
                "eviction": self._setup.eviction,
                "prefetch": self._setup.prefetch,
                "placement": self._setup.placement,
                "objects": most,
            }
            | (
                {"tiering": self._setup.tiering, **self._tiers.stats()}
                if self._tiers is not None
                else {}
            )
        )

    def _of_object(self, o: dict[str, Any]) -> dict[str, Any]:
        first = o["first_page"] // self._ppr
        regions = [
            self._engine.region[first + i] for i in range(self._geometry.regions(o["bytes"]))
        ]
        near = sum(r.near.bit_count() for r in regions)
        return {
            "name": o["name"],
            "bytes": o["bytes"],
            "near_bytes": near * self._geometry.page,
            "faults": sum(r.faults for r in regions),
            "evictions": sum(r.evictions for r in regions),
        }

    # Objects

    def _add(self, o: dict[str, Any], fds: tuple[int, int] | None) -> None:
        if o["id"] in self._objects:
            return
        direct, plain = fds or (self._setup.store, self._setup.store_plain)
        backing = Backing(direct, plain, **o["backing"])
        first = o["first_page"] // self._ppr
        for i in range(self._geometry.regions(o["bytes"])):
            self._mover.backing[first + i] = (backing, i * self._geometry.region)
        if not backing.scratch:  # a user's file has something to read from the beginning
            self._kept.set_stored(o["first_page"], self._geometry.pages(o["bytes"]), True)
        self._objects[o["id"]] = o
        if self._setup.log >= 0:
            self._log.append(-1 - o["id"])  # from here on these pages are its own
        self._arrays += 1
        self._set_objects()

    def _set_objects(self) -> None:
        given = sorted(self._objects.values(), key=lambda o: o["first_page"])
        self._engine.set_objects(
            tuple(
                Object(o["name"], o["bytes"], o["first_page"], self._geometry.pages(o["bytes"]))
                for o in given
            )
        )

    def _recover(self) -> None:
        """Another pager died: find what it left near, complete what it had half moved, and let
        everybody try again.
        """
        if self._middle is not None and self._tiers is not None:
            for o in self._objects.values():
                self._middle.recover(o["first_page"], self._geometry.pages(o["bytes"]))
        found = {number: self._mover.recover(number) for number in self._engine.region}
        for page in self._aside.pages():  # of an object that is gone
            self._aside.remove(page)
        if self._middle is not None and self._tiers is not None:
            for page in self._middle.oldest_first():
                self._tiers.inside(page, self._middle.units(page))
        self._engine.start({number: pages for number, pages in found.items() if pages})
        for number in self._setup.held:
            self._engine.hold(number)
        for number, pages in found.items():
            for page in bits(self._mover.present[number] & pages):
                self._mover.wake(number, page)
        self._userfault.wake(self._setup.base, self._setup.pages * self._geometry.page)


def end_program(pidfd: int, why: str) -> None:
    """Say why, and end the program: a byte that it read now could be wrong.

    If it does not heed SIGBUS, it is killed.
    """
    os.write(
        2,
        f"tidegate: live memory cannot go on: {why}; the program ends with SIGBUS (see docs/live.md)\n".encode(),
    )
    with contextlib.suppress(ProcessLookupError):
        signal.pidfd_send_signal(pidfd, signal.SIGBUS)
        ended = select.poll()
        ended.register(pidfd, select.POLLIN)
        if not ended.poll(1000 * HEED):
            signal.pidfd_send_signal(pidfd, signal.SIGKILL)


def main(
    setup: Setup,
    control: socket.socket,
    objects: dict[int, dict[str, Any]],
    files: dict[int, tuple[int, int]],
    restarts: int,
) -> int:
    """The life of a pager process.

    What goes wrong is told to the supervisor, which ends the program.
    """

    def orphaned(*_: Any) -> None:
        signal.signal(signal.SIGUSR1, signal.SIG_IGN)  # it can come more than once
        end_program(setup.pidfd, "its supervisor is gone")
        os._exit(FAILED)

    signal.signal(signal.SIGUSR1, orphaned)
    die_with_parent(signal.SIGUSR1)
    try:
        return Pager(setup, control, objects, files, restarts).run()
    except Exception as error:
        if os.environ.get("TIDEGATE_DEBUG"):
            raise
        said = (
            str(error) if isinstance(error, TidegateError) else f"{type(error).__name__}: {error}"
        )
        control.send(json.dumps({"fatal": said}).encode())
        return FAILED
