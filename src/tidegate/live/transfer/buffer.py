"""Memory that O_DIRECT can read into and that the kernel can be given the address of."""

from __future__ import annotations

import contextlib
import ctypes
import mmap

_HUGE = 2 * 1024 * 1024


class Buffer:
    """So many bytes, aligned.

    Large ones are of huge pages where the kernel has some: a disk then gets one long piece of
    memory to fill for each region, in place of 512 short ones, and reads up to twice as fast.
    """

    def __init__(self, size: int):
        room = size if size < _HUGE // 2 else -(-size // _HUGE) * _HUGE + _HUGE
        area = mmap.mmap(-1, room, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        start = ctypes.addressof(ctypes.c_char.from_buffer(area))
        skipped = -start % _HUGE if room > size else 0
        if room > size:
            with contextlib.suppress(OSError):  # a kernel without them
                area.madvise(mmap.MADV_HUGEPAGE, skipped, room - _HUGE)
        self.view = memoryview(area)[skipped : skipped + size]
        self.address = start + skipped
