"""Running arenas: their supervisors listen under abstract socket names."""

from __future__ import annotations

import contextlib
import json
import os
import re
import select
import socket
import time
from pathlib import Path
from typing import Any

from tidegate.live.arena.peers import connect

_NAME = re.compile(r"@(tidegate-live-(\d+)-(\d+)-[0-9a-f]+)$")
_TIMEOUT = 2.0  # seconds for the answers of all arenas together
_MESSAGE = 1 << 17


def running_arenas(residency: bool = False) -> list[dict[str, Any]]:
    """Return the statistics of this user's arenas that answer, with their processes.

    ``residency``: also which regions of its largest arrays are near, as digits from 0 to 9.
    """
    asked = ["stats", "residency"] if residency else ["stats"]
    names = map(_NAME.search, Path("/proc/net/unix").read_text().splitlines())
    arenas: dict[socket.socket, dict[str, Any]] = {}
    with contextlib.ExitStack() as opened:
        for name, user, process in sorted({m.groups() for m in names if m}):
            if int(user) != os.geteuid():
                continue
            peer = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET | socket.SOCK_NONBLOCK)
            try:
                connect(peer, name)
                for what in asked:
                    peer.send(json.dumps({"do": what}).encode())
            except OSError:  # another user's, busy, or just ending
                peer.close()
                continue
            opened.enter_context(peer)
            arenas[peer] = {"process": int(process), "name": name, "user": int(user)}
        answered = _receive(arenas, asked)
    return [arena for peer, arena in arenas.items() if peer in answered]


def _receive(arenas: dict[socket.socket, dict[str, Any]], asked: list[str]) -> set[socket.socket]:
    """Add the answers to the arenas; return those that have given all of them in time."""
    deadline, answered = time.monotonic() + _TIMEOUT, set()
    poll, waiting = select.poll(), {peer.fileno(): (peer, list(asked)) for peer in arenas}
    for fd in waiting:
        poll.register(fd, select.POLLIN)
    while waiting and (left := deadline - time.monotonic()) > 0:
        for fd, _ in poll.poll(1000 * left):
            peer, missing = waiting[fd]
            what = missing.pop(0)
            try:
                answer = json.loads(peer.recv(_MESSAGE))[what]
                arenas[peer] |= answer if what == "stats" else {what: answer}
                if missing:
                    continue
                answered.add(peer)
            except (OSError, ValueError, KeyError, TypeError):
                pass  # it is no arena of ours, or just ending
            del waiting[fd]
            poll.unregister(fd)
    return answered


def rates(before: list[dict[str, Any]], after: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the later statistics with rates per second; of a new arena, since it began.

    ``hit_share``: the share of noticed uses (faults, and uses of sampled pages) that found their
    page near; None if there were none, or nothing is observed.
    """
    earlier = {a["name"]: a for a in before}
    return [arena | _rate(earlier.get(arena["name"], {}), arena) for arena in after]


def _rate(before: dict[str, Any], after: dict[str, Any]) -> dict[str, Any]:
    if before.get("restarts") != after["restarts"]:
        before = {}  # a new pager counts from 0
    keys = ("faults", "notifications", "seconds")
    faults, notifications, seconds = (after[k] - before.get(k, 0) for k in keys)
    uses = notifications + faults
    share = notifications / uses if after["observations"] and uses else None
    return {"faults_per_second": faults / max(seconds, 1e-9), "hit_share": share}
