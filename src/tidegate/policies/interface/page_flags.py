"""Flags of a page in the page table, one byte per page."""

from __future__ import annotations

NEAR = 1  # in near memory: a touch is a hit
TOUCHED = 2  # touched since it came near (CPPE's touch bit)
DIRTY = 4  # written since it came near
COMING = 8  # migrating in the driver's current turn
FAULTED = 16  # in the batch being assembled
WANTED = 32  # requested by a prefetch
REMOTE = 64  # prefers far memory: a touch crosses the link instead of faulting
CPU_MAPPED = 128  # still mapped on the CPU, so its first migration has to unmap it
