"""Who is at the other end of a socket: only processes of the same user are talked to.

Abstract socket names have no permissions: anyone can connect to one, and bind one that is free. So
both ends ask the kernel for the other's user before they send or accept anything.
"""

from __future__ import annotations

import os
import secrets
import socket
import struct

_CREDENTIALS = struct.Struct("=iii")  # process, user, group


def new_name() -> str:
    """Return a name for an arena's socket that nobody can have taken before."""
    return f"tidegate-live-{os.geteuid()}-{os.getpid()}-{secrets.token_hex(8)}"


def is_own(peer: socket.socket) -> bool:
    """Return whether a process of this user is at the other end."""
    found = peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    return bool(_CREDENTIALS.unpack(found)[1] == os.geteuid())


def connect(peer: socket.socket, name: str) -> None:
    """Connect to an arena's socket; refuse one that another user has bound."""
    peer.connect("\0" + name)
    if not is_own(peer):
        raise PermissionError(0, "another user listens under its name")
