"""Which arenas are running? Their supervisors listen under abstract names, which leave no file behind."""

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
                found.append({"process": process, **json.loads(peer.recv(1 << 17))["stats"]})
        except (OSError, ValueError, KeyError):
            continue  # another user's, or just ending
    return found


def _sockets() -> list[str]:
    return Path("/proc/net/unix").read_text().splitlines()
