"""What a compiled twin finds in front of its own data: where the arrays it may look at are.

``own`` is the address of an int64 array: these words, then as many of the policy's own as its
``words`` asked for.
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
LATEST = 7  # address: per page, see latest.py (int64); 0 unless the policy sees everything
REGION_TOUCHES = 8  # address: per region (int64); likewise
FUTURE_FIRST = 9  # address: per region (int64); 0 unless it sees the future
FUTURE_WHEN = 10  # address: per touch (int32); likewise
FUTURE_SIZE = 11
OBSERVED = 12  # address: pages sampled now, per region (int16, REGION_BYTES apart)
PAGE_STATE = 13  # address: per page (uint8)
REGION_PAGES = 14  # address: pages that belong to an object, per region (int32, REGION_BYTES apart)
REQUESTS = 15  # address: rows of four words, see events.py
REQUEST_N = 16  # address: how many of them wait (one int64)
OVERFULL = 17  # 1: the twin asked for more than there are rows
# address: for each policy this one is made of, its function, its ``own`` and a bit for each event
# it wants
PARTS = 18
PARTS_N = 19  # how many
OWN = 24  # the policy's own words begin here

REGION_BYTES = 64  # from what is kept of one region to what is kept of the next: see memory.py


def make_header(
    memory: Any,
    regions: int,
    pages_per_region: int,
    frames: int,
    future: Any,
    parts: Any,
    words: Any,
) -> NDArray[np.int64]:
    """The header filled in, with the policy's own ``words`` behind it."""
    own = np.append(np.zeros(OWN, np.int64), words)
    own[REGIONS], own[PAGES_PER_REGION], own[FRAMES] = regions, pages_per_region, frames
    own[TURN] = memory.books["turn"].ctypes.data
    own[TOUCHES] = memory.books["touches"].ctypes.data
    own[RESIDENT] = memory.resident.ctypes.data
    own[SERVED] = memory.served.ctypes.data
    own[OBSERVED] = memory.observed.ctypes.data
    own[PAGE_STATE] = memory.page_state.ctypes.data
    own[REGION_PAGES] = memory.region_pages.ctypes.data
    own[REQUESTS] = memory.requests.ctypes.data
    own[REQUEST_N] = memory.books["request_n"].ctypes.data
    own[PARTS], own[PARTS_N] = parts.ctypes.data, len(parts)
    if memory.latest.size:
        own[LATEST] = memory.latest.ctypes.data
        own[REGION_TOUCHES] = memory.region_touches.ctypes.data
    if future is not None:
        own[FUTURE_FIRST], own[FUTURE_WHEN] = future.first.ctypes.data, future.when.ctypes.data
        own[FUTURE_SIZE] = future.when.size
    return own
