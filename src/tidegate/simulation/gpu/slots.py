"""Slots: they take blocks in order, stall alone and move on in rounds.

    play ──▶ run_rounds ──▶ assign_blocks   idle slots take the next blocks
         │              ──▶ sweep           each running slot moves on: to the round's end, to its
         │                                  block's end or to an absent page
         ├─▶ driver: finish the turn that is over; begin one if faults or prefetches wait
         └─▶ streams: the same with copies

``sweep`` holds the hit path; everything else happens far less often. It takes the arrays it needs
out of the memory once, because every look-up in there would be paid per touch.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tidegate.compiled.intrinsics import fetch_ahead
from tidegate.compiled.jit import jit, jit_bare
from tidegate.policies.interface.page_flags import ARRIVING, DIRTY, NEAR, REMOTE, TOUCHED, latest
from tidegate.simulation.gpu.driver import (
    finish_next,
    serve_faults,
    serve_notification_turn,
    serve_prefetches,
    touch_at,
)
from tidegate.simulation.gpu.memory import (
    COPY_WAITS,
    DONE,
    ENDED,
    IDLE,
    MORE_BLOCKS,
    OK,
    PAUSE,
    QUANTUM,
    RUNNING,
    STALLED,
    STRAY,
    WORK_WAITS,
    TouchColumns,
)
from tidegate.simulation.gpu.recorded_moves import mark
from tidegate.simulation.gpu.remote import touch_remote
from tidegate.simulation.gpu.streams import can_start, next_end, start_copies
from tidegate.simulation.recording import bin_number, bin_of, fit

AHEAD = 6  # slots whose next touch is fetched into the cache


@jit
def play(
    memory: Any,
    constants: Any,
    relay: Any,
    blocks: Any,
    per_byte: float,
    last: bool,
    budget: int,
    recording: Any,
) -> int:
    """Play blocks until the launch is done, blocks run out or ``budget`` touches are made.

    ``last``: there are no more blocks in this launch. ``recording``: True, or None without one; the
    type decides which code is compiled.
    """
    books = memory.books[0]
    stop = books.touches + budget
    while True:
        code = run_rounds(memory, constants, blocks, per_byte, last, stop, recording)
        if code == ENDED:
            finish_next(memory, constants, blocks, per_byte)
            continue
        if code == COPY_WAITS:
            code = start_copies(memory, constants, relay)
            if code == OK:
                continue
        if code != WORK_WAITS:
            if recording is not None:
                mark(memory)  # the last one is that of the end
            return code
        # faults and prefetches take turns when both wait
        if books.queue_n > 0 and (books.prefetch_n == 0 or not books.fault_turn):
            code = serve_faults(memory, constants, relay, blocks)
        elif books.prefetch_n > 0:
            code = serve_prefetches(memory, constants, relay)
        else:
            code = serve_notification_turn(memory, constants, relay)
        if code != OK:
            return code


@jit_bare
def run_rounds(
    memory: Any, constants: Any, blocks: Any, per_byte: float, last: bool, stop: int, recording: Any
) -> int:
    """Move all slots on, round by round, until something else has to be done; return what."""
    books = memory.books[0]
    while True:
        if books.idle > 0 and not assign_blocks(memory, blocks) and not last:
            return MORE_BLOCKS
        if books.touches >= stop:
            return PAUSE
        earliest = earliest_due(memory)
        if earliest == np.inf and books.queue_n == 0 and books.arrivals_n == 0:
            return DONE  # a prefetch may still be under way; no slot waits for it
        if can_start(memory):
            return COPY_WAITS
        waits = books.queue_n > 0 or books.prefetch_n > 0 or books.notification_n > 0
        if waits and not books.driver_busy and not books.hold:
            return WORK_WAITS
        ends = next_end(memory)
        if ends <= earliest:
            return ENDED
        until = min(earliest + QUANTUM, ends)
        books.link_free = max(books.link_free, earliest)
        moving = select_due(memory, until)
        if recording is not None:
            stray = sweep_and_record(memory, constants, blocks, moving, until, per_byte)
        elif constants.tracking:
            stray = sweep_tracking(memory, constants, blocks, moving, until, per_byte)
        else:
            stray = sweep(memory, constants, blocks, moving, until, per_byte)
        if stray >= 0:
            books.failed_at = stray
            return STRAY


@jit_bare
def assign_blocks(memory: Any, blocks: Any) -> bool:
    """Assign the next blocks to idle slots, by number; return whether there were enough."""
    books, idle, starts = memory.books[0], memory.idle_slots, blocks.starts
    behind, block, given = blocks.rest.page.size, books.next_block, 0
    while given < books.idle:
        while block < starts.size - 1 and starts[block] == starts[block + 1]:
            block += 1  # a block without touches takes no time
        if block >= starts.size - 1:
            break
        slot = idle[given]
        memory.slot_at[slot], memory.slot_end[slot] = (
            behind + starts[block],
            behind + starts[block + 1],
        )
        memory.slot_status[slot], memory.slot_due[slot] = RUNNING, memory.slot_time[slot]
        block += 1
        given += 1
    books.next_block = block
    books.idle -= given
    if given:
        for i in range(books.idle):
            idle[i] = idle[i + given]
    return books.idle == 0


# Of hundreds of slots few move in a round, because a touch of a whole page may last for several.
# The two loops over all slots therefore have no branches to predict and no signs to test (hence
# ``np.uint64``).


@jit_bare
def earliest_due(memory: Any) -> float:
    """Return the earliest time at which a slot is due.

    Times are not negative, so their bits compare as they do, eight at once.
    """
    bits = memory.slot_due.view(np.int64)
    least = np.int64(0x7FF0000000000000)  # never
    for slot in range(memory.books[0].slots):
        least = min(least, bits[np.uint64(slot)])
    return np.int64(least).view(np.float64)


@jit_bare
def select_due(memory: Any, until: float) -> int:
    """Write the slots due before ``until`` to ``moving``, by number; return how many there are."""
    bits, last, moving = (
        memory.slot_due.view(np.int64),
        np.float64(until).view(np.int64),
        memory.moving,
    )
    n = np.uint64(0)
    for slot in range(memory.books[0].slots):
        moving[n] = slot
        n += np.uint64(bits[np.uint64(slot)] < last)
    return int(n)


def _make_sweep(tracking: bool, recording: bool = False) -> Any:
    """Return the sweep over due slots; without ``tracking`` it saves two stores per touch.

    With ``recording`` it counts touches by region and bin.
    """

    def sweep(
        memory: Any, constants: Any, blocks: Any, moving: int, until: float, per_byte: float
    ) -> Any:
        """Move the first slots of ``moving`` on to ``until``.

        Return a touched page that belongs to no object, or -1.
        """
        books = memory.books[0]
        status, times, due = memory.slot_status, memory.slot_time, memory.slot_due
        ats, ends, state = memory.slot_at, memory.slot_end, memory.page_state
        rest, behind, sharing = blocks.rest, blocks.rest.page.size, blocks.sharing
        touched_last, region_touches = memory.latest, memory.region_touches
        pages_per_region = np.uint32(constants.pages_per_region)
        shift = np.uint32(constants.region_shift)
        touches, near_time, front, idle = books.touches, books.near_time, books.front, books.idle
        chosen, paces = memory.moving, memory.slot_pace
        stray = np.int64(-1)
        record, recorded = memory.recorder[0], memory.recorded_touches
        first_region, cells = record.first_region, np.uint64(record.cells)
        cell_shift = np.uint64(record.cell_shift)
        bin_at, bin_end = np.uint64(0), np.int64(0)
        if recording:
            fit(memory, touches)
            bin_at, bin_end = bin_of(memory, touches)
        for which in range(moving):
            slot = np.uint64(chosen[which])
            if tracking and which + AHEAD < moving:
                ahead = ats[np.uint64(chosen[which + AHEAD])] - behind
                fetch_tracked(memory, blocks.new.page, ahead, shift)
            time = times[slot]
            latency, own_per_byte = books.latency * paces[slot], per_byte * paces[slot]
            pages, writes, sizes, references, costs = blocks.new
            before = behind
            if ats[slot] < behind:
                pages, writes, sizes, references, costs = rest
                before = 0
            i, end = np.uint64(ats[slot] - before), np.uint64(ends[slot] - before)
            far = 0.0
            while i < end and time < until:
                page = pages[i]
                s = state[page]
                if s & NEAR:  # the hit path
                    state[page] = s | (TOUCHED | DIRTY if writes[i] else TOUCHED)
                    time += max(latency, costs[i] * own_per_byte)
                elif s & REMOTE:
                    spent = max(latency, costs[i] * own_per_byte)
                    began, size, site = time, np.int64(sizes[i]), np.int64(references[i])
                    time = touch_remote(
                        memory, constants, sharing, np.int64(page), size, site, began, spent
                    )
                    far += time - began
                else:
                    if page % pages_per_region >= memory.region_pages[page // pages_per_region]:
                        stray = np.int64(page)
                    stall(memory, np.int64(slot), np.int64(page))
                    break
                if tracking:
                    touched_last[page] = latest(touches, references[i])
                    region_touches[page >> shift] += 1
                if recording:
                    if touches == bin_end:
                        fit(memory, touches)
                        bin_at, bin_end = bin_of(memory, touches)
                    cell = np.uint64(np.int64(page >> shift) - first_region) >> cell_shift
                    recorded[bin_at + min(cell, cells)] += 1
                touches += 1
                i += np.uint64(1)
            if i == end:
                status[slot] = IDLE
                memory.idle_slots[idle] = slot
                idle += 1
            near_time += time - times[slot] - far
            times[slot], ats[slot] = time, before + np.int64(i)
            due[slot] = time if status[slot] == RUNNING else np.inf
            front = max(front, time)
        books.running += front - books.front
        books.touches, books.near_time, books.front, books.idle = touches, near_time, front, idle
        return stray

    return sweep


@jit_bare
def fetch_tracked(memory: Any, pages: Any, at: int, shift: Any) -> None:
    """Fetch the two places that a touch soon to come will write; each would cost a cache miss."""
    if 0 <= at < pages.size:
        page = pages[at]
        fetch_ahead(memory.latest, page)
        fetch_ahead(memory.region_touches, page >> shift)


sweep = jit_bare(_make_sweep(tracking=False))
sweep_tracking = jit_bare(_make_sweep(tracking=True))
sweep_recording = jit_bare(_make_sweep(tracking=False, recording=True))
sweep_recording_tracking = jit_bare(_make_sweep(tracking=True, recording=True))


@jit_bare
def sweep_and_record(
    memory: Any, constants: Any, blocks: Any, moving: int, until: float, per_byte: float
) -> int:
    """Sweep with a recording; return what ``sweep`` does.

    The books are marked once in a bin, when it begins: between two marks they are taken to grow
    evenly.
    """
    before = bin_number(memory, memory.books[0].touches)
    if constants.tracking:
        stray = sweep_recording_tracking(memory, constants, blocks, moving, until, per_byte)
    else:
        stray = sweep_recording(memory, constants, blocks, moving, until, per_byte)
    now = bin_number(memory, memory.books[0].touches)
    if now != before or now < 0:  # before a window, the last mark is that of its begin
        mark(memory)
    return stray


@jit_bare
def stall(memory: Any, slot: int, page: int) -> None:
    """Let a slot wait for this page; the others run on. A page on its way does not fault."""
    books = memory.books[0]
    memory.slot_status[slot] = STALLED
    memory.slot_page[slot] = page
    if memory.page_state[page] & ARRIVING:
        memory.arrivals[books.arrivals_n] = slot
        books.arrivals_n += 1
        books.waits += 1
        return
    memory.queue[books.queue_n] = slot
    books.queue_n += 1
    books.stalls += 1


@jit
def take_rest(memory: Any, blocks: Any, slots: int) -> Any:
    """Return the rest of unfinished blocks, to be played before the next segment."""
    left = 0
    for slot in range(slots):
        if memory.slot_status[slot] != IDLE:
            left += memory.slot_end[slot] - memory.slot_at[slot]
    rest = TouchColumns(
        np.empty(left, np.uint32),
        np.empty(left, np.uint8),
        np.empty(left, np.int32),
        np.empty(left, np.int16),
        np.empty(left, np.int32),
    )
    to = 0
    for slot in range(slots):
        if memory.slot_status[slot] != IDLE:
            first = to
            for i in range(memory.slot_at[slot], memory.slot_end[slot]):
                rest.page[to], rest.write[to], rest.bytes[to], site, cost = touch_at(blocks, i)
                rest.reference[to], rest.cost[to] = site, cost
                to += 1
            memory.slot_at[slot], memory.slot_end[slot] = first, to
    memory.books[0].next_block = 0
    return rest
