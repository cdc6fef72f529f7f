"""The exit code of a process that is ending already."""

from __future__ import annotations

import ctypes


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
