"""Memory that O_DIRECT can read into and that the kernel can be given the address of."""

from __future__ import annotations

import ctypes
import mmap


class Buffer:
    """So many bytes, aligned."""

    def __init__(self, size: int):
        area = mmap.mmap(-1, size)
        self.view = memoryview(area)
        self.address = ctypes.addressof(ctypes.c_char.from_buffer(area))
