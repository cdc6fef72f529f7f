"""Where every page is, the books and the clock, in arrays that the compiled walk works on."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

# Of a near frame, in ``frames``. KEPT: the placement said in advance that the page stays whenever
# it is a candidate.
REFERENCED, DIRTY, WATCHED, KEPT = 1, 2, 4, 8
LOOK = 64  # frames that CLOCK looks at together

# Of a page, in ``where``: its frame, from 0; far, and NEW if it never was near; IN_MIDDLE less its
# place in the queue.
NEW, FAR_AWAY, IN_MIDDLE = -1, -2, -3

# In ``count``.
COUNTS = (
    "touches",
    "hits",
    "middle_hits",
    "far_reads",
    "lookups",
    "wasted_lookups",
    "evictions",
    "to_middle",
    "to_far",
    "stays",
    "dropped",
    "near_written",
    "middle_spilled",
    "middle_written",
    "near_flushed",
    "middle_flushed",
    "near_used",
    "middle_used",
    "launches",
    "notifications",
)
(
    TOUCHES,
    HITS,
    MIDDLE_HITS,
    FAR_READS,
    LOOKUPS,
    WASTED,
    EVICTIONS,
    TO_MIDDLE,
    TO_FAR,
    STAYS,
    DROPPED,
    NEAR_WRITTEN,
    SPILLED,
    MIDDLE_WRITTEN,
    NEAR_FLUSHED,
    MIDDLE_FLUSHED,
    NEAR_USED,
    MIDDLE_USED,
    LAUNCHES,
    NOTIFICATIONS,
) = range(len(COUNTS))

# In ``clock``, all in ns: now, when each server is free, how long each was busy, and what the
# waiting was for.
(
    NOW,
    READ_FREE,
    WRITE_FREE,
    IN_FREE,
    OUT_FREE,
    DRIVER_FREE,
    READ_BUSY,
    WRITE_BUSY,
    IN_BUSY,
    OUT_BUSY,
    DRIVER_BUSY,
    COMPUTE,
    LAUNCHING,
    WAIT_STORAGE,
    WAIT_HOST,
    WAIT_DRIVER,
) = range(16)

# In ``hand``: CLOCK's hand, the oldest miss under way, and the ends of the middle's queue.
HAND, OLDEST_MISS, HEAD, TAIL = range(4)

# In ``sampling``: where the next mark goes, marks, pairs in the batch, pairs still wanted, one page
# in so many is sampled.
NEXT, MARKS, FILLED, WANTED, EVERY = range(5)

PLACES = 4  # for marks, a page: the more, the less often marks are moved together
FEWEST_PLACES = 1 << 12


class Tiers(NamedTuple):
    """Three tiers."""

    where: Any  # per page
    # two words a page: the touch at which it left near memory (0: never), and one of the
    # placement's own
    history: Any
    held: Any  # per near frame, its page; CLOCK goes round them
    frames: Any  # per near frame, flags; and room behind, for they are looked at 64 at a time
    # pages of the middle, as they came: twice the page, and 1 if it is dirty; -1: it has left
    queue: Any
    done: Any  # when each miss under way is served
    waits_for: Any  # and on what it waits
    hand: Any
    count: Any
    clock: Any
    # per page, its latest touch, from 1; 0: none. Empty unless somebody looks at it, like the next
    # two:
    last: Any
    touched: Any  # how often
    reference: Any  # by which reference
    marks: Any  # at pages' latest touches, a bit each, while pairs are sampled
    tree: Any  # of the marks in each word
    place: Any  # of a page's mark, from 1; 0: none
    # the batch of (virtual time, reuse distance) being filled, one pair behind the other
    pairs: Any
    sampling: Any
    uses: Any  # per page, when it is touched next; empty unless the future is seen
    rules: Any  # see engine.Rules
    costs: Any  # see service.Costs


def make_tiers(
    pages: int, window: int, sampling: tuple[int, int, int], future: bool, rules: Any, costs: Any
) -> Tiers:
    """Everything far, nothing counted. ``window``: misses under way at a time."""
    near, middle, records = rules.near, rules.middle, rules.records
    batch, wanted, every = sampling
    words = -(-max(PLACES * pages, FEWEST_PLACES) // 64) if wanted else 0
    watched, recorded = pages if records or wanted else 0, pages if records else 0
    room = 4 * min(middle, pages) + 1  # three quarters of it may be places that were left

    def zeros(size: int, kind: Any) -> NDArray[Any]:
        return np.zeros(size, kind)

    return Tiers(
        np.full(pages, NEW, np.int32),
        zeros(2 * pages, np.int64),
        np.full(near, -1, np.int32),
        zeros(near + LOOK, np.uint8),
        zeros(room, np.int32),
        zeros(window, np.float64),
        zeros(window, np.int64),
        zeros(4, np.int64),
        zeros(len(COUNTS), np.int64),
        zeros(16, np.float64),
        zeros(watched, np.int64),
        zeros(recorded, np.int64),
        np.full(recorded, -1, np.int16),
        zeros(words, np.uint64),
        zeros(words + 1, np.int32),
        zeros(pages if wanted else 0, np.int32),
        zeros(2 * max(batch, 1), np.int64),
        np.array([0, 0, 0, wanted, every], np.int64),
        zeros(pages if future else 0, np.int64),
        np.array(rules, np.int64),
        np.array(costs, np.float64),
    )
