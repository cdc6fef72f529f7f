"""The supervisor: holds every descriptor, starts the pager, and starts it again when it dies.

It imports all that a pager needs and then forks pagers, so that a new one is there in milliseconds.
It never touches the arena's memory. It ends when the program ends; when *it* ends first, the
lifeline closes and the kernel sends the program SIGBUS, because nobody would serve its faults.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import select
import signal
import socket
import sys
import time
from collections import deque
from typing import Any

from tidegate.errors import TidegateError
from tidegate.live.arena.setup import Setup
from tidegate.live.pager import pager
from tidegate.live.pager.relay import check_policies
from tidegate.live.pager.tier_placement import check_tiering
from tidegate.policies.registries import tiering

# pagers in a row that live for less than SHORT seconds, ten seconds in all: something is wrong for
# good
TOO_OFTEN = 200
SHORT = 0.05


class Supervisor:
    """One arena's."""

    def __init__(self, setup: Setup, program: socket.socket):
        self._setup, self._program = setup, program
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._listener.bind("\0" + setup.name)  # an abstract name: no file, and gone when we are
        self._listener.listen()
        self._peers: dict[int, socket.socket] = {}
        # sent on, not answered yet
        self._pending: deque[tuple[socket.socket, dict[str, Any], list[int]]] = deque()
        self._objects: dict[int, dict[str, Any]] = {}
        self._files: dict[int, tuple[int, int]] = {}
        self._restarts = -1
        self._soon = 0
        self._started = 0.0
        self._poll = select.poll()
        for fd in (setup.pidfd, program.fileno(), self._listener.fileno()):
            self._poll.register(fd, select.POLLIN)

    def run(self) -> int:
        """Until the arena is closed or the program is gone."""
        self._start_pager()
        while True:
            for fd, _ in self._poll.poll():
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

    def _start_pager(self) -> None:
        self._restarts += 1
        self._started = time.monotonic()
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._pid = os.fork()
        if self._pid == 0:
            self._control.close()
            self._program.close()
            self._listener.close()
            os.close(self._setup.lifeline)
            try:
                os._exit(
                    pager.main(self._setup, theirs, self._objects, self._files, self._restarts)
                )
            finally:
                os._exit(1)
        theirs.close()
        self._pager_fd = os.pidfd_open(self._pid)
        self._poll.register(self._pager_fd, select.POLLIN)
        self._poll.register(self._control, select.POLLIN)
        for _, request, fds in self._pending:
            self._pass_on(request, fds)

    def _program_ended(self) -> int:
        """Nobody needs a pager any more, nor us."""
        os.kill(self._pid, signal.SIGKILL)
        os.waitpid(self._pid, 0)
        return 0

    def _pager_ended(self) -> int | None:
        """Start another one, unless it closed the arena or says that nothing can be done."""
        while self._control in select.select([self._control], [], [], 0)[0] and self._relay_back():
            pass
        self._poll.unregister(self._pager_fd)
        os.close(self._pager_fd)
        with contextlib.suppress(KeyError):
            self._poll.unregister(self._control)
        self._control.close()
        status = os.waitstatus_to_exitcode(os.waitpid(self._pid, 0)[1])
        if status == pager.CLOSED:
            self._wait_for_goodbye()
            return 0
        if status == pager.FAILED:
            return 1
        self._soon = self._soon + 1 if time.monotonic() - self._started < SHORT else 0
        if self._soon == TOO_OFTEN:
            pager.end_program(self._setup.pidfd, "the pager died again and again")
            return 1
        self._start_pager()
        return None

    def _wait_for_goodbye(self) -> None:
        """The program has its answer and hangs up.

        If we were gone before that, it would take our end for an accident.
        """
        goodbye = select.poll()
        goodbye.register(self._program, select.POLLIN)
        goodbye.register(self._setup.pidfd, select.POLLIN)
        goodbye.poll()

    def _relay(self, peer: socket.socket) -> bool:
        """A request: note what a new pager would have to know, and pass it on.

        False: the peer has hung up.
        """
        try:
            data, fds, _, _ = socket.recv_fds(peer, pager.MESSAGE, 2)
        except OSError:
            data, fds = b"", []
        if not data:
            self._poll.unregister(peer)
            self._peers.pop(peer.fileno(), None)
            peer.close()
            return False
        request = json.loads(data)
        if peer is not self._program and request["do"] != "stats":
            return True
        if request["do"] == "add":
            self._objects[request["object"]["id"]] = request["object"]
            if fds:
                self._files[request["object"]["id"]] = (fds[0], fds[1])
        self._note_held(request)
        self._pending.append((peer, request, fds))
        self._pass_on(request, fds)
        return True

    def _pass_on(self, request: dict[str, Any], fds: list[int]) -> None:
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # its successor gets it
            socket.send_fds(self._control, [json.dumps(request).encode()], fds)

    def _note_held(self, request: dict[str, Any]) -> None:
        if request["do"] in ("hold", "let_go"):
            regions = range(request["first"], request["first"] + request["regions"])
            rest = [r for r in self._setup.held if r not in regions]
            self._setup.held = rest + (list(regions) if request["do"] == "hold" else [])

    def _relay_back(self) -> bool:
        """An answer of the pager's, for whoever asked first. False: the pager is gone."""
        try:
            data = self._control.recv(pager.MESSAGE)
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
        peer, request, _ = self._pending.popleft()
        # no earlier: a pager that dies in the middle of it
        if request["do"] == "remove" and "error" not in answer:
            self._objects.pop(request["id"], None)  # leaves the rest to its successor
            for fd in self._files.pop(request["id"], ()):
                os.close(fd)
        with contextlib.suppress(OSError):
            peer.send(data)
        return True

    def _accept(self) -> None:
        peer, _ = self._listener.accept()
        uid = int.from_bytes(
            peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)[4:8], "little"
        )
        if uid not in (0, os.getuid()):
            peer.close()
            return
        self._peers[peer.fileno()] = peer
        self._poll.register(peer, select.POLLIN)


def main() -> int:
    """``python -m tidegate.live.pager.supervisor SETUP SOCKET``, started by an arena."""
    # Ctrl-C is for the program; we are needed until it is gone
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    setup, program = Setup.of(sys.argv[1]), socket.socket(fileno=int(sys.argv[2]))
    try:
        policies = pager.make_policies(setup)
        check_policies(policies)
        if setup.tiering:
            check_tiering(tiering.make(setup.tiering))
        supervisor = Supervisor(setup, program)
    except Exception as error:
        said = (
            str(error) if isinstance(error, TidegateError) else f"{type(error).__name__}: {error}"
        )
        _tell(program, {"error": said})
        return 2
    gc.freeze()  # what was imported is shared with every pager, and stays shared
    _tell(program, {})
    return supervisor.run()


def _tell(program: socket.socket, answer: dict[str, str]) -> None:
    # ended while we began: `run` notices
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        program.send(json.dumps(answer).encode())


if __name__ == "__main__":
    sys.exit(main())
