"""Ctrl-C and SIGTERM: the one module that sets their handlers and masks.

    exiting_on_interrupt   while we are imported: one line and exit code 130, no traceback
    raising_interrupts     while a command runs: Ctrl-C or SIGTERM leaves the block as
                           KeyboardInterrupt
    block_interrupts       between the two, and across exec: Ctrl-C waits
    ignore_interrupts      in processes whose parent stops them
    end_with_parent        in processes that must not outlive their parent
    repeat_until_done      a step that must be completed: Ctrl-C comes after it

Python raises KeyboardInterrupt in the middle of whatever runs. In a compiler's callback it becomes
another error; in a ``__del__`` it is printed and lost. ``raising_interrupts`` mends both.
"""

from __future__ import annotations

import os
import signal
import sys
from contextlib import contextmanager

# typing is not imported: before exiting_on_interrupt a Ctrl-C is a traceback
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from threading import Timer
    from typing import Any, TypeVar

    T = TypeVar("T")

INTERRUPTED = 130  # the exit code
# seconds until a lost Ctrl-C is raised again: it must not arrive in the same ``__del__``
AGAIN = 0.05
_again: list[Timer] = []  # which will raise it
_PR_SET_PDEATHSIG = 1
# what Python does by itself; where a program has set another handler, that one stays
_DEFAULTS: dict[signal.Signals, Any] = {
    signal.SIGINT: signal.default_int_handler,
    signal.SIGTERM: signal.SIG_DFL,
}


@contextmanager
def exiting_on_interrupt() -> Iterator[None]:
    """End the process at once on Ctrl-C, also on one that was blocked: there is nothing to undo."""
    before = signal.getsignal(signal.SIGINT)
    if before is signal.default_int_handler:  # else the program handles it in another way
        signal.signal(signal.SIGINT, _exit)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _exit(number: int, frame: Any) -> None:
    os.write(2, b"tidegate: stopped\n")
    os._exit(INTERRUPTED)


def block_interrupts() -> None:
    """Let Ctrl-C wait for the next block that handles it, also behind ``exec``.

    A lost one that would be raised again is sent now: ``exec`` ends the thread that would do it.
    """
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    if _again:
        os.kill(os.getpid(), signal.SIGINT)


def ignore_interrupts(all_of_them: bool = False) -> None:
    """Ignore Ctrl-C in this process: a terminal sends it to all, and the parent handles it.

    ``all_of_them``: SIGTERM and SIGHUP, too, which the keeper of a service sends to all.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for other in (signal.SIGTERM, signal.SIGHUP) if all_of_them else ():
        signal.signal(other, signal.SIG_IGN)


def end_with_parent(parent: int) -> None:
    """Have the kernel end this process when its ``parent`` ends."""
    import ctypes

    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:  # it ended before the kernel knew
        os._exit(INTERRUPTED)


def repeat_until_done(step: Callable[[], T]) -> tuple[T, KeyboardInterrupt | None]:
    """Call ``step`` until no Ctrl-C interrupts it; return its result and the latest Ctrl-C."""
    interrupt = None
    while True:
        try:
            return step(), interrupt
        except KeyboardInterrupt as error:
            interrupt = error


@contextmanager
def raising_interrupts() -> Iterator[None]:
    """Let any Ctrl-C or SIGTERM leave this block as KeyboardInterrupt, also a blocked Ctrl-C."""
    import threading

    if threading.current_thread() is not threading.main_thread():  # signals do not arrive here
        yield
        return
    before_hook = sys.unraisablehook
    handled = [s for s, default in _DEFAULTS.items() if signal.getsignal(s) is default]
    arrived = 0

    def note(number: int, frame: Any) -> None:
        nonlocal arrived
        arrived = number
        raise KeyboardInterrupt

    def raise_again(lost: Any) -> None:
        if not arrived:
            before_hook(lost)
            return
        main = threading.main_thread().ident
        _again.append(threading.Timer(AGAIN, signal.pthread_kill, (main, arrived)))
        _again[-1].start()

    sys.unraisablehook = raise_again
    for number in handled:
        signal.signal(number, note)
    try:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
        yield
    except Exception as error:
        if arrived:
            raise KeyboardInterrupt from error
        raise
    finally:
        sys.unraisablehook = before_hook
        # it was not lost after all: once is enough
        for number in handled:
            signal.signal(number, lambda number, frame: None)
        while _again:
            _again[-1].cancel()
            _again.pop().join()
        for number in handled:
            signal.signal(number, _DEFAULTS[number])
