"""The process of an arena: what happens when it ends, and when it forks."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from typing import TYPE_CHECKING, Any

from tidegate.display.tables import printable
from tidegate.errors import TidegateError

if TYPE_CHECKING:
    from tidegate.live.arena.arena import Arena

_SA_SIGINFO = 4
_ADDRESS_AT = 16  # of si_addr in siginfo_t, on 64-bit Linux
_LINE = (
    b"tidegate: a forked child used an array of its parent's arena, which it does not have; "
    b'use the start method "spawn", or threads\n'
)
_Handler = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
_kept: list[Any] = []  # the handler must live as long as the process


def write_back(arenas: list[Arena]) -> None:
    """Write changes back when the program ends without closing its arenas.

    The arenas stay open until the process is gone: daemon threads may still use their arrays.
    """
    interrupts = []
    for arena in arenas:
        if not arena.is_open:
            continue
        try:
            _, interrupt = arena._connection.request_uninterrupted({"do": "flush"})
            interrupts.append(interrupt)
            arena.finish()
        except TidegateError as error:
            report(error)
        finally:
            arena.leave_open()
    for interrupt in filter(None, interrupts):
        raise interrupt


def report(error: TidegateError) -> None:
    """Report an error that cannot be raised: one line, and the program's exit code."""
    print(f"tidegate: {printable(str(error))}", file=sys.stderr, flush=True)
    set_exit_code(1)


def set_exit_code(code: int) -> None:
    """End this process with ``code`` when it ends, also if it is ending now.

    Python's functions of atexit cannot change the exit code. libc's are called after them, and one
    of these can be ``_exit`` itself, behind a last flush.
    """
    libc = ctypes.CDLL(None)
    register = getattr(libc, "__cxa_atexit")
    register.argtypes = [ctypes.c_void_p] * 3
    register(ctypes.cast(libc._exit, ctypes.c_void_p), code, None)
    register(ctypes.cast(libc.fflush, ctypes.c_void_p), None, None)  # called first


def detach_child(arenas: list[Arena]) -> None:
    """Detach a forked child: it has no connection, and using an array ends it with one line."""
    for arena in arenas:
        arena._finalizer.detach()
        arena._connection.forget()
    end_on_use([arena.addresses for arena in arenas])


class _Action(ctypes.Structure):
    """glibc's struct sigaction on 64-bit Linux."""

    _fields_ = (
        ("handler", ctypes.c_void_p),
        ("mask", ctypes.c_uint64 * 16),
        ("flags", ctypes.c_int),
        ("restorer", ctypes.c_void_p),
    )


def end_on_use(ranges: list[tuple[int, int]]) -> None:
    """End this process with one line when it uses an address in these ranges.

    The child does not have this memory, so the access is a SIGSEGV. Its handler is a Python
    function, by way of ctypes. That is safe here: the signal comes from the use of an array, not
    from the middle of malloc or of Python's own code, and the process ends at once.
    """
    if not ranges:
        return
    libc, before = ctypes.CDLL(None), _Action()

    def handle(number: int, info: int, context: int) -> None:
        address = ctypes.c_uint64.from_address(info + _ADDRESS_AT).value
        if any(low <= address < high for low, high in ranges):
            os.write(2, _LINE)
            os._exit(1)
        libc.sigaction(number, ctypes.byref(before), None)  # the access is made again, and crashes

    handler = _Handler(handle)
    _kept.append(handler)
    action = _Action(ctypes.cast(handler, ctypes.c_void_p), flags=_SA_SIGINFO)
    libc.sigaction(signal.SIGSEGV, ctypes.byref(action), ctypes.byref(before))
