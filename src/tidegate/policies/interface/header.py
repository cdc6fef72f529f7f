"""The header of a compiled policy's block: where the arrays are that the policy may look at.

A block is an int64 array: these words, then what the policy itself remembers (``layout.py``). Its
address is the first argument of every compiled policy.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

REGIONS = 0  # regions there are in all
PAGES_PER_REGION = 1
FRAMES = 2
TURN = 3  # address: the driver's current turn (one int64)
TOUCHES = 4  # address: touches so far (one int64)
RESIDENT = 5  # address: pages near per region (int32)
SERVED = 6  # address: the turn in which each region was served last (int64, REGION_BYTES apart)
LATEST = 7  # address: per page, see page_flags.py (int64); 0 unless the policy sees everything
REGION_TOUCHES = 8  # address: per region (int64); likewise
FUTURE_FIRST = 9  # address: per region (int64); 0 unless it sees the future
FUTURE_WHEN = 10  # address: per touch (int32); likewise
OBSERVABLE = 11  # regions that may be observed at a time
OBSERVED = 12  # address: pages sampled now, per region (int16, REGION_BYTES apart)
PAGE_STATE = 13  # address: per page (uint8)
REGION_PAGES = 14  # address: pages that belong to an object, per region (int32, REGION_BYTES apart)
REQUESTS = 15  # address: rows of four words, see events.py
REQUEST_N = 16  # address: how many of them wait (one int64); -1: a policy failed
FAILURE = 17  # 1: the policy failed
PARTS = 18  # address: a row of PART_WORDS for each policy that this one is made of
PARTS_N = 19  # how many
ACCESSES = 20  # address: accesses of the granule that is notified of (one int64)
OWN = 24  # the policy's own words begin here

HEAP_ROOM = 4  # entries a heap has room for, times the regions: most are of earlier numbers
PART_WORDS = 3  # a part's function, its block, and a bit for each event it handles
REGION_BYTES = 64  # from what is kept of one region to what is kept of the next: see memory.py


def make_header(
    memory: Any, frames: int, observable: int, future: Any, parts: Any, words: Any
) -> NDArray[np.int64]:
    """Return a block: the header filled in, with the policy's own ``words`` behind it."""
    regions = len(memory.resident)
    block = np.append(np.zeros(OWN, np.int64), words)
    block[REGIONS], block[PAGES_PER_REGION] = regions, len(memory.page_state) // regions
    block[FRAMES], block[OBSERVABLE] = frames, observable
    block[TURN] = memory.books["turn"].ctypes.data
    block[TOUCHES] = memory.books["touches"].ctypes.data
    block[RESIDENT] = memory.resident.ctypes.data
    block[SERVED] = memory.served.ctypes.data
    block[OBSERVED] = memory.observed.ctypes.data
    block[PAGE_STATE] = memory.page_state.ctypes.data
    block[REGION_PAGES] = memory.region_pages.ctypes.data
    block[REQUESTS] = memory.requests.ctypes.data
    block[REQUEST_N] = memory.books["request_n"].ctypes.data
    block[ACCESSES] = memory.books["accesses"].ctypes.data
    block[PARTS], block[PARTS_N] = parts.ctypes.data, len(parts)
    if memory.latest.size:
        block[LATEST] = memory.latest.ctypes.data
        block[REGION_TOUCHES] = memory.region_touches.ctypes.data
    if future is not None:
        block[FUTURE_FIRST] = future.first.ctypes.data
        block[FUTURE_WHEN] = future.when.ctypes.data
    return block
