"""Memory: everything the compiled mechanism reads and writes, as NumPy arrays that policies can
look at too.

Rules   constants of this run (machine, capacity, options), fixed
Books   one record of counters and clocks
Memory  the arrays: page table, regions, slots, the fault queue, requests, the timeline
Blocks  the touches being played: what is left of unfinished blocks, and the newest segment
"""

from __future__ import annotations

from typing import Any, NamedTuple, get_type_hints

import numpy as np
from numpy.typing import NDArray

from tidegate.machine.machine import Machine
from tidegate.policies.interface.compiling.header import REGION_BYTES
from tidegate.policies.interface.events import EVENT_BITS, NO_TREE, REQUEST_ROWS
from tidegate.policies.interface.last_touch import NEVER
from tidegate.policies.interface.page_flags import CPU_MAPPED
from tidegate.trace.trace import Segment, Trace

# Slots are moved forward in rounds of this length; within a round their order is that of their
# numbers. It is the smallest batch the driver ever serves, so a finer order could not change what
# any batch holds by more than that.
QUANTUM = 15_000.0  # ns

PREFETCH_TURN = 16  # regions prefetched before the driver looks at faults again
TIMELINE_ROWS = 1024
SEED = 0x9E3779B97F4A7C15  # of the draws of sampled pages; the same in every run

IDLE, RUNNING, STALLED = 0, 1, 2  # what a slot is doing

BOOKS = np.dtype(
    [
        # counters
        ("touches", "i8"),
        ("stalls", "i8"),
        ("remote_touches", "i8"),
        ("remote_bytes", "i8"),
        ("faults", "i8"),
        ("raw_faults", "i8"),
        ("batches", "i8"),
        ("evictions", "i8"),
        ("decisions", "i8"),
        ("pages_in", "i8"),
        ("pages_prefetched", "i8"),
        ("pages_evicted", "i8"),
        ("pages_written_back", "i8"),
        ("pages_unused", "i8"),
        ("runs_in", "i8"),
        ("observations", "i8"),
        ("notifications", "i8"),
        ("pages_sampled", "i8"),
        ("pages_home", "i8"),
        # where things are
        ("frames_used", "i8"),
        ("frames_peak", "i8"),
        ("queue_n", "i8"),
        ("request_n", "i8"),
        ("coming_n", "i8"),
        ("prefetch_head", "i8"),
        ("prefetch_n", "i8"),
        ("threshold", "i8"),
        ("turn", "i8"),
        ("driver_busy", "i8"),
        ("fault_turn", "i8"),
        ("next_block", "i8"),
        ("slots", "i8"),
        ("idle", "i8"),
        ("culprit", "i8"),
        ("culprit_event", "i8"),
        ("timeline_n", "i8"),
        ("timeline_stride", "i8"),
        ("timeline_skip", "i8"),
        # observation
        ("observed_n", "i8"),
        ("sampled_n", "i8"),
        ("notices_n", "i8"),
        ("samples", "i8"),
        ("random", "u8"),
        ("epoch", "i8"),
        ("epoch_evictions", "i8"),
        ("returned", "i8"),
        ("returned_before", "i8"),
        ("count_threshold", "i8"),
        ("counting_n", "i8"),
        # clocks and parts of time, in ns
        ("front", "f8"),
        ("driver_free", "f8"),
        ("prefetch_from", "f8"),
        ("notice_from", "f8"),
        ("running", "f8"),
        ("launching", "f8"),
        ("near_time", "f8"),
        ("remote_time", "f8"),
        ("fault_handling", "f8"),
        ("transfer_in", "f8"),
        ("transfer_out", "f8"),
        ("policy_overhead", "f8"),
        ("turn_handling", "f8"),
        ("turn_in", "f8"),
        ("turn_out", "f8"),
        ("turn_policy", "f8"),
        ("driver_time", "f8"),
        ("link_in_time", "f8"),
        ("link_out_time", "f8"),
    ]
)

# All that is kept of a region lies in one line of the processor's cache, 64 bytes: who serves a
# region looks at all of it.
REGION = np.dtype(
    {
        "names": [
            "pinned",
            "faults",
            "evictions",
            "pages_in",
            "counted",
            "pages",
            "left_in",
            "observed",
            "queued",
        ],
        "formats": ["i8", "i8", "i8", "i8", "i8", "i4", "i4", "i2", "u1"],
        "itemsize": REGION_BYTES,
    }
)

TIMELINE_COLUMNS = (
    "time",
    "touches",
    "faults",
    "batches",
    "evictions",
    "pages_in",
    "pages_written_back",
    "remote_bytes",
    "frames_used",
    "running",
)


class Rules(NamedTuple):
    """Constants of one run."""

    frames: int  # capacity
    by_page: bool  # a frame holds a page; otherwise a region
    room: int  # capacity in whole regions
    page: int
    pages_per_region: int
    region_shift: int  # pages_per_region is 1 << region_shift
    batch_faults: int
    batch_overhead: float
    region_overhead: float
    unmap_per_page: float
    run_overhead: float
    in_per_page: float
    out_per_page: float
    both_per_page: float
    latency: float
    remote_latency: float
    decision: float
    counters: int
    observe_most: int  # regions observed at a time; 0 if nobody observes
    watch: int  # evicted regions by which the number of samples is judged
    samples: int  # pages sampled per region; 0 adapts it
    sample: float
    notification: float
    pipelined: bool
    dirty_only: bool
    tracking: bool


class Memory(NamedTuple):
    """The arrays of one run, as Python sees them.

    Arrays of tracking are empty unless a policy sees everything.
    """

    books: NDArray[Any]
    page_state: NDArray[np.uint8]
    latest: NDArray[np.int64]  # per page: its last touch and who made it (latest.py), tracking only
    region_touches: NDArray[np.int64]  # tracking only
    resident: NDArray[np.int32]  # pages near or coming; a region with any holds a frame
    # per region, columns of REGION:
    region_pages: NDArray[np.int32]  # pages that belong to an object
    pinned: NDArray[np.int64]  # the driver's turn in which the region was served last
    region_faults: NDArray[np.int64]
    region_evictions: NDArray[np.int64]
    region_pages_in: NDArray[np.int64]
    observed: NDArray[np.int16]  # pages sampled now
    left_in: NDArray[np.int32]  # the epoch in which it was evicted last
    counted: NDArray[np.int64]  # remote accesses since it got a counter, -1 without one
    prefetch_queued: NDArray[np.uint8]
    slot_time: NDArray[np.float64]
    slot_due: NDArray[np.float64]  # the same while it is running, else infinite
    moving: NDArray[np.uint32]  # slots that move on in this round
    # the first ``books.idle`` are idle; by their numbers, while there are blocks for them
    idle_slots: NDArray[np.int64]
    slot_at: NDArray[np.int64]
    slot_end: NDArray[np.int64]
    slot_page: NDArray[np.int64]
    slot_status: NDArray[np.uint8]
    queue: NDArray[np.int64]  # slots that stalled, in the order of their faults
    batch_page: NDArray[np.int64]
    coming: NDArray[np.int64]
    occupied: NDArray[np.int32]
    requests: NDArray[np.int64]
    prefetch_ring: NDArray[np.int64]
    timeline: NDArray[np.float64]
    sampled: NDArray[np.uint8]  # per page: see observe.py
    notices: NDArray[np.int64]  # pages, or -1 - region, whose use was noticed
    wants: NDArray[np.uint8]  # which events the eviction, prefetch and placement policies want
    own: NDArray[np.int64]  # what each of them is handed as its own data


class Touches(NamedTuple):
    """Touches in columns."""

    page: NDArray[np.uint32]
    write: NDArray[np.uint8]
    bytes: NDArray[np.int32]
    reference: NDArray[np.int16]


class Blocks(NamedTuple):
    """What is being played.

    A slot's place counts through ``rest``, then through ``new``; no block lies in both.
    """

    starts: NDArray[np.int64]  # of the blocks in ``new``
    rest: Touches  # what was left of blocks that were under way when ``new`` came
    new: Touches  # the newest segment, where it lies


def make_rules(
    machine: Machine,
    trace: Trace,
    frames: int,
    dirty_only: bool,
    tracking: bool,
    decision: float,
    observe_most: int = 0,
    samples: int = 0,
    watched: int | None = None,
) -> Rules:
    """The constants of a run, in the units the compiled loop wants: ns per page."""
    page, ppr = trace.geometry.page, trace.geometry.pages_per_region
    link, driver = machine.link, machine.driver
    by_page = machine.near.frame == "page"
    room = frames // ppr if by_page else frames
    return Rules(
        frames=frames,
        by_page=by_page,
        room=room,
        page=page,
        pages_per_region=ppr,
        region_shift=ppr.bit_length() - 1,
        batch_faults=driver.batch_faults,
        batch_overhead=driver.batch_overhead,
        region_overhead=driver.region_overhead,
        unmap_per_page=driver.unmap_per_kib * page / 1024,
        run_overhead=link.run_overhead,
        in_per_page=page / link.inward,
        out_per_page=page / link.outward,
        both_per_page=page / link.both,
        latency=machine.near.latency,
        remote_latency=link.remote_latency,
        decision=decision,
        counters=driver.counters,
        observe_most=min(observe_most, room),
        watch=max(1, min(observe_most if watched is None else watched, room)),
        samples=samples,
        sample=driver.sample,
        notification=driver.notification,
        pipelined=driver.pipelined,
        dirty_only=dirty_only,
        tracking=tracking,
    )


def as_record(rules: Rules) -> Any:
    """The same for compiled functions, which then hand one pointer on, not all the numbers."""
    return np.array(
        [tuple(rules)], [(name, np.dtype(kind)) for name, kind in get_type_hints(Rules).items()]
    )[0]


def make_memory(trace: Trace, slots: int, rules: Rules) -> Memory:
    """Everything far, everything idle."""
    pages, regions, ppr = trace.pages, trace.regions, rules.pages_per_region
    books = np.zeros(1, dtype=BOOKS)
    books["threshold"] = NO_TREE
    books["timeline_stride"] = 1
    books["samples"] = rules.samples or 1
    books["random"] = SEED
    region = _in_lines(regions)
    region["left_in"], region["counted"] = -2, -1
    page_state = np.full(pages, CPU_MAPPED, np.uint8)
    for o in trace.objects:
        if o.name in trace.fresh:
            page_state[o.first_page : o.first_page + o.pages] = 0
        first = o.first_page // ppr
        whole, rest = divmod(o.pages, ppr)
        region["pages"][first : first + whole] = ppr
        if rest:
            region["pages"][first + whole] = rest
    in_turn = min(pages, max(rules.batch_faults, PREFETCH_TURN) * ppr + rules.counters)
    tracked = pages if rules.tracking else 0
    return Memory(
        books=books,
        page_state=page_state,
        latest=np.full(tracked, NEVER, np.int64),
        region_touches=np.zeros(regions if rules.tracking else 0, np.int64),
        resident=np.zeros(regions, np.int32),
        region_pages=region["pages"],
        pinned=region["pinned"],
        region_faults=region["faults"],
        region_evictions=region["evictions"],
        region_pages_in=region["pages_in"],
        observed=region["observed"],
        left_in=region["left_in"],
        counted=region["counted"],
        prefetch_queued=region["queued"],
        slot_time=np.zeros(slots),
        slot_due=np.full(slots, np.inf),
        moving=np.zeros(slots, np.uint32),
        idle_slots=np.zeros(slots, np.int64),
        slot_at=np.zeros(slots, np.int64),
        slot_end=np.zeros(slots, np.int64),
        slot_page=np.zeros(slots, np.int64),
        slot_status=np.zeros(slots, np.uint8),
        queue=np.zeros(slots, np.int64),
        batch_page=np.zeros(rules.batch_faults, np.int64),
        coming=np.zeros(in_turn, np.int64),
        occupied=np.zeros(ppr + 1, np.int32),
        requests=np.zeros((REQUEST_ROWS, 4), np.int64),
        prefetch_ring=np.zeros(regions, np.int64),
        timeline=np.zeros((TIMELINE_ROWS, len(TIMELINE_COLUMNS))),
        sampled=np.zeros(pages, np.uint8),
        notices=np.zeros(2 * rules.counters, np.int64),
        wants=np.zeros((3, 1 << EVENT_BITS), np.uint8),
        own=np.zeros(3, np.int64),
    )


def _in_lines(regions: int) -> NDArray[Any]:
    """A REGION for each, all 0, none of them across two lines."""
    raw = np.zeros((regions + 1) * REGION_BYTES, np.uint8)
    first = -raw.ctypes.data % REGION_BYTES
    return raw[first : first + regions * REGION_BYTES].view(REGION)


def play_on(rest: Touches, segment: Segment) -> Blocks:
    """What is left, and a new segment, where it lies."""
    return Blocks(read_only(segment.starts), Touches(*map(read_only, rest)), touches_of(segment))


def touches_of(segment: Segment) -> Touches:
    """A segment's columns, read-only as those of a file are."""
    return Touches(
        *map(
            read_only,
            (segment.page.view(np.uint32), segment.write, segment.bytes, segment.reference),
        )
    )


def read_only(column: Any) -> NDArray[Any]:
    """The same column; compiled code would be compiled anew for one that may be written."""
    seen: NDArray[Any] = column.view()
    seen.flags.writeable = False
    return seen
