"""What is kept of a page: flags of where it is (``page_state``) and of what far memory has of it
(``page_data``), and its last touch.

The number of a touch and its access site are one word, so that a touch writes once. Words compare
as their touches do. Before its first touch a page has NEVER: both parts are -1.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tidegate.compiled.jit import jit_bare

# page_state, one byte per page; the hit path reads and writes it
NEAR = 1  # in near memory: a touch is a hit
TOUCHED = 2  # touched since it came near (CPPE's touch bit)
DIRTY = 4  # written since it came near
COMING = 8  # migrating in the driver's current turn, or being copied by the inward stream
FAULTED = 16  # in the batch being assembled
WANTED = 32  # requested by a prefetch
REMOTE = 64  # prefers far memory: a touch crosses the link instead of faulting
ARRIVING = 128  # asked of the inward stream: a touch waits for it instead of faulting

# page_data, one byte per page
CPU_MAPPED = 1  # still mapped on the CPU, so its first migration has to unmap it
UNWRITTEN = 2  # far memory holds nothing of it: it is born near
READ_MOSTLY = 4  # far memory keeps a copy, so a clean page is dropped
COUNTED = 16  # some of the accesses that its granule's counter counted
ADVISED_FAR = 8  # advised while it is sampled: REMOTE when its sample ends

BITS = 16  # of the access site
NEVER = -1


@jit_bare
def latest(touch: int, reference: int) -> Any:
    """Return the word of a touch."""
    return touch << BITS | np.int64(np.uint16(reference))


@jit_bare
def touch_of(word: Any) -> Any:
    """Return the number of the touch."""
    return word >> BITS


@jit_bare
def reference_of(word: Any) -> Any:
    """Return the access site of the touch."""
    return np.int64(np.int16(word & 0xFFFF))
