"""Memory: everything the compiled mechanism reads and writes, as NumPy arrays.

RunConstants  constants of this run (machine, capacity, options)
books         one record of counters and clocks
Memory        the arrays: page table, regions, slots, fault queue, requests, timeline
Blocks        the touches being played: the rest of unfinished blocks, and the newest segment
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple, get_type_hints

import numpy as np
from numpy.typing import NDArray

from tidegate.machine.machine import Machine
from tidegate.policies.interface.events import EVENT_BITS, NO_TREE, REQUEST_ROWS
from tidegate.policies.interface.header import REGION_BYTES
from tidegate.policies.interface.page_flags import CPU_MAPPED, NEVER, READ_MOSTLY, UNWRITTEN
from tidegate.simulation.gpu.driver_constants import PREFETCH_TURN, SEED
from tidegate.simulation.gpu.recorded_moves import MARKS
from tidegate.simulation.recording import Window, make_recorder
from tidegate.trace.trace import Segment, Trace

# Slots are moved forward in rounds of this length; within a round their order is that of their
# numbers. It is the smallest batch the driver ever serves, so a finer order could not change what
# any batch holds by more than that.
QUANTUM = 15_000.0  # ns

TIMELINE_ROWS = 1024

IDLE, RUNNING, STALLED = 0, 1, 2  # states of a slot

# What a step of the driver returns: OK goes on; CUT ends this turn early and nothing is wrong; the
# others end the run.
OK, CUT, RAISED, NOT_RESIDENT = 0, 1, 2, 3

# What ``run_rounds`` and ``play`` return besides: the launch is done, blocks are needed, progress
# and Ctrl-C should be looked at, a touched page belongs to no object, the driver's turn or a
# stream's copy is over, there is work for an idle driver, or a copy can begin.
DONE, MORE_BLOCKS, PAUSE, STRAY, ENDED, WORK_WAITS, COPY_WAITS = 10, 11, 12, 13, 14, 15, 16

# States of a region in ``leaving``: asked of the outward stream, no longer asked for but still in
# its ring, being copied
ASKED, CANCELLED, LEAVING = 1, 2, 3

_COUNTERS = """
    touches stalls waits remote_touches remote_bytes faults raw_faults batches evictions decisions
    pages_in pages_born pages_prefetched pages_evicted pages_written_back pages_unused copies_in
    pages_discarded
    observations notifications pages_sampled pages_home
"""
_STATE = """
    frames_used frames_peak queue_n request_n coming_n prefetch_head prefetch_n threshold
    turn driver_busy fault_turn cut next_block slots width idle failed_at failed_event
    timeline_n timeline_stride timeline_skip
"""
# of the copy streams (streams.py). ``hold``: the driver waits for a copy to end
_STREAMS = """
    arrivals_n hold
    in_n in_head in_busy in_blocked in_region
    out_n out_head out_busy out_blocked out_region out_frames
"""
_OBSERVATION = """
    observed_n sampled_n notification_n samples random epoch epoch_evictions
    returned returned_before count_threshold count_each counting_n granule accesses
"""
_TIMES = """
    front driver_free prefetch_from notification_from latency link_free
    in_free in_begin in_end in_handling out_free out_end
    running launching near_time remote_time fault_handling transfer_in transfer_out policy_overhead
    turn_handling turn_in turn_out turn_policy turn_copied driver_time link_in_time link_out_time
"""  # clocks and parts of time, in ns

_WORDS = (_COUNTERS + _STATE + _STREAMS + _OBSERVATION).split()
BOOKS = np.dtype(
    [(name, "u8" if name == "random" else "i8") for name in _WORDS]
    + [(name, "f8") for name in _TIMES.split()]
)

_REGION = """
    served:i8 faults:i8 evictions:i8 pages_in:i8
    pages:i4 left_in:i4 observed:i2 queued:u1 ordered:u1 leaving:u1 known:u1
"""
_NAMES, _FORMATS = zip(*(field.split(":") for field in _REGION.split()), strict=True)
# All data of a region lie in one cache line, 64 bytes, because serving a region uses all of them.
REGION = np.dtype({"names": _NAMES, "formats": _FORMATS, "itemsize": REGION_BYTES})

_TIMELINE = """
    time touches faults batches evictions
    pages_in pages_written_back remote_bytes frames_used running
"""
TIMELINE_COLUMNS = tuple(_TIMELINE.split())


class RunConstants(NamedTuple):
    """Constants of one run."""

    frames: int  # capacity
    by_page: bool  # a frame holds a page; otherwise a region
    room: int  # capacity in whole regions
    page: int
    pages_per_region: int
    region_shift: int  # pages_per_region is 1 << region_shift
    batch_faults: int
    utlbs: int  # 0: blocks fault in the order of their stalls
    window: int  # faults that a µTLB raises at once
    ahead: int  # touches of a block that can fault together
    batch_overhead: float
    region_overhead: float
    first_overhead: float
    unmap_per_page: float
    unmap_prefetched: float  # per page, too
    evict_overhead: float
    evict_maps: bool
    victims_mapped: bool
    copy_handling: float  # processor time of a run
    run_overhead: float  # the link's
    run_outward: float
    fault_bytes: int
    asynchronous: bool
    round_tails: bool
    in_per_page: float
    out_per_page: float
    both_per_page: float
    crowded: float  # a copy takes so many times as long while the other stream copies
    latency: float
    remote_latency: float
    remote_per_byte: float  # on the link
    decision: float
    counters: int
    observe_most: int  # regions observed at a time; 0 if no policy observes
    watch: int  # evicted regions by which the number of samples is judged
    samples: int  # pages sampled per region; 0 adapts it
    sample: float
    notification: float  # a batch of them
    batch_notifications: int
    pipelined: bool
    dirty_only: bool
    tracking: bool


class Memory(NamedTuple):
    """The arrays of one run. Those of tracking are empty unless a policy sees everything."""

    books: NDArray[Any]
    page_state: NDArray[np.uint8]
    page_data: NDArray[np.uint8]
    latest: NDArray[np.int64]  # per page: its last touch and access site (page_flags.py), tracking
    region_touches: NDArray[np.int64]  # tracking
    resident: NDArray[np.int32]  # pages near, coming or sampled; a region with any has a frame
    # per region, columns of REGION:
    region_pages: NDArray[np.int32]  # pages that belong to an object
    served: NDArray[np.int64]  # the driver's turn in which the region was served last
    region_faults: NDArray[np.int64]
    region_evictions: NDArray[np.int64]
    region_pages_in: NDArray[np.int64]
    observed: NDArray[np.int16]  # pages sampled now
    left_in: NDArray[np.int32]  # the epoch in which it was evicted last
    prefetch_queued: NDArray[np.uint8]
    ordered: NDArray[np.uint8]  # 1: in the inward stream's ring
    leaving: NDArray[np.uint8]  # 0, ASKED, CANCELLED or LEAVING
    known: NDArray[np.uint8]  # the driver has served it before
    slot_time: NDArray[np.float64]
    slot_due: NDArray[np.float64]  # the same while the slot is running, else infinite
    moving: NDArray[np.uint32]  # slots that move on in this round
    idle_slots: NDArray[np.int64]  # the first ``books.idle``; by number while blocks are left
    slot_pace: NDArray[np.float64]  # its time for a near touch over the machine's
    slot_at: NDArray[np.int64]
    slot_end: NDArray[np.int64]
    slot_page: NDArray[np.int64]
    slot_status: NDArray[np.uint8]
    queue: NDArray[np.int64]  # slots that stalled, in the order of their faults
    slot_utlb: NDArray[np.int64]  # of this launch
    by_utlb: NDArray[np.int64]  # the queue by µTLB
    utlb_end: NDArray[np.int64]  # per µTLB: where its slots end in ``by_utlb``
    arrivals: NDArray[np.int64]  # slots that wait for pages of the inward stream
    batch_page: NDArray[np.int64]
    faulted_bytes: NDArray[np.int32]  # per page: what its faults ask for; if copied apart
    coming: NDArray[np.int64]
    occupied: NDArray[np.int32]
    requests: NDArray[np.int64]
    prefetch_ring: NDArray[np.int64]
    in_ring: NDArray[np.int64]  # regions with pages asked of the inward stream
    out_ring: NDArray[np.int64]
    timeline: NDArray[np.float64]
    sampled: NDArray[np.uint8]  # per page: see observation.py
    counted: NDArray[np.int32]  # per granule: remote accesses, see observation.py
    notifications: NDArray[np.int64]  # pages, or -1 - granule, whose use was noticed
    wants: NDArray[np.uint8]  # events that the eviction, prefetch and placement policies handle
    own: NDArray[np.int64]  # address of each policy's own data
    # of a recording, empty without one:
    recorder: NDArray[Any]
    recorded: NDArray[np.int32]
    recorded_touches: NDArray[np.int32]
    noted: NDArray[np.int64]
    marks: NDArray[np.float64]
    story: NDArray[np.float64]


class TouchColumns(NamedTuple):
    """Touches in columns. ``cost``: the time of a near touch, in units of the launch's pace."""

    page: NDArray[np.uint32]
    write: NDArray[np.uint8]
    bytes: NDArray[np.int32]
    reference: NDArray[np.int16]
    cost: NDArray[np.int32]


class Blocks(NamedTuple):
    """Touches being played.

    A slot's place counts through ``rest``, then through ``new``; no block lies in both.
    """

    starts: NDArray[np.int64]  # of the blocks in ``new``
    rest: TouchColumns  # of blocks that were under way when ``new`` came
    new: TouchColumns  # the newest segment, not copied
    sharing: NDArray[np.float64]  # of the launch, by access site


def make_constants(
    machine: Machine,
    trace: Trace,
    frames: int,
    dirty_only: bool,
    tracking: bool,
    decision: float,
    observe_most: int = 0,
    samples: int = 0,
    watched: int | None = None,
) -> RunConstants:
    """Return the constants of a run, with costs in ns per page."""
    page, ppr = trace.geometry.page, trace.geometry.pages_per_region
    link, driver, near = machine.link, machine.driver, machine.near
    by_page = near.frame == "page"
    room = frames // ppr if by_page else frames
    return RunConstants(
        frames=frames,
        by_page=by_page,
        room=room,
        page=page,
        pages_per_region=ppr,
        region_shift=ppr.bit_length() - 1,
        batch_faults=driver.batch_faults,
        utlbs=-(-near.sms // near.utlb_sms) if near.utlb_faults else 0,
        window=near.utlb_faults or 0,
        ahead=near.block_faults or near.utlb_faults or 1,
        batch_overhead=driver.batch_overhead,
        region_overhead=driver.region_overhead,
        first_overhead=driver.first_overhead,
        unmap_per_page=driver.unmap_per_kib * page / 1024,
        unmap_prefetched=(
            driver.unmap_per_kib
            if driver.unmap_prefetched_per_kib is None
            else driver.unmap_prefetched_per_kib
        )
        * page
        / 1024,
        evict_overhead=driver.evict_overhead,
        evict_maps=driver.evict_maps,
        victims_mapped=driver.victims_mapped,
        copy_handling=driver.copy_overhead,
        run_overhead=link.run_overhead,
        run_outward=link.run_overhead_outward,
        fault_bytes=min(page, driver.fault_bytes or page),
        asynchronous=driver.asynchronous,
        round_tails=driver.round_tails,
        in_per_page=page / link.inward,
        out_per_page=page / link.outward,
        both_per_page=page / link.both,
        crowded=max(1.0, (link.inward + link.outward) / link.both),
        latency=near.latency,
        remote_latency=link.remote_latency,
        remote_per_byte=1 / (link.inward * link.remote_share),
        decision=decision,
        counters=driver.counters,
        observe_most=min(observe_most, room),
        watch=max(1, min(observe_most if watched is None else watched, room)),
        samples=samples,
        sample=driver.sample,
        notification=driver.notification,
        batch_notifications=driver.batch_notifications,
        pipelined=driver.pipelined,
        dirty_only=dirty_only,
        tracking=tracking,
    )


def as_array(constants: Any) -> NDArray[Any]:
    """Return a NamedTuple of numbers as one record, so that compiled functions pass one pointer."""
    kind: Any = type(constants)
    return np.array([tuple(constants)], _record_of(kind))


@functools.cache
def _record_of(kind: type) -> np.dtype[Any]:
    return np.dtype([(name, np.dtype(of)) for name, of in get_type_hints(kind).items()])


def make_memory(
    trace: Trace, slots: int, constants: RunConstants, window: Window | None = None
) -> Memory:
    """Return the memory of a run that begins: all pages far, all slots idle.

    ``window``: what to record of it.
    """
    pages, regions, ppr = trace.pages, trace.regions, constants.pages_per_region
    books = np.zeros(1, dtype=BOOKS)
    books["threshold"] = NO_TREE
    books["timeline_stride"] = 1
    books["samples"] = constants.samples or 1
    books["granule"] = constants.pages_per_region
    books["random"] = SEED
    region = _in_lines(regions)
    region["left_in"], region["served"] = -2, -1
    for o in trace.objects:
        first = o.first_page // ppr
        whole, rest = divmod(o.pages, ppr)
        region["pages"][first : first + whole] = ppr
        if rest:
            region["pages"][first + whole] = rest
    in_turn = min(pages, max(constants.batch_faults, PREFETCH_TURN) * ppr + constants.counters)
    tracked = pages if constants.tracking else 0
    return Memory(
        books=books,
        page_state=np.zeros(pages, np.uint8),
        page_data=_data_at_start(trace),
        latest=np.full(tracked, NEVER, np.int64),
        region_touches=np.zeros(regions if constants.tracking else 0, np.int64),
        resident=np.zeros(regions, np.int32),
        region_pages=region["pages"],
        served=region["served"],
        region_faults=region["faults"],
        region_evictions=region["evictions"],
        region_pages_in=region["pages_in"],
        observed=region["observed"],
        left_in=region["left_in"],
        prefetch_queued=region["queued"],
        ordered=region["ordered"],
        leaving=region["leaving"],
        known=region["known"],
        slot_time=np.zeros(slots),
        slot_due=np.full(slots, np.inf),
        moving=np.zeros(slots, np.uint32),
        idle_slots=np.zeros(slots, np.int64),
        slot_pace=np.ones(slots),
        slot_at=np.zeros(slots, np.int64),
        slot_end=np.zeros(slots, np.int64),
        slot_page=np.zeros(slots, np.int64),
        slot_status=np.zeros(slots, np.uint8),
        queue=np.zeros(slots, np.int64),
        slot_utlb=np.zeros(slots, np.int64),
        by_utlb=np.zeros(slots, np.int64),
        utlb_end=np.zeros(constants.utlbs + 1, np.int64),
        arrivals=np.zeros(slots, np.int64),
        batch_page=np.zeros(constants.batch_faults, np.int64),
        faulted_bytes=np.zeros(pages if constants.fault_bytes < constants.page else 0, np.int32),
        coming=np.zeros(in_turn, np.int64),
        occupied=np.zeros(ppr + 1, np.int32),
        requests=np.zeros((REQUEST_ROWS, 4), np.int64),
        prefetch_ring=np.zeros(regions, np.int64),
        in_ring=np.zeros(regions, np.int64),
        out_ring=np.zeros(regions, np.int64),
        timeline=np.zeros((TIMELINE_ROWS, len(TIMELINE_COLUMNS))),
        sampled=np.zeros(pages, np.uint8),
        counted=np.zeros(pages, np.int32),
        notifications=np.zeros(2 * constants.counters, np.int64),
        wants=np.zeros((3, 1 << EVENT_BITS), np.uint8),
        own=np.zeros(3, np.int64),
        **make_recorder(window, regions, len(MARKS))._asdict(),
    )


def _data_at_start(trace: Trace) -> NDArray[np.uint8]:
    """Return what far memory has of each page at the start."""
    data = np.full(trace.pages, CPU_MAPPED, np.uint8)
    data[trace.unwritten()] = UNWRITTEN if trace.first_touch else 0
    for o in trace.objects:
        if o.read_mostly:
            data[o.first_page : o.first_page + o.pages] |= READ_MOSTLY
    return data


def _in_lines(regions: int) -> NDArray[Any]:
    """Return a REGION for each, all 0, each within one cache line."""
    raw = np.zeros((regions + 1) * REGION_BYTES, np.uint8)
    first = -raw.ctypes.data % REGION_BYTES
    return raw[first : first + regions * REGION_BYTES].view(REGION)


def join_blocks(
    rest: TouchColumns, segment: Segment, cost: NDArray[np.int32], sharing: tuple[float, ...] = ()
) -> Blocks:
    """Return the rest of unfinished blocks together with a new segment, without copying."""
    rest = TouchColumns(*map(read_only, rest))
    shared = read_only(np.array(sharing, np.float64))
    return Blocks(read_only(segment.starts), rest, columns_of(segment, cost), shared)


def columns_of(segment: Segment, cost: NDArray[np.int32]) -> TouchColumns:
    """Return a segment's columns, read-only as those of a file are."""
    columns = segment.page.view(np.uint32), segment.write, segment.bytes, segment.reference, cost
    return TouchColumns(*map(read_only, columns))


def read_only(column: Any) -> NDArray[Any]:
    """Return the same column, read-only: for a writable one code would be compiled again."""
    seen: NDArray[Any] = column.view()
    seen.flags.writeable = False
    return seen
