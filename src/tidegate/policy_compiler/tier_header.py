"""The header of a tiering policy's block: capacities, and where the tiers keep their arrays.

The framework's own words keep their places (header.py): the number of pages, whether the policy
failed, and the requests that wait, of which tiers have none.
"""

from __future__ import annotations

from typing import Any

from tidegate.policies.interface.header import OWN, REGIONS, REQUEST_N

NEAR_PAGES = 1  # capacities
MIDDLE_PAGES = 2
NOW = 3  # address: touches so far (one int64)
MIDDLE_USED = 4  # address: pages in the middle (one int64)
HISTORY = 5  # address: per page, the touch at which it left near memory (int64), ROW_BYTES apart
ROW_BYTES = 6
PAIRS = 7  # address: the batch of pairs (int64, two a pair)
PAIR_COUNT = 8  # address: how many there are (one int64)
USES = 9  # address: per page, its next touch (int64); 0 unless the future is seen
_NO_REQUESTS = 18  # a word for the number of requests

assert _NO_REQUESTS < OWN


def fill_header(block: Any, tiers: Any, near: int, middle: int) -> None:
    """Fill the header in; ``tiers.history`` is what the block holds of each page."""
    pages, row = tiers.history.shape
    block[REGIONS], block[NEAR_PAGES], block[MIDDLE_PAGES] = pages, near, middle
    block[NOW] = tiers.counts["touches"].ctypes.data
    block[MIDDLE_USED] = tiers.counts["middle_used"].ctypes.data
    block[HISTORY], block[ROW_BYTES] = tiers.history.ctypes.data, 8 * row
    block[PAIRS] = tiers.pairs.ctypes.data
    block[PAIR_COUNT] = tiers.sampling["filled"].ctypes.data
    block[USES] = tiers.uses.ctypes.data if tiers.uses.size else 0
    block[REQUEST_N] = block[_NO_REQUESTS:].ctypes.data
