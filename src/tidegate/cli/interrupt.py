"""Ctrl-C, wherever it arrives.

Python raises it in the middle of whatever runs. Inside a compiler's callback it comes out as some other error; inside a
``__del__`` it is printed and lost. Here it is remembered, and raised again where it was lost.
"""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

AGAIN = 0.05  # seconds until a lost Ctrl-C is raised again: it must not arrive in the same ``__del__``


@contextmanager
def heeded() -> Iterator[None]:
    """Whatever a Ctrl-C turns into in this block leaves it as KeyboardInterrupt."""
    if threading.current_thread() is not threading.main_thread():  # signals are none of its business
        yield
        return
    arrived = False
    again: list[threading.Timer] = []

    def note(number: int, frame: Any) -> None:
        nonlocal arrived
        arrived = True
        raise KeyboardInterrupt

    def unraisable(lost: Any) -> None:
        if arrived:
            again.append(threading.Timer(AGAIN, signal.pthread_kill, (threading.main_thread().ident, signal.SIGINT)))
            again[-1].start()
        else:
            before_hook(lost)

    before_hook, before_signal = sys.unraisablehook, signal.getsignal(signal.SIGINT)
    if before_signal is not signal.default_int_handler:  # somebody has other plans for it
        yield
        return
    sys.unraisablehook = unraisable
    signal.signal(signal.SIGINT, note)
    try:
        yield
    except Exception as error:
        if arrived:
            raise KeyboardInterrupt from error
        raise
    finally:
        sys.unraisablehook = before_hook
        signal.signal(signal.SIGINT, lambda number, frame: None)  # it was not lost after all: once is enough
        for timer in again:
            timer.cancel()
            timer.join()
        signal.signal(signal.SIGINT, before_signal)
