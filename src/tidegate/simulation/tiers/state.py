"""The state of three tiers: where every page is, counts and clocks, as arrays for compiled code."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tidegate.simulation.gpu.memory import as_array
from tidegate.simulation.recording import RecorderArrays
from tidegate.simulation.tiers.transfers import HYBRID_PAGES

# Flags of a near frame, in ``frames``. KEPT: the placement has said in advance that the page stays
# whenever it is a candidate.
REFERENCED, DIRTY, WATCHED, KEPT = 1, 2, 4, 8
LOOK = 64  # frames that CLOCK examines together

# State of a page, in ``where``: its frame, from 0; far, and NEW if it was never near; or IN_MIDDLE
# less its place in the queue.
NEW, FAR_AWAY, IN_MIDDLE = -1, -2, -3

# What a walk returns: it is finished, or why it stopped.
FINISHED, POLICY_FAILED, BAD_PLACE, BAD_VICTIM, BAD_SPILL = range(5)

# What the GPU waited for, in ``waits``.
WAIT_STORAGE, WAIT_HOST, WAIT_DRIVER = range(3)

_COUNTS = """
    touches hits middle_hits far_reads lookups wasted_lookups evictions to_middle to_far stays
    dropped near_written middle_spilled middle_written near_flushed middle_flushed read_ahead
    recalled
    near_used middle_used launches notifications
"""
COUNTS = tuple(_COUNTS.split())
# In ns: the time now, when each server is free, how long each was busy, and parts of time.
_CLOCK = """
    now read_free write_free in_free out_free driver_free batch_begin
    read_busy write_busy in_busy out_busy driver_busy compute launching
"""
# CLOCK's hand, the oldest miss under way, the ends of the middle's queue, and the driver's batches
# so far and faults in the latest.
_CURSORS = "hand oldest_miss head tail batches batched"
# Where the next mark goes, marks, pairs in the batch, pairs still wanted, and one page in how many
# is sampled.
_SAMPLING = "next_place marks filled wanted every"

PLACES = 4  # for marks, per page: with more, marks are moved together less often
FEWEST_PLACES = 1 << 12


class TierConstants(NamedTuple):
    """Constants of one run."""

    near: int  # capacity in pages
    middle: int
    makes_room: int  # which page leaves a full middle: NOBODY, OLDEST or ASKED
    most_stays: int  # candidates that may stay before one has to go
    clock: bool  # CLOCK chooses victims; otherwise the eviction policy does, or
    chooses: bool  # the placement policy
    wants_return: bool
    wants_touch: bool
    wants_observe: bool
    records: bool  # every touch is recorded, for the eviction policy
    inclusive: bool  # the middle keeps copies of near pages
    read_ahead: int  # pages, aligned, that an SSD read brings to an inclusive middle
    block_pages: int  # pages of the driver's 2 MB blocks


class Tiers(NamedTuple):
    """Three tiers."""

    where: Any  # per page
    # per page, the touch at which it left near memory (0: never), then what a compiled tiering
    # policy keeps of it
    history: Any
    held: Any  # per near frame, its page; CLOCK goes round them
    frames: Any  # per near frame, flags; padded, because 64 are examined together
    # pages of the middle, in order of arrival: twice the page, plus 1 if dirty; -1: it has left
    queue: Any
    # per page, the place of a near page's copy in an inclusive middle, -1 for none; else empty
    copies: Any
    done: Any  # when each miss under way is served
    waits_for: Any  # what each of them waits for
    transfers: Any  # in and out: when the latest pages between near and middle arrive
    next_transfer: Any  # in and out, the oldest of those
    blocks: Any  # per 2 MB block, the latest batch of the driver that had a fault in it
    cursors: Any
    counts: Any
    clock: Any
    waits: Any
    last: Any  # per page, its latest touch, from 1; 0: none. Empty unless recorded, as the next two
    touched: Any  # how often
    reference: Any  # by which access site
    latest: Any  # marks at pages' latest touches, a bit each, while pairs are sampled
    tree: Any  # of the marks in each word
    place: Any  # of a page's mark, from 1; 0: none
    pairs: Any  # the batch of (virtual time, reuse distance) being filled, pair after pair
    sampling: Any
    uses: Any  # per page, when it is touched next; empty unless the future is seen
    constants: Any  # TierConstants
    costs: Any  # service.Costs
    # of a recording, empty without one:
    recorder: Any
    recorded: Any
    recorded_touches: Any
    noted: Any
    marks: Any
    story: Any


def make_tiers(
    pages: int,
    window: int,
    sampling: tuple[int, int, int],
    future: bool,
    constants: TierConstants,
    costs: Any,
    recorder: RecorderArrays,
) -> Tiers:
    """Return tiers with all pages far. ``window``: misses under way at a time."""
    near, middle, records = constants.near, constants.middle, constants.records
    batch, wanted, every = sampling
    words = -(-max(PLACES * pages, FEWEST_PLACES) // 64) if wanted else 0
    timed, recorded = pages if records or wanted else 0, pages if records else 0
    room = 4 * min(middle, pages) + 1  # three quarters of it may be places that were left

    def zeros(size: int, kind: Any) -> NDArray[Any]:
        return np.zeros(size, kind)

    tiers = Tiers(
        where=np.full(pages, NEW, np.int32),
        history=np.zeros((pages, 1), np.int64),
        held=np.full(near, -1, np.int32),
        frames=zeros(near + LOOK, np.uint8),
        queue=zeros(room, np.int32),
        copies=np.full(pages if constants.inclusive else 0, -1, np.int32),
        done=zeros(window, np.float64),
        waits_for=zeros(window, np.int64),
        transfers=np.zeros((2, HYBRID_PAGES)),
        next_transfer=zeros(2, np.int64),
        blocks=zeros(pages // constants.block_pages + 1, np.int64),
        cursors=_record(_CURSORS, "i8"),
        counts=_record(_COUNTS, "i8"),
        clock=_record(_CLOCK, "f8"),
        waits=zeros(3, np.float64),
        last=zeros(timed, np.int64),
        touched=zeros(recorded, np.int64),
        reference=np.full(recorded, -1, np.int16),
        latest=zeros(words, np.uint64),
        tree=zeros(words + 1, np.int32),
        place=zeros(pages if wanted else 0, np.int32),
        pairs=zeros(2 * max(batch, 1), np.int64),
        sampling=_record(_SAMPLING, "i8"),
        uses=zeros(pages if future else 0, np.int64),
        constants=as_array(constants),
        costs=as_array(costs),
        **recorder._asdict(),
    )
    tiers.sampling["wanted"], tiers.sampling["every"] = wanted, every
    return tiers


def _record(names: str, kind: str) -> NDArray[Any]:
    """Return one record of these fields, all 0."""
    return np.zeros(1, [(name, kind) for name in names.split()])
