"""The program's end of the line to its arena's supervisor: start it, ask it, hang up.

ask      one request, one answer; a Ctrl-C while it is waited for goes through, and the late answer is skipped
insist   the same, but a Ctrl-C waits until the answer is there
lifeline if the supervisor dies, the kernel itself sends SIGBUS: no Python here may be able to run
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
from tidegate.live.arena.setup import Setup

_MESSAGE = 1 << 17
_F_SETSIG = 10
_GOODBYE = 10  # seconds for the supervisor to end


class Connection:
    """One arena's. ``undo`` hangs up, which ends the supervisor and its pager."""

    def __init__(self, setup: Setup, undo: contextlib.ExitStack):
        self._lock = threading.Lock()
        self._numbers = itertools.count(1)
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        undo.callback(self._socket.close)
        self._lifeline, setup.lifeline = os.pipe()
        undo.callback(os.close, self._lifeline)
        with contextlib.ExitStack() as passed_on:
            passed_on.callback(theirs.close)
            passed_on.callback(os.close, setup.lifeline)
            self.supervisor = _start(setup, theirs.fileno())
            undo.callback(self._hang_up)
        self._hear_whether_it_began()
        # before the supervisor is let go
        undo.callback(fcntl.fcntl, self._lifeline, fcntl.F_SETFL, os.O_NONBLOCK)
        self._tie_lifeline()

    def ask(self, request: dict[str, Any], fds: list[int] | None = None) -> dict[str, Any]:
        """The answer to this request."""
        with self._lock:
            number = next(self._numbers)
            self._send(request | {"number": number}, fds or [])
            return self._receive(number)

    def insist(self, request: dict[str, Any]) -> tuple[dict[str, Any], KeyboardInterrupt | None]:
        """The answer, and the Ctrl-C that came meanwhile."""
        number, sent, answer = next(self._numbers), False, None
        late: KeyboardInterrupt | None = None
        with self._lock:
            while answer is None:
                try:
                    if not sent:
                        self._send(request | {"number": number}, [])
                        sent = True
                    answer = self._receive(number)
                except KeyboardInterrupt as error:
                    late = error
        return answer, late

    def leave_open(self) -> None:
        """Nothing more is asked; the line stays as long as the process, since hanging up would end
        the supervisor.
        """
        self._socket.detach()

    def forget(self) -> None:
        """In a forked child: the line is the parent's."""
        self._socket.close()

    # Details

    def _hear_whether_it_began(self) -> None:
        answer = self._socket.recv(_MESSAGE)
        if not answer:
            raise TidegateError(
                "the supervisor of the arena did not start; see what it wrote to stderr"
            )
        if "error" in (said := json.loads(answer)):
            raise TidegateError(said["error"])

    def _tie_lifeline(self) -> None:
        fcntl.fcntl(self._lifeline, _F_SETSIG, signal.SIGBUS)
        fcntl.fcntl(self._lifeline, fcntl.F_SETOWN, os.getpid())
        fcntl.fcntl(self._lifeline, fcntl.F_SETFL, os.O_ASYNC | os.O_NONBLOCK)

    def _send(self, request: dict[str, Any], fds: list[int]) -> None:
        with contextlib.suppress(OSError):  # whoever waits for the answer will notice
            socket.send_fds(self._socket, [json.dumps(request).encode()], fds)

    def _receive(self, number: int) -> dict[str, Any]:
        """The answer to this request.

        Those to requests that were interrupted (Ctrl-C) come first, and are not wanted.
        """
        while True:
            try:
                data = self._socket.recv(_MESSAGE)
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
            raise TidegateError(answer["error"])
        return answer

    def _hang_up(self) -> None:
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_WR)
        try:
            self.supervisor.wait(timeout=_GOODBYE)
        except subprocess.TimeoutExpired:
            self.supervisor.kill()
            self.supervisor.wait()


def _start(setup: Setup, line: int) -> subprocess.Popen[bytes]:
    package = str(Path(__file__).parents[3])
    paths = [package, *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    return subprocess.Popen(
        [sys.executable, "-m", "tidegate.live.pager.supervisor", setup.text(), str(line)],
        pass_fds=[*setup.descriptors, line],
        stdin=subprocess.DEVNULL,
        start_new_session=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(paths)},
    )
