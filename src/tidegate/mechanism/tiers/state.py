"""Where every page is, the books and the clock, in arrays that the compiled walk works on."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import types
from numba.experimental import structref
from numba.extending import intrinsic
from numpy.typing import NDArray

from tidegate.jit import jit

# Of a page, in ``flags``.
NEAR, IN_MIDDLE, REFERENCED, DIRTY, WATCHED = 1, 2, 4, 8, 16

# In ``count``.
COUNTS = (
    "touches", "hits", "middle_hits", "far_reads", "lookups", "wasted_lookups", "evictions", "to_middle", "to_far", "stays",
    "dropped", "near_written", "middle_spilled", "middle_written", "near_used", "middle_used",
    "launches", "notifications",
)  # fmt: skip
(
    TOUCHES, HITS, MIDDLE_HITS, FAR_READS, LOOKUPS, WASTED, EVICTIONS, TO_MIDDLE, TO_FAR, STAYS,
    DROPPED, NEAR_WRITTEN, SPILLED, MIDDLE_WRITTEN, NEAR_USED, MIDDLE_USED,
    LAUNCHES, NOTIFICATIONS,
) = range(len(COUNTS))  # fmt: skip

# In ``clock``, all in ns: now, when each server is free, how long each was busy, and what the waiting was for.
(
    NOW, READ_FREE, WRITE_FREE, IN_FREE, OUT_FREE, DRIVER_FREE, READ_BUSY, WRITE_BUSY, IN_BUSY, OUT_BUSY, DRIVER_BUSY,
    COMPUTE, LAUNCHING, WAIT_STORAGE, WAIT_HOST, WAIT_DRIVER,
) = range(16)  # fmt: skip


class Tiers(NamedTuple):
    """Three tiers. ``hand`` holds small positions: CLOCK's hand, the FIFO's ends, the oldest outstanding miss."""

    flags: Any  # per page
    last: Any  # the number of a page's latest touch, from 1; 0: none
    left: Any  # the touch at which a page left near memory; 0: it never did
    ring: Any  # near frames, as CLOCK goes round them
    after: Any  # the middle's FIFO as a list: the page behind, plus one, and
    before: Any  # the page in front, plus one; entry ``pages`` holds the ends
    done: Any  # when each outstanding miss is served
    waits_for: Any  # and on what it waits
    hand: Any
    count: Any
    clock: Any
    tree: Any  # of marks at latest touches, while pairs are sampled
    place: Any  # of a page's mark in the tree, from 1; 0: none
    pairs: Any  # the batch of (virtual time, reuse distance) being filled
    sampling: Any  # [marks' next place, marks, pairs in the batch, pairs still wanted, one page in so many is sampled]
    uses: Any  # per page, when it is touched next; empty unless the future is seen


HAND, OLDEST_MISS = 0, 1


def make_tiers(pages: int, near: int, window: int, batch: int, wanted: int, every: int, future: bool) -> Tiers:
    """Everything far, nothing counted."""
    marks = max(2 * pages, 1 << 12) if wanted else 0

    def zeros(size: int | tuple[int, int], kind: Any) -> NDArray[Any]:
        return np.zeros(size, kind)

    return Tiers(
        zeros(pages, np.uint8), zeros(pages, np.int64), zeros(pages, np.int64), np.full(near, -1, np.int32),
        zeros(pages + 1, np.int32), zeros(pages + 1, np.int32), zeros(window, np.float64), zeros(window, np.int64),
        zeros(2, np.int64), zeros(len(COUNTS), np.int64), zeros(16, np.float64), zeros(marks + 1 if marks else 0, np.int32),
        zeros(pages if marks else 0, np.int32), zeros((max(batch, 1), 2), np.int64),
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
        _uncounted(m.flags), _uncounted(m.last), _uncounted(m.left), _uncounted(m.ring), _uncounted(m.after),
        _uncounted(m.before), _uncounted(m.done), _uncounted(m.waits_for), _uncounted(m.hand), _uncounted(m.count),
        _uncounted(m.clock), _uncounted(m.tree), _uncounted(m.place), _uncounted(m.pairs), _uncounted(m.sampling),
        _uncounted(m.uses),
    )  # fmt: skip
