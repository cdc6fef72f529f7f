"""VMIN's misses: the fewest of any policy whose memory is C frames on average (Prieve & Fabry, CACM
19(5), 1976).

After each touch a block stays until its next one if that is at most τ away; otherwise it leaves at
once. A reuse at interval r costs r frame-touches, and every hit has the same value. So taking the
shortest intervals first until N · C is spent gives the most hits. Of the intervals equal to τ, as
many are taken as there is room for.

At the size of a fixed memory it has no more misses than Belady, whose hits occupy at most N · C,
too.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tidegate.analysis.belady import next_uses
from tidegate.analysis.sequence import checked


def vmin_misses(ids: ArrayLike, sizes: ArrayLike) -> NDArray[np.int64]:
    """Return the misses at each of these average sizes, first touches included.

    >>> vmin_misses([0, 1, 2, 0, 1, 2], [0, 1, 2]).tolist()
    [6, 4, 3]
    """
    array, bound = checked(ids, capacity=1)
    n = len(array)
    uses = next_uses(array.copy(), bound)
    intervals = (uses - np.arange(n, dtype=np.int64))[uses < n]
    intervals.sort()
    budget = np.floor(np.asarray(sizes, np.float64) * n)
    return n - np.searchsorted(np.cumsum(intervals), budget, side="right")
