"""The first steps of a worker process, before the package is imported.

It ends with its parent from the start: importing takes seconds.
"""

from __future__ import annotations

import os
import signal
from typing import Any

from tidegate.interrupts import end_with_parent, ignore_interrupts

READY = "ready"  # the first message: the function that answers is imported


class Stopped(BaseException):
    """The parent asks this process to end."""


def serve(connection: Any, parent: int) -> None:
    """Answer what arrives, one thing after another, until the parent ends.

    The function that answers arrives first, and is imported then. Ctrl-C is left to the parent, and
    standard output, too: what users' classes print goes to standard error.
    """
    end_with_parent(parent)
    ignore_interrupts()
    signal.signal(signal.SIGTERM, _stop)
    os.dup2(2, 1)
    try:
        answer = connection.recv()
        connection.send(READY)
        while True:
            connection.send(answer(connection.recv()))
    except (Stopped, EOFError, ConnectionError):
        return


def _stop(number: int, frame: Any) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # once is enough
    raise Stopped
