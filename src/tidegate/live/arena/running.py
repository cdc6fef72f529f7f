"""Which arenas are running?

Their supervisors listen under abstract names, which leave no file behind.
"""

from __future__ import annotations

import json
import re
import socket
from pathlib import Path
from typing import Any

_NAME = re.compile(r"@(tidegate-live-\d+-(\d+)-\d+)$")
_PATIENCE = 2.0  # seconds for an answer


def running_arenas() -> list[dict[str, Any]]:
    """The statistics of every arena that answers us, with its process."""
    found = []
    for name, process in sorted({(m[1], int(m[2])) for m in map(_NAME.search, _sockets()) if m}):
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as peer:
                peer.settimeout(_PATIENCE)
                peer.connect("\0" + name)
                peer.send(b'{"do": "stats"}')
                found.append(
                    {"process": process, "name": name, **json.loads(peer.recv(1 << 17))["stats"]}
                )
        except (OSError, ValueError, KeyError):
            continue  # another user's, or just ending
    return found


def _sockets() -> list[str]:
    return Path("/proc/net/unix").read_text().splitlines()


def rates(before: list[dict[str, Any]], after: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What happened between two looks at the same arenas, per second; since its beginning for one
    that is new.

    ``hit_share``: of the uses that were noticed (faults, and uses of sampled pages), those that
    found their page near; None if there were none, or nothing is observed.
    """
    earlier = {a["name"]: a for a in before}
    return [arena | _rate(earlier.get(arena["name"], {}), arena) for arena in after]


def _rate(before: dict[str, Any], after: dict[str, Any]) -> dict[str, Any]:
    if before.get("restarts") != after["restarts"]:
        before = {}  # a new pager counts anew
    faults, noticed, seconds = (
        after[k] - before.get(k, 0) for k in ("faults", "notifications", "seconds")
    )
    return {
        "faults_per_second": faults / max(seconds, 1e-9),
        "hit_share": noticed / (noticed + faults)
        if after["observations"] and noticed + faults
        else None,
    }
