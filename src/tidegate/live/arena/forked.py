"""Forked children: they do not have the parent's arrays, and using one is a SIGSEGV.

The handler of that signal is a Python function, by way of ctypes. That is safe here: the signal
comes from an access to an array, not from the middle of malloc or of Python's own code, and the
process ends at once.
"""

from __future__ import annotations

import ctypes
import os
import signal
from typing import Any

_SA_SIGINFO = 4
_ADDRESS_AT = 16  # of si_addr in siginfo_t, on 64-bit Linux
_LINE = (
    b"tidegate: a forked child used an array of its parent's arena, which it does not have; "
    b'use the start method "spawn", or threads\n'
)
_Handler = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)


class _Action(ctypes.Structure):
    """glibc's struct sigaction on 64-bit Linux."""

    _fields_ = (
        ("handler", ctypes.c_void_p),
        ("mask", ctypes.c_uint64 * 16),
        ("flags", ctypes.c_int),
        ("restorer", ctypes.c_void_p),
    )


_kept: list[Any] = []  # the handler must live as long as the process


def end_on_use(ranges: list[tuple[int, int]]) -> None:
    """End this process with one line when it uses an address in these ranges."""
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
