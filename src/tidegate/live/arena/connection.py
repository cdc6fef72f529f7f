"""The program's connection to its arena's supervisor: start it, send requests, hang up.

request    one request, one answer; if a Ctrl-C interrupts it, the late answer is skipped
lifeline   if the supervisor dies, the kernel itself sends SIGBUS: Python may be unable to run
witness    a shell that waits for the supervisor's end and says so; it is told of a good end
"""

from __future__ import annotations

import contextlib
import fcntl
import itertools
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

from tidegate.errors import TidegateError
from tidegate.interrupts import repeat_until_done
from tidegate.live.arena.setup import GONE, ArenaSetup
from tidegate.live.pager.calls import START_TIMES, suspect

MESSAGE = 1 << 17  # bytes of a request or an answer at most
_F_SETSIG = 10
_GOODBYE = 10  # seconds for the supervisor to end
# Pager and supervisor may die together, and the program cannot say anything: the thread that has
# Python's lock may wait for a page. If it handles SIGBUS it is killed after three seconds.
_WITNESS = f"""serving=
while read -r state; do
    [ "$state" = ended ] && exit
    serving=1
done
[ -n "$serving" ] || exit  # it ended while it started, which the program says itself
echo "{GONE}" >&2
n=0
while [ $n -lt 30 ]; do
    sleep 0.1
    n=$((n + 1))
    read -r own name state parent rest < /proc/$$/stat
    [ "$parent" = "$PPID" ] || exit  # the program has ended
done
kill -KILL "$PPID"
"""


class RequestError(TidegateError):
    """The pager answered a request with an error."""


class Connection:
    """One arena's connection. ``undo`` hangs up, which ends the supervisor and its pager."""

    def __init__(self, setup: ArenaSetup, undo: contextlib.ExitStack):
        self._lock = threading.Lock()
        self._numbers = itertools.count(1)
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        undo.callback(self._socket.close)
        self._lifeline, setup.lifeline = os.pipe()
        undo.callback(os.close, self._lifeline)
        with contextlib.ExitStack() as passed_on:
            passed_on.callback(theirs.close)
            passed_on.callback(os.close, setup.lifeline)
            self._witness, setup.witness = _start_witness()
            if self._witness is not None:
                undo.callback(self._witness.wait)
                passed_on.callback(os.close, setup.witness)
            self.supervisor = _start(setup, theirs.fileno())
            undo.callback(self._hang_up)
        self._wait_for_start(setup)
        # undone before the supervisor ends
        undo.callback(tie_lifeline, self._lifeline, False)
        tie_lifeline(self._lifeline, True)

    def request(self, request: dict[str, Any], fds: list[int] | None = None) -> dict[str, Any]:
        """Send a request and return its answer."""
        with self._lock:
            number = next(self._numbers)
            self._send(request | {"number": number}, fds or [])
            return self._receive(number)

    def request_uninterrupted(
        self, request: dict[str, Any]
    ) -> tuple[dict[str, Any], KeyboardInterrupt | None]:
        """Send a request and return its answer, and the Ctrl-C that came meanwhile."""
        number, sent = next(self._numbers), False

        def step() -> dict[str, Any]:
            nonlocal sent
            if not sent:
                self._send(request | {"number": number}, [])
                sent = True
            return self._receive(number)

        with self._lock:
            return repeat_until_done(step)

    def leave_open(self) -> None:
        """Send nothing more, but stay connected while the process lives."""
        self._socket.detach()

    def forget(self) -> None:
        """Close a forked child's end: the connection is the parent's."""
        self._socket.close()

    # Details

    def _wait_for_start(self, setup: ArenaSetup) -> None:
        fds: list[int] = []
        answer = self._socket.recv(MESSAGE)  # it is going to make the policies
        if answer:
            own, seconds = suspect(setup, "did not start"), START_TIMES * setup.watchdog
            self._socket.settimeout(seconds if own else None)
            try:
                answer, fds, _, _ = socket.recv_fds(self._socket, MESSAGE, 1)
            except TimeoutError:
                self._kill()  # it may be stopped, and cannot say anything
                said = f"{own.said if own else ''} within {seconds:g} s"
                raise TidegateError(f"{said}; mend it, or raise watchdog") from None
            self._socket.settimeout(None)
        if not answer:
            raise TidegateError(
                "the arena's supervisor ended while it started; stderr says why, unless a policy's "
                "file has ended it"
            )
        if "error" in (said := json.loads(answer)):
            raise TidegateError(said["error"])
        (self.memory,) = fds  # the memory file, which the supervisor has made

    def _send(self, request: dict[str, Any], fds: list[int]) -> None:
        with contextlib.suppress(OSError):  # _receive reports it
            socket.send_fds(self._socket, [json.dumps(request).encode()], fds)

    def _receive(self, number: int) -> dict[str, Any]:
        """Return the answer to this request; skip answers to interrupted ones."""
        while True:
            try:
                data = self._socket.recv(MESSAGE)
            except OSError:
                data = b""
            if not data:
                raise TidegateError(
                    "the arena's pager is gone; what was flushed is intact, the rest is lost"
                )
            answer: dict[str, Any] = json.loads(data)
            if answer.get("number") == number:
                break
        if "error" in answer:
            raise RequestError(answer["error"])
        return answer

    def _hang_up(self) -> None:
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_WR)
        try:
            self.supervisor.wait(timeout=_GOODBYE)
        except subprocess.TimeoutExpired:
            self._kill()
            self.supervisor.wait()

    def _kill(self) -> None:
        """Kill the supervisor, which is no accident."""
        if self._witness is not None:
            self._witness.kill()
        self.supervisor.kill()


def tie_lifeline(fd: int, tied: bool) -> None:
    """Have the kernel send us SIGBUS when the other end of this pipe closes, or no longer."""
    if tied:
        fcntl.fcntl(fd, _F_SETSIG, signal.SIGBUS)
        fcntl.fcntl(fd, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(fd, fcntl.F_SETFL, os.O_NONBLOCK | (os.O_ASYNC if tied else 0))


def _start_witness() -> tuple[subprocess.Popen[bytes] | None, int]:
    """Start the witness; return it and the pipe by which the supervisor tells it that all is well.

    Where there is no shell there is no witness: then the pager says that the supervisor is gone.
    """
    ours, theirs = os.pipe()
    try:
        witness = subprocess.Popen(
            ["/bin/sh", "-c", _WITNESS],
            stdin=ours,
            stdout=subprocess.DEVNULL,
            start_new_session=True,
        )
    except OSError:
        os.close(theirs)
        return None, -1
    finally:
        os.close(ours)
    return witness, theirs


def _start(setup: ArenaSetup, socket: int) -> subprocess.Popen[bytes]:
    package = str(Path(__file__).parents[3])
    paths = [package, *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    return subprocess.Popen(
        [sys.executable, "-P", "-m", "tidegate.live.pager.supervisor", setup.text(), str(socket)],
        pass_fds=[*setup.descriptors, socket],
        stdin=subprocess.DEVNULL,
        start_new_session=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(paths)},
    )
