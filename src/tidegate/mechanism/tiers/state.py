"""Where every page is, the books and the clock, in arrays that the compiled walk works on."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import types
from numba.experimental import structref
from numba.extending import intrinsic
from numpy.typing import NDArray

from tidegate.jit import jit

# Of a near frame, in ``frames``. KEPT: the placement said in advance that the page stays whenever it is a candidate.
REFERENCED, DIRTY, WATCHED, KEPT = 1, 2, 4, 8

# Of a page, in ``where``: its frame, from 0; FAR_AWAY; or its place in the middle's queue, as IN_MIDDLE - place.
FAR_AWAY, IN_MIDDLE = -1, -2

# In ``count``.
COUNTS = (
    "touches", "hits", "middle_hits", "far_reads", "lookups", "wasted_lookups", "evictions", "to_middle", "to_far", "stays",
    "dropped", "near_written", "middle_spilled", "middle_written", "near_flushed", "middle_flushed", "near_used",
    "middle_used", "launches", "notifications",
)  # fmt: skip
(
    TOUCHES, HITS, MIDDLE_HITS, FAR_READS, LOOKUPS, WASTED, EVICTIONS, TO_MIDDLE, TO_FAR, STAYS,
    DROPPED, NEAR_WRITTEN, SPILLED, MIDDLE_WRITTEN, NEAR_FLUSHED, MIDDLE_FLUSHED, NEAR_USED,
    MIDDLE_USED, LAUNCHES, NOTIFICATIONS,
) = range(len(COUNTS))  # fmt: skip

# In ``clock``, all in ns: now, when each server is free, how long each was busy, and what the waiting was for.
(
    NOW, READ_FREE, WRITE_FREE, IN_FREE, OUT_FREE, DRIVER_FREE, READ_BUSY, WRITE_BUSY, IN_BUSY, OUT_BUSY, DRIVER_BUSY,
    COMPUTE, LAUNCHING, WAIT_STORAGE, WAIT_HOST, WAIT_DRIVER,
) = range(16)  # fmt: skip

# In ``hand``: CLOCK's hand, the oldest miss under way, and the ends of the middle's queue.
HAND, OLDEST_MISS, HEAD, TAIL = range(4)

# In ``sampling``: where the next mark goes, marks, pairs in the batch, pairs still wanted, one page in so many is sampled.
NEXT, MARKS, FILLED, WANTED, EVERY = range(5)


class Tiers(NamedTuple):
    """Three tiers."""

    where: Any  # per page
    left: Any  # the touch at which a page left near memory; 0: it never did
    held: Any  # per near frame, its page; CLOCK goes round them
    frames: Any  # per near frame, flags
    queue: Any  # pages of the middle, as they came; -1: it has left
    queue_dirty: Any
    done: Any  # when each miss under way is served
    waits_for: Any  # and on what it waits
    hand: Any
    count: Any
    clock: Any
    last: Any  # per page, its latest touch, from 1; 0: none. Empty unless somebody looks at it, like the next two:
    touched: Any  # how often
    reference: Any  # by which reference
    tree: Any  # of marks at latest touches, while pairs are sampled
    place: Any  # of a page's mark in the tree, from 1; 0: none
    pairs: Any  # the batch of (virtual time, reuse distance) being filled
    sampling: Any
    uses: Any  # per page, when it is touched next; empty unless the future is seen


def make_tiers(
    pages: int, near: int, middle: int, window: int, sampling: tuple[int, int, int], records: bool, future: bool
) -> Tiers:
    """Everything far, nothing counted. ``records``: keep every page's latest touch, for an eviction policy."""
    batch, wanted, every = sampling
    marks = max(2 * pages, 1 << 12) + 1 if wanted else 0
    watched, recorded = pages if records or wanted else 0, pages if records else 0
    room = 2 * min(middle, pages) + 1  # half of it may be places that were left

    def zeros(size: int | tuple[int, int], kind: Any) -> NDArray[Any]:
        return np.zeros(size, kind)

    return Tiers(
        np.full(pages, FAR_AWAY, np.int32), zeros(pages, np.int64), np.full(near, -1, np.int32), zeros(near, np.uint8),
        zeros(room, np.int32), zeros(room, np.uint8), zeros(window, np.float64), zeros(window, np.int64),
        zeros(4, np.int64), zeros(len(COUNTS), np.int64), zeros(16, np.float64),
        zeros(watched, np.int64), zeros(recorded, np.int64), np.full(recorded, -1, np.int16),
        zeros(marks, np.int32), zeros(pages if wanted else 0, np.int32), zeros((max(batch, 1), 2), np.int64),
        np.array([0, 0, 0, wanted, every], np.int64), zeros(pages if future else 0, np.int64),
    )  # fmt: skip


# Passed on by value, so many arrays would cost more than the work they are passed for: compiled code gets one reference.


@structref.register
class TiersType(types.StructRef):
    def preprocess_fields(self, fields: Any) -> Any:
        return tuple((name, types.unliteral(kind)) for name, kind in fields)


class TiersReference(structref.StructRefProxy):
    """Tiers, as compiled code sees them."""


structref.define_proxy(TiersReference, TiersType, list(Tiers._fields))


@intrinsic  # type: ignore[arg-type]
def _uncounted(context: Any, array: Any = None) -> Any:
    """The same array without an owner: looking at it then counts no references. Whoever refers to it keeps it alive."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        found = context.make_array(array)(context, builder, value=args[0])
        for field in ("meminfo", "parent"):
            setattr(found, field, getattr(found, field).type(None))
        return found._getvalue()

    return array(array), codegen


@jit
def refer(m: Any) -> Any:
    """One reference to all of these arrays."""
    return TiersReference(
        _uncounted(m.where), _uncounted(m.left), _uncounted(m.held), _uncounted(m.frames), _uncounted(m.queue),
        _uncounted(m.queue_dirty), _uncounted(m.done), _uncounted(m.waits_for), _uncounted(m.hand), _uncounted(m.count),
        _uncounted(m.clock), _uncounted(m.last), _uncounted(m.touched), _uncounted(m.reference), _uncounted(m.tree),
        _uncounted(m.place), _uncounted(m.pairs), _uncounted(m.sampling), _uncounted(m.uses),
    )  # fmt: skip
