"""The pager: a process of its own, because the thread that faults may hold Python's lock.

loop ──▶ faults from the kernel: use of a sampled page · a first write · a missing page
     ──▶ prefetches, in turn with faults
     ──▶ requests of the program, which the supervisor relays
"""

from __future__ import annotations

import array
import contextlib
import errno
import json
import os
import resource
import select
import signal
import socket
import time
from typing import Any, NamedTuple

from tidegate.display.tables import printable
from tidegate.errors import TidegateError
from tidegate.live.arena.setup import GONE, ArenaSetup
from tidegate.live.pager.calls import Failure, PolicyCalls, PolicyFailure, suspect
from tidegate.live.pager.engine import Engine
from tidegate.live.pager.policies import make_policies
from tidegate.live.pager.regions import bits
from tidegate.live.transfer.carrier import ArenaMemory
from tidegate.live.transfer.mover import LiveMover
from tidegate.live.transfer.store import Backing
from tidegate.live.transfer.userfault import Fault, Userfault, die_with_parent
from tidegate.policies.interface.visibility import TouchBits
from tidegate.trace.trace import Object

MESSAGE = 1 << 17  # bytes of a request or an answer at most
LONGEST_ERROR = 4000  # characters
TOP_OBJECTS = 20  # in the statistics
MOST_DIGITS = 512  # of an object whose residency is asked for
# seconds for a program to end at SIGBUS; one that handles it may be blocked in a system call
SIGBUS_SECONDS = 3
# how a pager ends, as noted in PolicyCalls, because a policy may exit with any code: the arena was
# closed; the program must not go on; a policy must be replaced
CLOSED, FAILED, POLICY_FAILED = 100, 101, 102
SPARE_DESCRIPTORS = 8  # for the supervisor's own: sockets of pagers, and files of /proc
READER_BITS = 16  # of a thread's number: threads of two processes may have the same
LIMITS = ("RLIMIT_NOFILE", "RLIMIT_AS", "RLIMIT_DATA", "RLIMIT_FSIZE", "RLIMIT_NPROC")


class PagerState(NamedTuple):
    """What a new pager needs to know: objects and their files by number, restarts so far, and
    readers by number: descriptors of their faults and their first addresses.
    """

    objects: dict[int, dict[str, Any]]
    files: dict[int, tuple[int, int]]
    restarts: int
    readers: dict[int, tuple[int, int]] = {}  # noqa: RUF012


class Pager:
    """Serves one arena. ``calls`` is shared with the supervisor."""

    def __init__(
        self, setup: ArenaSetup, control: socket.socket, state: PagerState, calls: PolicyCalls
    ):
        self._setup, self._control, self._calls = setup, control, calls
        self._restarts = state.restarts
        memory = ArenaMemory.of(setup, calls)
        self._geometry, self._ppr = memory.geometry, memory.geometry.pages_per_region
        self._userfault, self._flags, self._copies = memory.userfault, memory.flags, memory.copies
        self._tiers, self._middle = memory.tiers, memory.middle
        policies = make_policies(setup, calls)
        track_touches = any(isinstance(p.sees, TouchBits) for p in policies)
        self._mover = LiveMover(memory, track_touches)
        self._engine = Engine(
            self._geometry,
            setup.frames,
            policies,
            self._mover,
            setup.observed,
            setup.samples,
            self._tiers,
            setup.observe_share,
            calls,
        )
        self._objects: dict[int, dict[str, Any]] = {}
        self._left_over: list[int] = []  # faults that the last turn did not serve
        self._faults_served_last = False
        self._arrays = 0
        self._log = array.array("i")
        self._began = time.monotonic()
        self._open = True
        self._poll = select.poll()
        for number, (fd, base) in state.readers.items():
            self._attach(number, fd, base)
        for ident, given in state.objects.items():
            self._add(given, state.files.get(ident))
        if state.restarts:
            self._recover()

    def run(self) -> int:
        """Serve until the arena is closed."""
        self._poll.register(self._userfault.fd, select.POLLIN)
        self._poll.register(self._control, select.POLLIN)
        control = self._control.fileno()
        self._calls.works, has_served = True, False
        while self._open:
            idle = not self._left_over and not self._engine.queue
            ready = {fd for fd, _ in self._poll.poll(None if idle else 0)}
            self._calls.works = has_served
            if (faults := bool(ready - {control})) or not idle:
                self._take_turn(self._userfault.read_all() if faults else [])
            if control in ready:
                self._answer()
            self._mover.reap()
            self._calls.works = has_served = True
        return CLOSED

    # Faults

    def _take_turn(self, events: list[Fault]) -> None:
        engine = self._engine
        notifications, faults = self._classify(events)
        self._start()
        if (notifications or faults) and not (engine.queue and self._faults_served_last):
            self._left_over = engine.serve(faults, notifications)
            self._faults_served_last = True
        else:
            if notifications:
                engine.serve([], notifications)
            self._left_over = faults
            if engine.queue:
                engine.prefetch_turn()
                self._faults_served_last = False
        self._mover.keep_early_reads(self._left_over)

    def _classify(self, events: list[Fault]) -> tuple[list[int], list[int]]:
        """Sort the kernel's messages into notifications and faults; answer the rest at once."""
        notifications: list[int] = []
        engine = self._engine
        faults, self._left_over = self._left_over, []
        for event in events:
            page = (event.address - self._setup.base) // self._geometry.page
            number, within = divmod(page, self._ppr)
            region = engine.region.get(number)
            if region is None or within >= region.pages:
                self._poison(event, page)
                continue
            bit = 1 << within
            sampled, present = region.sampled & bit, self._mover.present.get(number, 0) & bit
            if present and not sampled:
                self._answer_present(event, number, within)
                continue
            if self._tiers is not None:
                self._tiers.note_use()
            if self._setup.log >= 0:
                self._log.append(2 * page + event.write)
            thread = event.thread << READER_BITS | event.reader
            if sampled:
                engine.threads.note_use(thread, number)
                notifications.append(page)
                continue
            engine.threads.note_fault(thread, number, bit)
            faults.append(page)
            self._mover.read_early(number, within)
            if event.write:
                self._mover.note_write(number, within)
        if self._log:
            self._write_log()
        return notifications, faults

    def _poison(self, event: Fault, page: int) -> None:
        """End the process that used a page which is no object's."""
        userfault, shift = self._userfault, 0
        if event.reader:
            userfault, shift = userfault.readers[event.reader]
        size = self._geometry.page
        userfault.poison(self._setup.base + page * size + shift, size)

    def _write_log(self) -> None:
        """Append to the log, unless it holds enough."""
        if os.fstat(self._setup.log).st_size < self._log.itemsize * self._setup.log_events:
            os.write(self._setup.log, self._log.tobytes())
        del self._log[:]

    def _answer_present(self, event: Fault, number: int, within: int) -> None:
        """Answer a fault of a page that is present, or still loading."""
        if event.reader and event.minor:
            sampled = self._engine.region[number].sampled
            self._mover.map_for_reader(event.reader, number, within, sampled)
        elif event.protected:
            self._mover.allow_write(number, within)
        elif event.minor:
            # a page that was just loaded is mapped, as a rule: trying again costs less
            if self._mover.settle_loading(number, 1 << within):
                self._mover.wake(number, within)
            else:
                self._mover.map_again(number, within)
        elif not self._mover.is_loading(number):
            self._mover.wake(number, within)

    # Requests

    def _answer(self) -> None:
        data, fds, flags, _ = socket.recv_fds(self._control, MESSAGE, 2)
        if not data:
            # the supervisor is gone: SIGUSR1 says so soon, and ends this process
            time.sleep(SIGBUS_SECONDS)
            self._open = False
            return
        request = json.loads(data)
        try:
            check_descriptors(request, flags, fds)
            reply = getattr(self, f"_do_{request['do']}")(request, fds) or {}
        except (TidegateError, OSError) as error:
            # at the end an error of a policy's own check; else the policy is replaced, and the
            # next pager answers
            if isinstance(error, PolicyFailure) and request["do"] not in ("close", "finish"):
                raise
            if found := find_lowered_limit(self._setup):
                raise PolicyFailure(*found) from error
            reply = {"error": (getattr(error, "strerror", None) or str(error))[:LONGEST_ERROR]}
        self._control.send(json.dumps(reply | {"number": request.get("number")}).encode())

    def _do_add(self, request: dict[str, Any], fds: list[int]) -> None:
        self._add(request["object"], (fds[0], fds[1]) if fds else None)

    def _do_remove(self, request: dict[str, Any], fds: list[int]) -> None:
        if request["id"] not in self._objects:
            return
        self._mover.settle()
        o = self._objects[request["id"]]
        first = o["first_page"] // self._ppr
        backing, _ = self._mover.backing[first]
        if not backing.scratch and backing.writable:  # it cannot be flushed later
            regions = range(first, first + self._geometry.regions(o["bytes"]))
            self._mover.flush(self._pinned(), regions)
        del self._objects[request["id"]]
        if self._setup.log >= 0:
            self._log.append(-2 - 2 * request["id"])
        self._set_objects()
        if not backing.scratch:
            os.close(backing.direct)
            os.close(backing.plain)

    def _do_prefetch(self, request: dict[str, Any], fds: list[int]) -> None:
        self._start()
        self._engine.request_prefetch(request["first"], request["pages"])

    def _do_advise(self, request: dict[str, Any], fds: list[int]) -> None:
        self._start()
        self._engine.advise(request["first"], request["pages"], request["far"])

    def _do_discard(self, request: dict[str, Any], fds: list[int]) -> None:
        self._start()
        self._engine.discard(request["first"], request["pages"])

    def _do_pin(self, request: dict[str, Any], fds: list[int]) -> None:
        self._start()
        for number in range(request["first"], request["first"] + request["regions"]):
            self._engine.pin(number)
        self._mover.settle()

    def _do_unpin(self, request: dict[str, Any], fds: list[int]) -> None:
        for number in range(request["first"], request["first"] + request["regions"]):
            self._engine.unpin(number)

    def _do_flush(self, request: dict[str, Any], fds: list[int]) -> None:
        self._mover.settle()
        self._mover.flush(self._pinned())

    def _do_settle(self, request: dict[str, Any], fds: list[int]) -> None:
        while self._engine.queue:
            self._engine.prefetch_turn()
        self._mover.settle()

    def _do_attach(self, request: dict[str, Any], fds: list[int]) -> None:
        if request["reader"] not in self._userfault.readers:
            for fd in fds:  # none if it has ended meanwhile
                self._attach(request["reader"], fd, request["base"])
        else:  # known from the start, because the last pager died before it answered
            for fd in fds:
                os.close(fd)

    def _attach(self, number: int, fd: int, base: int) -> None:
        reader = Userfault(fd, self._setup.can_poison)
        self._userfault.readers[number] = reader, base - self._setup.base
        self._poll.register(fd, select.POLLIN)

    def _do_detach(self, request: dict[str, Any], fds: list[int]) -> None:
        if (found := self._userfault.readers.pop(request["reader"], None)) is not None:
            self._poll.unregister(found[0].fd)
            os.close(found[0].fd)

    def _do_stats(self, request: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        return {"stats": self._stats()}

    def _do_residency(self, request: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        objects = sorted(self._objects.values(), key=lambda o: -o["bytes"])[:TOP_OBJECTS]
        return {"residency": [self._residency(o) for o in objects]}

    def _do_close(self, request: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        self._mover.settle()
        self._mover.flush(self._pinned())
        self._do_finish(request, fds)
        self._open = False
        return {"stats": self._stats()}

    def _do_finish(self, request: dict[str, Any], fds: list[int]) -> None:
        if self._engine.started:
            self._engine.finished()

    def _start(self) -> None:
        if not self._engine.started:
            self._engine.start()

    def _pinned(self) -> set[int]:
        return {number for number, region in self._engine.region.items() if region.pinned}

    def _stats(self) -> dict[str, Any]:
        setup, engine, mover = self._setup, self._engine, self._mover
        objects = [self._object_stats(o) for o in self._objects.values()]
        objects.sort(key=lambda o: -o["faults"])
        stats: dict[str, Any] = engine.count | {
            "seconds": time.monotonic() - self._began,
            "near_bytes": engine.used * setup.region,
            "near_limit": setup.frames * setup.region,
            "bytes": sum(o["bytes"] for o in self._objects.values()),
            "bytes_in": mover.bytes_in,
            "bytes_out": mover.bytes_out,
            "prefetched_bytes": engine.count["pages_prefetched"] * setup.page,
            "observe_seconds": mover.observe_ns / 1e9,
            "arrays": self._arrays,
            "restarts": self._restarts,
            "eviction": setup.eviction,
            "prefetch": setup.prefetch,
            "placement": setup.placement,
            "replaced": setup.replaced,
            "objects": objects[:TOP_OBJECTS],
        }
        if self._tiers is not None:
            stats |= {"tiering": setup.tiering, **self._tiers.stats()}
        return stats

    def _object_stats(self, o: dict[str, Any]) -> dict[str, Any]:
        first, n = o["first_page"] // self._ppr, self._geometry.regions(o["bytes"])
        regions = [self._engine.region[first + i] for i in range(n)]
        return {
            "name": o["name"],
            "bytes": o["bytes"],
            "near_bytes": sum(r.near.bit_count() for r in regions) * self._geometry.page,
            "faults": sum(r.faults for r in regions),
            "evictions": sum(r.evictions for r in regions),
        }

    def _residency(self, o: dict[str, Any]) -> dict[str, Any]:
        """Return how much of an object is near, region by region: a digit for each, 9 is all.

        Of an object with very many regions a digit stands for several.
        """
        first, n = o["first_page"] // self._ppr, self._geometry.regions(o["bytes"])
        each, pages = -(-n // MOST_DIGITS), self._geometry.pages(o["bytes"])
        near = [self._engine.region[first + i].near.bit_count() for i in range(n)]
        digits = (
            -(-9 * sum(near[i : i + each]) // min(each * self._ppr, pages - i * self._ppr))
            for i in range(0, n, each)
        )
        return {
            "name": o["name"],
            "bytes": o["bytes"],
            "regions": n,
            "near": "".join(str(min(9, digit)) for digit in digits),
        }

    # Objects

    def _add(self, o: dict[str, Any], fds: tuple[int, int] | None) -> None:
        if o["id"] in self._objects:
            return
        direct, plain = fds or (self._setup.store, self._setup.store_plain)
        backing = Backing(direct, plain, name=o["name"], **o["backing"])
        first = o["first_page"] // self._ppr
        for i in range(self._geometry.regions(o["bytes"])):
            self._mover.backing[first + i] = (backing, i * self._geometry.region)
        if not backing.scratch:  # a user's file has something to read from the beginning
            self._flags.set_stored(o["first_page"], self._geometry.pages(o["bytes"]), True)
        self._objects[o["id"]] = o
        if self._setup.log >= 0:
            self._log.append(-1 - 2 * o["id"])  # from here on these pages are this object's
        self._arrays += 1
        self._set_objects()

    def _set_objects(self) -> None:
        given = sorted(self._objects.values(), key=lambda o: o["first_page"])
        pages = self._geometry.pages
        objects = (Object(o["name"], n := o["bytes"], o["first_page"], pages(n)) for o in given)
        self._engine.set_objects(tuple(objects))

    def _recover(self) -> None:
        """Find what a pager that died left near, complete its moves and wake all threads."""
        if self._middle is not None:
            for o in self._objects.values():
                self._middle.recover(o["first_page"], self._geometry.pages(o["bytes"]))
        found = {number: self._mover.recover(number) for number in self._engine.region}
        for page in self._copies.pages():  # of an object that is gone
            self._copies.remove(page)
        if self._middle is not None and self._tiers is not None:
            for page in self._middle.oldest_first():
                self._tiers.note_inside(page, self._middle.units(page))
        self._engine.start({number: pages for number, pages in found.items() if pages})
        for number in self._setup.pinned:
            self._engine.pin(number)
        for number, pages in found.items():
            for page in bits(self._mover.present[number] & pages):
                self._mover.wake(number, page)
        self._userfault.wake(self._setup.base, self._setup.pages * self._geometry.page)


def end_program(pidfd: int, why: str) -> None:
    """Say why and end the program, because it could read a wrong byte."""
    said = f"tidegate: live memory cannot go on: {why}; the program ends with SIGBUS"
    os.write(2, f"{printable(said)} (see docs/live-limits.md)\n".encode())
    send_sigbus(pidfd)


def send_sigbus(pidfd: int) -> None:
    """End the program; one that handles SIGBUS is killed soon after."""
    with contextlib.suppress(ProcessLookupError):
        signal.pidfd_send_signal(pidfd, signal.SIGBUS)
        ended = select.poll()
        ended.register(pidfd, select.POLLIN)
        if not ended.poll(1000 * SIGBUS_SECONDS):
            signal.pidfd_send_signal(pidfd, signal.SIGKILL)


def main(setup: ArenaSetup, control: socket.socket, state: PagerState, calls: PolicyCalls) -> int:
    """Run a pager process; report an error to the supervisor.

    It replaces a policy that failed, and ends the program for any other error.
    """

    def orphaned(*_: Any) -> None:
        signal.signal(signal.SIGUSR1, signal.SIG_IGN)  # it can come more than once
        if setup.witness < 0:  # else that says it
            os.write(2, f"{GONE}\n".encode())
        send_sigbus(setup.pidfd)
        os._exit(FAILED)

    signal.signal(signal.SIGUSR1, orphaned)
    die_with_parent(signal.SIGUSR1)
    try:
        return Pager(setup, control, state, calls).run()
    except PolicyFailure as error:
        control.send(json.dumps({"failed": error.kind, "why": describe_error(error)}).encode())
        return POLICY_FAILED
    except Exception as error:
        if os.environ.get("TIDEGATE_DEBUG"):
            raise
        said, damaged = describe_error(error), getattr(error, "errno", 0) in (errno.EBADF, 0)
        failed = find_lowered_limit(setup)
        if failed is None and damaged:
            failed = suspect(setup, f"may have damaged its pager, which failed: {said}")
        if failed is not None:
            control.send(json.dumps({"failed": failed.kind, "why": failed.said}).encode())
            return POLICY_FAILED
        control.send(json.dumps({"fatal": said}).encode())
        return FAILED


def find_lowered_limit(setup: ArenaSetup) -> Failure | None:
    """Blame a policy of a user's file if this process has other limits than its supervisor."""
    with contextlib.suppress(OSError):  # it has just ended
        for limit in LIMITS:
            number = getattr(resource, limit)
            if resource.getrlimit(number) != resource.prlimit(os.getppid(), number):
                return suspect(setup, f"lowered {limit} of its process")
    return None


def describe_error(error: Exception) -> str:
    """Return an error as text that fits in a message; one that is not ours with its type."""
    is_ours = isinstance(error, TidegateError)
    return (str(error) if is_ours else f"{type(error).__name__}: {error}")[:LONGEST_ERROR]


def check_descriptors(request: dict[str, Any], flags: int, fds: list[int]) -> None:
    """Refuse a request whose descriptors this process could not receive, or that takes the last."""
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[0] - SPARE_DESCRIPTORS
    if flags & socket.MSG_CTRUNC or max(fds, default=0) >= most:
        name = request["object"]["name"] if "object" in request else "the shared arena"
        raise TidegateError(
            f"{name} cannot be opened: Too many open files; drop some arrays, or raise ulimit -n"
        )
