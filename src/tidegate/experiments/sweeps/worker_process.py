"""The first steps of a worker process, before the package is imported.

It ends with its parent from the start: importing takes seconds.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from typing import Any

from tidegate.compiled.own_process import mark_own_process
from tidegate.interrupts import AGAIN, end_with_parent, ignore_interrupts

READY = "ready"  # the first message: the function that answers is imported


class Stopped(BaseException):
    """The parent asks this process to end."""


def serve(connection: Any, parent: int) -> None:
    """Answer what arrives, one thing after another, until the parent ends.

    The function that answers arrives first, and is imported then. Ctrl-C is left to the parent, and
    standard output, too: what users' classes print goes to standard error.
    """
    end_with_parent(parent)
    mark_own_process()
    ignore_interrupts()
    signal.signal(signal.SIGTERM, _stop)
    sys.unraisablehook = _stop_again
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


def _stop_again(lost: Any) -> None:
    """Stop a little later, if Python lost the first: it came in a ``__del__`` or a C callback."""
    if lost.exc_type is not Stopped:
        sys.__unraisablehook__(lost)
        return
    signal.signal(signal.SIGTERM, _stop)
    threading.Timer(AGAIN, os.kill, (os.getpid(), signal.SIGTERM)).start()
