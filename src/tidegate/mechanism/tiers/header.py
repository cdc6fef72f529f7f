"""What a placement's compiled twin finds in front of its own data; see mechanism/header.py for the idea."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tidegate.mechanism.tiers.state import Tiers

PAGES = 0
NEAR_PAGES = 1  # capacities
MIDDLE_PAGES = 2
COUNT = 3  # address: the books (int64), in the order of state.COUNTS
LEFT = 4  # address: per page, the touch at which it left near memory (int64)
PAIRS = 5  # address: the batch of pairs (int64, two a pair)
SAMPLING = 6  # address: see Tiers.sampling
USES = 7  # address: per page, its next touch (int64); 0 unless the future is seen
OWN = 16  # the policy's own words begin here


def make_header(m: Tiers, near: int, middle: int, own: NDArray[np.int64]) -> NDArray[np.int64]:
    """The header filled in, with the policy's own words behind it."""
    header: NDArray[np.int64] = np.zeros(OWN, np.int64)
    header[:3] = len(m.flags), near, middle
    arrays: tuple[Any, ...] = (m.count, m.left, m.pairs, m.sampling, m.uses)
    header[COUNT : USES + 1] = [a.ctypes.data if a.size else 0 for a in arrays]
    return np.concatenate([header, own])
