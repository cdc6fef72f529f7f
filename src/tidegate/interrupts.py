"""Ctrl-C while we are still being imported: one line and exit code 130, in place of a traceback of
imports.
"""

from __future__ import annotations

import os
import signal
from contextlib import contextmanager

# typing itself is not imported: until ``starting`` there is nobody to answer a Ctrl-C
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

INTERRUPTED = 130


@contextmanager
def starting() -> Iterator[None]:
    """For imports, at a moment when there is nothing to put away: Ctrl-C ends the process there and
    then.

    One that was held back (``hold_back``) arrives here.
    """
    before = signal.getsignal(signal.SIGINT)
    if before is signal.default_int_handler:  # else somebody has other plans for it
        signal.signal(signal.SIGINT, _stop)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def hold_back() -> None:
    """Hold Ctrl-C back until somebody answers it again: ``starting``, also behind ``exec``, or the
    command line.
    """
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})


def _stop(number: int, frame: Any) -> None:
    os.write(2, b"tidegate: stopped\n")
    os._exit(INTERRUPTED)
