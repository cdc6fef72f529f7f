"""Other users: they get nothing from an arena's socket, and nothing is sent to theirs."""

from __future__ import annotations

import contextlib
import json
import os
import pickle
import re
import select
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from live.test_reliable import SMALL
from live.test_residency import ours
from tidegate.errors import TidegateError
from tidegate.live import Arena
from tidegate.live.arena.running import running_arenas

NOBODY = 65534
pytestmark = [
    pytest.mark.live,
    pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user"),
]


@contextlib.contextmanager
def another_user(act: Callable[[], bytes]) -> Iterator[int]:
    """Run ``act`` as another user; yield a descriptor with what it returns, until the end."""
    said, theirs = os.pipe()
    stay, end = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.close(end)
            os.setgroups([])
            os.setresgid(NOBODY, NOBODY, NOBODY)
            os.setresuid(NOBODY, NOBODY, NOBODY)
            os.write(theirs, act())
            os.read(stay, 1)
        finally:
            os._exit(0)
    try:
        yield said
    finally:
        for fd in (said, theirs, stay, end):
            os.close(fd)
        os.waitpid(pid, 0)


def listening(*names: str) -> Callable[[], bytes]:
    """Return what binds these names, answers one peer and returns what that peer sent."""

    def act() -> bytes:
        act.sockets = [socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) for _ in names]  # type: ignore[attr-defined]
        for one, name in zip(act.sockets, names, strict=True):  # type: ignore[attr-defined]
            one.bind("\0" + name)
            one.listen()
        return b"listens"

    return act


def ended_arena() -> tuple[str, bytes]:
    """Return the name of an arena that has ended, and a pickled handle of an array of it."""
    with Arena(**SMALL) as arena:  # type: ignore[arg-type]
        return arena._name, pickle.dumps(arena.share(arena.zeros(1000)))


def test_a_reader_sends_nothing_to_another_user() -> None:
    name, handle = ended_arena()

    def act() -> bytes:
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
            listener.bind("\0" + name)
            listener.listen()
            os.write(ready[1], b"listens")
            peer, _ = listener.accept()
            with contextlib.suppress(OSError):
                return b"got " + peer.recv(1000)
            return b"got "

    ready = os.pipe()
    with another_user(act) as said:
        assert os.read(ready[0], 100) == b"listens"
        with pytest.raises(TidegateError, match="another user listens under its name"):
            pickle.loads(handle).open()
        assert os.read(said, 100) == b"got "
    for fd in ready:
        os.close(fd)


def test_another_user_gets_no_answer() -> None:
    with Arena(**SMALL) as arena:  # type: ignore[arg-type]

        def act() -> bytes:
            with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as peer:
                peer.connect("\0" + arena._name)
                with contextlib.suppress(OSError):
                    peer.send(json.dumps({"do": "stats"}).encode())
                    return b"got " + peer.recv(1000)
                return b"got "

        with another_user(act) as said:
            assert os.read(said, 100) == b"got "


def test_root_does_not_enter_an_arena_of_another_user_either() -> None:
    """Root's userfaultfd would be in the hands of that user's pager."""
    name, handle = ended_arena()
    with another_user(listening(name)) as said:
        os.read(said, 100)
        with pytest.raises(TidegateError, match="another user"):
            pickle.loads(handle).open()


def test_taken_names_do_not_stop_arenas_and_are_not_listed() -> None:
    """Neither those of the next arenas by number, nor any that look like ours."""
    user, process = os.geteuid(), os.getpid()
    taken = [f"tidegate-live-{user}-{process}-{n}" for n in range(100)]
    with another_user(listening(*taken)) as said:
        assert os.read(said, 100) == b"listens"
        with Arena(**SMALL) as arena:  # type: ignore[arg-type]
            assert ours()["name"] == arena._name
        assert process not in [a["process"] for a in running_arenas()]


def test_names_cannot_be_foreseen() -> None:
    names = {ended_arena()[0] for _ in range(2)}
    assert len({re.sub(".*-", "", name) for name in names}) == 2
    assert all(re.fullmatch(r"tidegate-live-\d+-\d+-[0-9a-f]{16}", name) for name in names)


def test_silent_sockets_cost_one_deadline_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """Own ones, such as of programs that are stopped."""
    waits = []
    real = select.poll

    class Poll:
        def __init__(self) -> None:
            self._poll = real()
            self.register, self.unregister = self._poll.register, self._poll.unregister

        def poll(self, milliseconds: float) -> list[tuple[int, int]]:
            waits.append(milliseconds)
            return self._poll.poll(0) if len(waits) < 5 else self._poll.poll(milliseconds)

    monkeypatch.setattr("tidegate.live.arena.running._TIMEOUT", 0.2)
    monkeypatch.setattr("tidegate.live.arena.running.select.poll", Poll)
    with contextlib.ExitStack() as opened:
        for n in range(20):
            one = opened.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET))
            one.bind(f"\0tidegate-live-{os.geteuid()}-{os.getpid()}-{n:x}")
            one.listen()
        assert not [a for a in running_arenas() if a["process"] == os.getpid()]
    assert waits == sorted(waits, reverse=True)  # what is left of one deadline
    assert max(waits) <= 200


def test_the_helpers_of_another_user_are_not_asked(tmp_path: Path) -> None:
    """``live top`` names no arena of others."""
    name, _ = ended_arena()
    with another_user(listening(name)) as said:
        os.read(said, 100)
        done = subprocess.run(
            [sys.executable, "-m", "tidegate", "live", "top", "--json"],
            capture_output=True,
            text=True,
            timeout=100,
        )
        assert name not in done.stdout
