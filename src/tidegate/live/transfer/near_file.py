"""The memory file behind near memory, with huge pages where that is possible and safe.

A write of a whole region of 2 MiB into a file system of memory that allows huge pages takes one
huge page: it costs a third of filling 512 small ones, and giving it back a sixteenth. But
*any* write there may take a huge page, whose rest is zeros that seem to be there. So in such a file
only whole regions are written; all else goes by userfaultfd's copy, which takes small pages.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
from pathlib import Path

from tidegate.errors import TidegateError
from tidegate.live.transfer.userfault import check

HUGE = 2 * 1024 * 1024
_FSOPEN, _FSCONFIG, _FSMOUNT = 430, 431, 432  # system calls
_SET_STRING, _CREATE = 1, 6
_SETTING = Path("/sys/kernel/mm/transparent_hugepage/shmem_enabled")
_libc = ctypes.CDLL(None, use_errno=True)


def create(size: int, region: int, whole_regions: bool) -> tuple[int, bool]:
    """Return a descriptor of a memory file, and whether whole regions may be written to it.

    ``whole_regions``: the pager would write them. Huge pages need the privilege to mount.
    """
    if whole_regions and region % HUGE == 0:
        with contextlib.suppress(OSError):
            return _sized(_open_mounted("always"), size), True
    if not _writes_take_huge_pages():
        return _sized(os.memfd_create("tidegate-near", os.MFD_CLOEXEC), size), False
    try:
        return _sized(_open_mounted("never"), size), False
    except OSError as error:
        raise TidegateError(
            f"the kernel's setting {_SETTING} gives every file huge pages, which live memory "
            "cannot use without the privilege to mount; set it to advise or never"
        ) from error


def _sized(fd: int, size: int) -> int:
    os.ftruncate(fd, size)
    return fd


def _writes_take_huge_pages() -> bool:
    try:
        setting = _SETTING.read_text()
    except OSError:
        return False
    return any(f"[{value}]" in setting for value in ("always", "within_size", "force"))


def _open_mounted(huge: str) -> int:
    """Open a file without a name in a memory file system that is mounted nowhere."""
    with contextlib.ExitStack() as opened:
        system = _call(_FSOPEN, b"tmpfs", 1)
        opened.callback(os.close, system)
        for name, value in ((b"huge", huge.encode()), (b"size", b"0"), (b"mode", b"700")):
            _call(_FSCONFIG, system, _SET_STRING, name, value, 0)
        _call(_FSCONFIG, system, _CREATE, 0, 0, 0)
        mount = _call(_FSMOUNT, system, 1, 0)
        opened.callback(os.close, mount)
        flags = os.O_RDWR | os.O_TMPFILE | os.O_CLOEXEC
        return os.open(".", flags, 0o600, dir_fd=mount)


def _call(number: int, *arguments: int | bytes) -> int:
    typed = [a if isinstance(a, bytes) else ctypes.c_long(a) for a in arguments]
    result = _libc.syscall(ctypes.c_long(number), *typed)
    return check(int(result), "mount a file system of memory")
