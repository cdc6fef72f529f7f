"""Running arenas: their supervisors listen under abstract socket names."""

from __future__ import annotations

import json
import re
import socket
from pathlib import Path
from typing import Any

_NAME = re.compile(r"@(tidegate-live-\d+-(\d+)-\d+)$")
_TIMEOUT = 2.0  # seconds for an answer
_MESSAGE = 1 << 17


def running_arenas(residency: bool = False) -> list[dict[str, Any]]:
    """Return the statistics of every arena that answers, with its process and user.

    ``residency``: also which regions of its largest arrays are near, as digits from 0 to 9.
    """
    names = Path("/proc/net/unix").read_text().splitlines()
    found = []
    for name, process in sorted({(m[1], int(m[2])) for m in map(_NAME.search, names) if m}):
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as peer:
                peer.settimeout(_TIMEOUT)
                peer.connect("\0" + name)
                credentials = peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
                user = int.from_bytes(credentials[4:8], "little")
                arena = {"process": process, "name": name, "user": user, **_ask(peer, "stats")}
                if residency:
                    arena["residency"] = _ask(peer, "residency")
        except (OSError, ValueError, KeyError):
            continue  # another user's, or just ending
        found.append(arena)
    return found


def _ask(peer: socket.socket, what: str) -> Any:
    peer.send(json.dumps({"do": what}).encode())
    return json.loads(peer.recv(_MESSAGE))[what]


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
