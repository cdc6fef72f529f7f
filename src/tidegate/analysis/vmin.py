"""VMIN's misses: the fewest any policy can have whose memory is C frames on average (Prieve &
Fabry, CACM 19(5), 1976).

After each touch a block stays until its next one if that is at most τ away, and otherwise leaves at
once. A reuse at interval r costs r frame-touches, and every hit is worth the same, so taking the
shortest intervals first until N · C is spent gives the most hits there can be. Of the intervals
equal to τ, as many are taken as there is room for.

At the size of a fixed memory it is below Belady: what Belady's hits occupy is within N · C, too.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tidegate.analysis.belady import next_uses
from tidegate.analysis.sequence import checked


def vmin_misses(ids: ArrayLike, sizes: ArrayLike) -> NDArray[np.int64]:
    """Misses at each of these average sizes, first touches among them.

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
