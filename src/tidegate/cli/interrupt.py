"""Ctrl-C, wherever it arrives.

Python raises it in the middle of whatever runs. Inside a compiler's callback it comes out as some
other error; inside a ``__del__`` it is printed and lost. Here it is remembered, and raised again
where it was lost.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_HELD = {signal.SIGINT}
# seconds until a lost Ctrl-C is raised again: it must not arrive in the same ``__del__``
AGAIN = 0.05
_again: list[threading.Timer] = []  # who will do that


@contextmanager
def heeded() -> Iterator[None]:
    """Whatever a Ctrl-C turns into in this block leaves it as KeyboardInterrupt; one that was held
    back arrives here.
    """
    # signals are none of its business
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    arrived = False

    def note(number: int, frame: Any) -> None:
        nonlocal arrived
        arrived = True
        raise KeyboardInterrupt

    def unraisable(lost: Any) -> None:
        if arrived:
            _again.append(
                threading.Timer(
                    AGAIN, signal.pthread_kill, (threading.main_thread().ident, signal.SIGINT)
                )
            )
            _again[-1].start()
        else:
            before_hook(lost)

    before_hook, before_signal = sys.unraisablehook, signal.getsignal(signal.SIGINT)
    if before_signal is not signal.default_int_handler:  # somebody has other plans for it
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _HELD)
        yield
        return
    sys.unraisablehook = unraisable
    signal.signal(signal.SIGINT, note)
    try:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _HELD)
        yield
    except Exception as error:
        if arrived:
            raise KeyboardInterrupt from error
        raise
    finally:
        sys.unraisablehook = before_hook
        # it was not lost after all: once is enough
        signal.signal(signal.SIGINT, lambda number, frame: None)
        while _again:
            _again[-1].cancel()
            _again.pop().join()
        signal.signal(signal.SIGINT, before_signal)


def send_lost() -> None:
    """Before ``exec``, which ends the thread that would do it later; where Ctrl-C is held back it
    then waits.
    """
    if _again:
        os.kill(os.getpid(), signal.SIGINT)
