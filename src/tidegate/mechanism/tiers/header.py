"""What a placement's compiled twin finds in front of its own data; see mechanism/header.py for the idea."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tidegate.mechanism.tiers import state

PAGES = 0
NEAR_PAGES = 1  # capacities
MIDDLE_PAGES = 2
NOW = 3  # address: touches so far (one int64)
MIDDLE_USED = 4  # address: pages in the middle (one int64)
HISTORY = 5  # address: per page, the touch at which it left near memory, and a word of the placement's own (int64)
PAIRS = 6  # address: the batch of pairs (int64, two a pair)
PAIR_COUNT = 7  # address: how many there are (one int64)
USES = 8  # address: per page, its next touch (int64); 0 unless the future is seen
OWN = 16  # the policy's own words begin here


def make_header(m: state.Tiers, near: int, middle: int, own: NDArray[np.int64]) -> NDArray[np.int64]:
    """The header filled in, with the policy's own words behind it."""
    header: NDArray[np.int64] = np.zeros(OWN, np.int64)
    header[:3] = len(m.where), near, middle
    counted, sampled = m.count.ctypes.data, m.sampling.ctypes.data
    header[NOW : PAIR_COUNT + 1] = [
        counted + 8 * state.TOUCHES, counted + 8 * state.MIDDLE_USED, _address(m.history), _address(m.pairs),
        sampled + 8 * state.FILLED,
    ]  # fmt: skip
    header[USES] = _address(m.uses)
    return np.concatenate([header, own])


def _address(array: Any) -> int:
    return int(array.ctypes.data) if array.size else 0
