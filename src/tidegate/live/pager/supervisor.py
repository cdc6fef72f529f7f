"""The supervisor: holds every descriptor, starts the pager, and starts it again when it dies.

It imports all that a pager needs and then forks pagers, so that a new one starts within
milliseconds. When the program has ended, it writes the last changes of files and ends. If it ends
first, the lifeline closes and the kernel sends SIGBUS to the program, whose faults would never be
served.
"""

from __future__ import annotations

import contextlib
import gc
import itertools
import json
import mmap
import os
import resource
import select
import signal
import socket
import sys
from collections import deque
from dataclasses import dataclass
from typing import Any

from tidegate.compiled.own_process import mark_own_process
from tidegate.display.tables import printable
from tidegate.errors import TidegateError
from tidegate.interrupts import ignore_interrupts
from tidegate.live.arena.peers import is_own
from tidegate.live.arena.setup import ArenaSetup
from tidegate.live.pager import pager
from tidegate.live.pager.calls import (
    START_TIMES,
    Failure,
    PolicyCalls,
    Watchdog,
    replace_policy,
    suspect,
)
from tidegate.live.pager.engine import Engine
from tidegate.live.pager.no_mover import NoMover
from tidegate.live.pager.policies import check_policies, make_policies, make_tiering
from tidegate.live.pager.tier_placement import LiveTiers
from tidegate.live.transfer import near_file
from tidegate.live.transfer.last_changes import LastChanges
from tidegate.live.transfer.userfault import can_unmap
from tidegate.policies.interface.visibility import Faults, Samples
from tidegate.trace.geometry import Geometry
from tidegate.trace.trace import Object

ASKED, KINDS = ("do", "base"), ["[userfaultfd]", "[pidfd]"]
FOR_OTHERS = ("stats", "residency", "join", "attach")  # requests that change no array
MOST_PEERS, MOST_PENDING = 1000, 8  # others that ask, and requests of one of them
TOO_OFTEN = 200  # pagers in a row that die before they have served anything


@dataclass(frozen=True)
class SharedWith:
    """A process that shares the arena, read-only, and descriptors: of its faults, of itself, and
    the end of a pipe whose closing ends it.
    """

    number: int
    base: int  # the arena's first address there
    peer: socket.socket
    uffd: int
    pidfd: int
    lifeline: int


class Supervisor:
    """Supervises the pager of one arena."""

    def __init__(self, setup: ArenaSetup, program: socket.socket):
        self._setup, self._program = setup, program
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._listener.bind("\0" + setup.name)  # an abstract name, which leaves no file behind
        self._listener.listen()
        self._peers: dict[int, socket.socket] = {}
        # requests without an answer yet
        self._pending: deque[tuple[socket.socket, dict[str, Any], list[int]]] = deque()
        self._objects: dict[int, dict[str, Any]] = {}
        self._files: dict[int, tuple[int, int]] = {}
        self._readers: dict[int, SharedWith] = {}
        self._numbers = itertools.count(1)  # of readers
        self._restarts = -1
        self._died_unused = 0
        self._calls = PolicyCalls()  # written by the pager
        self._watchdog = Watchdog(self._calls, setup)
        self._failed: Failure | None = None  # of the pager that runs, or has just ended
        self._poll = select.poll()
        for fd in (setup.pidfd, program.fileno(), self._listener.fileno()):
            self._poll.register(fd, select.POLLIN)

    def run(self) -> int:
        """Serve until the arena is closed or the program is gone; then end those who share it."""
        code = self._serve()
        if self._calls.left != pager.CLOSED:
            self._write_last_changes()
        for reader in self._readers.values():
            pager.end_program(reader.pidfd, "the process that opened this shared arena has left it")
        return code

    def _serve(self) -> int:
        self._start_pager()
        while True:
            self._watch_policies()
            for fd, _ in self._poll.poll(self._watchdog.poll_ms):
                if fd == self._setup.pidfd:
                    return self._program_ended()
                if fd == self._program.fileno():
                    if not self._relay(self._program):
                        return self._program_ended()
                elif fd == self._listener.fileno():
                    self._accept()
                elif fd == self._control.fileno():
                    self._relay_back()
                elif fd == self._pager_fd:
                    if (code := self._pager_ended()) is not None:
                        return code
                    break
                elif fd in self._peers:
                    self._relay(self._peers[fd])
                else:
                    self._reader_ended(fd)

    # The pager's life

    def _start_pager(self) -> None:
        self._restarts += 1
        self._calls.clear()
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._control.setblocking(False)  # a pager that is stopped does not read
        self._passed_on = 0
        self._pid = os.fork()
        if self._pid == 0:
            try:
                os.setpgid(0, 0)
                os.register_at_fork(after_in_child=lambda: os._exit(1))  # one pager is enough
                for end in (self._control, self._program, self._listener):
                    end.close()
                for fd in (self._setup.lifeline, self._setup.witness):
                    if fd >= 0:
                        os.close(fd)
                for reader in self._readers.values():
                    os.close(reader.lifeline)
                readers = {r.number: (r.uffd, r.base) for r in self._readers.values()}
                state = pager.PagerState(self._objects, self._files, self._restarts, readers)
                self._calls.left = pager.main(self._setup, theirs, state, self._calls)
                os._exit(self._calls.left)
            finally:
                os._exit(1)
        theirs.close()
        with contextlib.suppress(OSError):  # it was quicker, or has ended
            os.setpgid(self._pid, self._pid)
        self._pager_fd = os.pidfd_open(self._pid)
        self._poll.register(self._pager_fd, select.POLLIN)
        self._poll.register(self._control, select.POLLIN)
        self._pass_on()

    def _watch_policies(self) -> None:
        """End a pager whose policy does not return from a call."""
        if self._failed is None and (overdue := self._watchdog.overdue(self._pid)):
            self._failed = overdue
            os.kill(self._pid, signal.SIGKILL)

    def _program_ended(self) -> int:
        os.kill(self._pid, signal.SIGKILL)
        self._bury_pager()
        return 0

    def _bury_pager(self) -> int:
        """Wait for the end of a pager, and end what its policies have started; return its code."""
        os.waitid(os.P_PID, self._pid, os.WEXITED | os.WNOWAIT)
        with contextlib.suppress(OSError):
            os.killpg(self._pid, signal.SIGKILL)  # while its number is nobody else's
        return os.waitstatus_to_exitcode(os.waitpid(self._pid, 0)[1])

    def _write_last_changes(self) -> None:
        """Write what the program changed in its files: it has ended without closing the arena."""
        if self._files and (said := LastChanges(self._setup).write(self._objects, self._files)):
            with contextlib.suppress(OSError):  # nobody may be there to read it
                line = f"tidegate: the program left its arena open; {printable(said)}\n"
                os.write(2, line.encode())

    def _pager_ended(self) -> int | None:
        """Start another pager, unless this one closed the arena or cannot be replaced."""
        answers = select.poll()
        answers.register(self._control, select.POLLIN)
        while answers.poll(0) and self._relay_back():
            self._write_last_changes()
        self._poll.unregister(self._pager_fd)
        os.close(self._pager_fd)
        with contextlib.suppress(KeyError):
            self._poll.unregister(self._control)
        self._control.close()
        status = self._bury_pager()
        if self._calls.left == pager.CLOSED:
            self._wait_for_goodbye()
            return 0
        if self._calls.left == pager.FAILED:
            return 1
        self._died_unused = 0 if self._calls.works else self._died_unused + 1
        failed, self._failed = self._failed or self._watchdog.died(status), None
        if self._died_unused == TOO_OFTEN:
            said, self._died_unused = "the pager died again and again", 0
            failed = suspect(self._setup, f"is to blame, perhaps: {said}")
            if failed is None:
                pager.end_program(self._setup.pidfd, said)
                return 1
        if failed is not None and not replace_policy(self._setup, failed):
            pager.end_program(self._setup.pidfd, failed.said)
            return 1
        self._start_pager()
        return None

    def _wait_for_goodbye(self) -> None:
        """Wait until the program hangs up; to end earlier would look like an accident to it."""
        goodbye = select.poll()
        goodbye.register(self._program, select.POLLIN)
        goodbye.register(self._setup.pidfd, select.POLLIN)
        goodbye.poll()

    # Messages

    def _relay(self, peer: socket.socket) -> bool:
        """Pass a request on, and note what a new pager must know. False: the peer hung up."""
        fds: list[int] = []
        try:
            data, fds, flags, _ = socket.recv_fds(peer, pager.MESSAGE, 3, socket.MSG_DONTWAIT)
            if not data:
                raise ConnectionResetError
            request = json.loads(data)
            if peer is not self._program:
                request = self._checked(peer, request, fds, flags)
            pager.check_descriptors(request, flags, fds)
            if request["do"] == "join":
                size = self._setup.pages * self._setup.page
                socket.send_fds(peer, [json.dumps({"bytes": size}).encode()], [self._setup.memory])
                return True
        except BlockingIOError:
            return True  # it was another's event
        except TidegateError as error:
            _close(fds)
            answer = {"error": str(error), "number": request.get("number")}
            with contextlib.suppress(OSError):
                peer.send(json.dumps(answer).encode())
            return True
        except (OSError, ValueError, RecursionError):  # it has left, or talks nonsense
            _close(fds)
            self._hang_up(peer)
            return False
        if request["do"] == "attach":
            self._add_reader(peer, request, fds)
            fds = fds[:1]
        elif request["do"] == "add":
            self._objects[request["object"]["id"]] = request["object"]
            if fds:
                self._files[request["object"]["id"]] = (fds[0], fds[1])
        elif request["do"] in ("pin", "unpin"):
            self._note_pinned(request)
        self._pending.append((peer, request, fds))
        self._pass_on()
        return True

    def _checked(
        self, peer: socket.socket, request: Any, fds: list[int], flags: int
    ) -> dict[str, Any]:
        """Return what a peer asks for, and nothing else that it sent; ValueError if it may not."""
        do, base = (request.get(key) if isinstance(request, dict) else None for key in ASKED)
        if do not in FOR_OTHERS or sum(p is peer for p, *_ in self._pending) >= MOST_PENDING:
            raise ValueError(do)
        if do != "attach":
            if fds:
                raise ValueError("descriptors")
            return {"do": do}
        if not flags & socket.MSG_CTRUNC and (
            type(base) is not int
            or not 0 < base < 1 << 63
            or base % mmap.PAGESIZE
            or any(r.peer is peer for r in self._readers.values())
            or [os.readlink(f"/proc/self/fd/{fd}").split(":")[-1] for fd in fds[:2]] != KINDS
            or len(fds) != len(KINDS) + 1
        ):
            raise ValueError("attach")
        return {"do": do, "base": base}

    def _hang_up(self, peer: socket.socket) -> None:
        self._poll.unregister(peer)
        self._peers.pop(peer.fileno(), None)
        for reader in [r for r in self._readers.values() if r.peer is peer]:
            self._remove_reader(reader)
        peer.close()

    # Processes that share the arena

    def _add_reader(self, peer: socket.socket, request: dict[str, Any], fds: list[int]) -> None:
        number = request["reader"] = next(self._numbers)
        self._readers[number] = SharedWith(number, request["base"], peer, *fds)
        self._poll.register(self._readers[number].pidfd, select.POLLIN)

    def _reader_ended(self, pidfd: int) -> None:
        for reader in [r for r in self._readers.values() if r.pidfd == pidfd]:
            self._hang_up(reader.peer)

    def _remove_reader(self, reader: SharedWith) -> None:
        """Let a reader go that has ended, or does not share the arena any more."""
        del self._readers[reader.number]
        self._poll.unregister(reader.pidfd)
        for fd in (reader.uffd, reader.pidfd, reader.lifeline):
            os.close(fd)
        # a request to attach it that waits for its answer has no descriptor any more
        self._pending = deque(
            (peer, asked, [] if asked.get("reader") == reader.number else fds)
            for peer, asked, fds in self._pending
        )
        request = {"do": "detach", "reader": reader.number}
        self._pending.append((reader.peer, request, []))
        self._pass_on()

    def _pass_on(self) -> None:
        """Send the pager what it has not got yet, or as much as it takes now.

        It answers all that it gets, and each answer calls this again. If the pager is gone, the
        next one gets everything.
        """
        with contextlib.suppress(BlockingIOError, BrokenPipeError, ConnectionResetError):
            while self._passed_on < len(self._pending):
                _, request, fds = self._pending[self._passed_on]
                socket.send_fds(self._control, [json.dumps(request).encode()], fds)
                self._passed_on += 1

    def _note_pinned(self, request: dict[str, Any]) -> None:
        regions = range(request["first"], request["first"] + request["regions"])
        rest = [r for r in self._setup.pinned if r not in regions]
        self._setup.pinned = rest + (list(regions) if request["do"] == "pin" else [])

    def _relay_back(self) -> bool:
        """Pass an answer of the pager on to the peer that asked first. False: the pager is gone."""
        try:
            data = self._control.recv(pager.MESSAGE)
        except BlockingIOError:
            return True
        except OSError:
            data = b""
        if not data:
            with contextlib.suppress(KeyError):
                self._poll.unregister(self._control)
            return False
        answer = json.loads(data)
        if "fatal" in answer:
            pager.end_program(self._setup.pidfd, answer["fatal"])
            return True
        if "failed" in answer:
            self._failed = Failure(answer["failed"], answer["why"])
            return True
        peer, request, _ = self._pending.popleft()
        self._passed_on -= 1
        self._pass_on()
        # not before the answer: a pager that dies while it removes leaves the rest to the next one
        if request["do"] == "remove" and "error" not in answer:
            self._forget(request["id"])
        elif request["do"] == "add" and "error" in answer:
            self._forget(request["object"]["id"])
        with contextlib.suppress(OSError):
            peer.send(data)
        return True

    def _forget(self, ident: int) -> None:
        self._objects.pop(ident, None)
        for fd in self._files.pop(ident, ()):
            os.close(fd)

    def _accept(self) -> None:
        """Accept a peer that asks what there is, if it is of the same user."""
        try:
            peer, _ = self._listener.accept()
        except OSError:  # it has left already, or there is no descriptor for it
            return
        if not is_own(peer) or len(self._peers) >= MOST_PEERS:
            peer.close()
            return
        peer.setblocking(False)  # nobody waits for a peer that does not read
        self._peers[peer.fileno()] = peer
        self._poll.register(peer, select.POLLIN)


def main() -> int:
    """``python -m tidegate.live.pager.supervisor SETUP SOCKET``, started by an arena."""
    mark_own_process()
    ignore_interrupts(all_of_them=True)  # they are for the program, which needs us to its end
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))  # two per opened file
    setup, program = ArenaSetup.of(sys.argv[1]), socket.socket(fileno=int(sys.argv[2]))
    code = _supervise(setup, program)
    _tell_witness(setup, "ended")
    return code


def _tell_witness(setup: ArenaSetup, state: str) -> None:
    if setup.witness >= 0:
        with contextlib.suppress(OSError):  # it was killed
            os.write(setup.witness, f"{state}\n".encode())


def _supervise(setup: ArenaSetup, program: socket.socket) -> int:
    try:
        _send(program, {}, [])  # what follows is code of policies: the program waits for so long
        policies = make_policies(setup)
        check_policies(policies)
        if setup.tiering:
            make_tiering(setup)
        # others have single pages taken away, or put in memory without being mapped
        by_region = {Faults, Samples} if can_unmap(setup.pidfd) else {Faults}
        whole_regions = not setup.tiering and {type(p.sees) for p in policies} <= by_region
        size = setup.pages * setup.page
        setup.memory, setup.huge = near_file.create(size, setup.region, whole_regions)
        supervisor = Supervisor(setup, program)
        _warm_up(setup)
    except Exception as error:
        _send(program, {"error": pager.describe_error(error)}, [])
        return 2
    gc.freeze()  # what was imported stays shared with every pager
    _tell_witness(setup, "serving")
    _send(program, {}, [setup.memory])
    return supervisor.run()


def _close(fds: list[int]) -> None:
    for fd in fds:
        os.close(fd)


def _warm_up(setup: ArenaSetup) -> None:
    """Call each policy on a few regions: what it compiles is shared with every pager.

    A user's own policy is called in a pager only, where the watchdog can end it. Errors do not
    matter here; the first pager reports them.
    """
    if suspect(setup, "") is not None:
        return

    def stop(*_: Any) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, START_TIMES * setup.watchdog)
    geometry = Geometry(setup.page, setup.region)
    with contextlib.suppress(Exception):
        engine = Engine(geometry, 2, make_policies(setup), NoMover())
        engine.set_objects((Object("none", 4 * setup.region, 0, 4 * geometry.pages_per_region),))
        engine.start()
        for region in (0, 1, 2, 3, 0):
            engine.serve([region * geometry.pages_per_region])
    if setup.tiering:
        with contextlib.suppress(Exception):
            tiers = LiveTiers(make_tiering(setup), 2 * geometry.pages_per_region, 1, 1)
            for page in (0, 1, 0):
                tiers.note_fault(page)
                tiers.leaves(page)
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


def _send(program: socket.socket, answer: dict[str, str], fds: list[int]) -> None:
    # if the program has ended meanwhile, `run` notices
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        socket.send_fds(program, [json.dumps(answer).encode()], fds)


if __name__ == "__main__":
    sys.exit(main())
