"""The supervisor survives any client: one that leaves, sends nonsense, or never reads."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys

import numpy as np
import pytest

from live.soak import children
from live.test_reliable import SMALL
from live.test_watchdog import NEVER
from tidegate.live import Arena
from tidegate.live.pager.supervisor import MOST_PENDING

pytestmark = pytest.mark.live
MESSAGES = {
    "join": b'{"do": "join"}',
    "garbage": b"\xff\xfe not json",
    "nothing asked": b"{}",
    "a list": b"[1]",
    "a list to do": b'{"do": ["stats"]}',
    "not for others": b'{"do": "close"}',
    "attach without descriptors": b'{"do": "attach", "base": 4096}',
    "attach without a base": b'{"do": "attach"}',
    "deep": b"[" * 60000,
    "a huge number": b'{"do": "stats", "number": ' + b"9" * 100000 + b"}",
    "statistics": b'{"do": "stats", "number": {"a": []}}',
}


def connected(arena: Arena) -> socket.socket:
    peer = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    peer.connect("\0" + arena._name)
    return peer


@pytest.mark.parametrize("message", MESSAGES.values(), ids=MESSAGES)
@pytest.mark.parametrize("leaves", [True, False])
def test_messages(message: bytes, leaves: bool) -> None:
    with Arena(**SMALL) as arena:  # type: ignore[arg-type]
        a = arena.zeros(1 << 18)
        peers = []
        for _ in range(20):
            peer = connected(arena)
            peer.send(message)
            peers.append(peer)
            if leaves:
                peer.close()
        a += 1
        assert (a == 1).all()
        assert arena.stats()["restarts"] == 0
        for peer in peers:
            peer.close()


@pytest.mark.parametrize("base", ["x", -4096, 5, 1.5, True, 1 << 70, None])
def test_descriptors_that_are_none_of_a_reader(base: object) -> None:
    with Arena(**SMALL) as arena:  # type: ignore[arg-type]
        read, write = os.pipe()
        with connected(arena) as peer:
            request = json.dumps({"do": "attach", "base": base}).encode()
            socket.send_fds(peer, [request], [read, read, write])
            assert peer.recv(100) == b""
        os.close(read)
        os.close(write)
        assert arena.stats()["restarts"] == 0


def test_a_peer_that_never_reads_its_answers() -> None:
    with Arena(**SMALL) as arena:  # type: ignore[arg-type]
        a = arena.zeros(1 << 18)
        with connected(arena) as peer:
            try:
                for _ in range(5000):
                    peer.send(b'{"do": "stats"}', socket.MSG_DONTWAIT)
            except OSError:
                pass  # it is full, or was hung up
            a += 1
            assert (a == 1).all()
            assert arena.stats()["restarts"] == 0


def test_a_stopped_pager_does_not_stop_the_supervisor() -> None:
    """More requests wait than the pager's socket holds."""
    with Arena(**SMALL, watchdog=NEVER) as arena, contextlib.ExitStack() as opened:  # type: ignore[arg-type]
        arena.zeros(1 << 18)[:] = 1
        (pager,) = children(arena._supervisor.pid)
        os.kill(pager, signal.SIGSTOP)
        peers = [opened.enter_context(connected(arena)) for _ in range(100)]
        for peer in peers:
            for _ in range(MOST_PENDING):
                peer.send(b'{"do": "stats"}')
        with connected(arena) as other:
            other.settimeout(100)
            other.send(b'{"do": "join"}')  # which the supervisor itself answers
            assert b"bytes" in other.recv(1000)
        os.kill(pager, signal.SIGCONT)
        for peer in peers:
            for _ in range(MOST_PENDING):
                assert b"stats" in peer.recv(1 << 17)


def test_a_reader_is_killed_while_it_opens() -> None:
    """The supervisor is held, as by a busy machine, until the reader is gone."""
    code = (
        "import pickle, sys, tidegate.live\n"
        "handle = pickle.loads(bytes.fromhex(sys.argv[1]))\n"
        "print('ready', flush=True)\n"
        "handle.open()\n"
    )
    import pickle

    with Arena(**SMALL) as arena:  # type: ignore[arg-type]
        a = arena.zeros(1 << 18)
        handle = pickle.dumps(arena.share(a)).hex()
        supervisor = arena._supervisor.pid
        os.kill(supervisor, signal.SIGSTOP)
        reader = subprocess.Popen(
            [sys.executable, "-c", code, handle], stdout=subprocess.PIPE, text=True
        )
        assert reader.stdout is not None
        assert reader.stdout.readline() == "ready\n"
        with connected(arena) as peer:  # as the reader does, before the supervisor goes on
            peer.send(b'{"do": "join"}')
        reader.kill()
        reader.communicate()
        os.kill(supervisor, signal.SIGCONT)
        a += 1
        assert np.array_equal(a, np.ones(1 << 18))
