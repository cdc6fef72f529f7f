"""The GPU: blocks taken in order by slots, slots that stall alone, time that moves on in rounds.

    play ──▶ rounds ──▶ hand_out   idle slots take the next blocks
         │          ──▶ sweep      each running slot moves on: to the round's end, its block's end or an absent page
         └─▶ driver: finish the turn that is over, begin one if faults or prefetches wait

``sweep`` holds the hit path; everything else happens far less often. It takes the arrays it needs
out of the memory once, because every look-up in there would be paid per touch.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tidegate.compiled.intrinsics import fetch_ahead
from tidegate.compiled.jit import jit, jit_bare
from tidegate.policies.interface.last_touch import latest
from tidegate.policies.interface.page_flags import DIRTY, NEAR, REMOTE, TOUCHED
from tidegate.simulation.gpu.codes import BREATHE, DONE, MORE, OK, STRAY, TURN_OVER, WORK_WAITS
from tidegate.simulation.gpu.driver import (
    finish_turn,
    serve_faults,
    serve_notice_turn,
    serve_prefetches,
    touch_at,
)
from tidegate.simulation.gpu.memory import IDLE, QUANTUM, RUNNING, STALLED, Touches
from tidegate.simulation.gpu.observation import notice

AHEAD = 6  # slots whose next touch is prepared


@jit
def play(
    m: Any, k: Any, relay: Any, blocks: Any, per_byte: float, remote: float, last: bool, budget: int
) -> int:
    """Play blocks until the launch is done, blocks run out (unless these are its ``last``), or
    ``budget`` touches.
    """
    b = m.books[0]
    stop = b.touches + budget
    while True:
        code = rounds(m, k, blocks, per_byte, remote, last, stop)
        if code == TURN_OVER:
            finish_turn(m, k, blocks, per_byte, remote)
            continue
        if code != WORK_WAITS:
            return code
        # faults and prefetches take turns when both wait
        if b.queue_n > 0 and (b.prefetch_n == 0 or not b.fault_turn):
            code = serve_faults(m, k, relay)
        elif b.prefetch_n > 0:
            code = serve_prefetches(m, k, relay)
        else:
            code = serve_notice_turn(m, k, relay)
        if code != OK:
            return code


@jit_bare
def rounds(
    m: Any, k: Any, blocks: Any, per_byte: float, remote: float, last: bool, stop: int
) -> int:
    """Move all slots on, round by round, until somebody else has to act; answers who."""
    b = m.books[0]
    while True:
        if b.idle > 0 and not hand_out(m, blocks) and not last:
            return MORE
        if b.touches >= stop:
            return BREATHE
        earliest = soonest(m)
        if earliest == np.inf and b.queue_n == 0:
            return DONE  # a prefetch may still be under way; nobody waits for it
        until = earliest + QUANTUM
        if b.driver_busy:
            if b.driver_free <= earliest:
                return TURN_OVER
            until = min(until, b.driver_free)
        elif b.queue_n > 0 or b.prefetch_n > 0 or b.notices_n > 0:
            return WORK_WAITS
        moving = choose_moving(m, until)
        if k.tracking:
            stray = sweep_tracking(m, k, blocks, moving, until, per_byte, remote)
        else:
            stray = sweep(m, k, blocks, moving, until, per_byte, remote)
        if stray >= 0:
            b.culprit = stray
            return STRAY


@jit_bare
def hand_out(m: Any, blocks: Any) -> bool:
    """Give the next blocks to idle slots, in the order of their numbers.

    False: there were not enough.
    """
    b, idle, starts = m.books[0], m.idle_slots, blocks.starts
    behind, block, given = blocks.rest.page.size, b.next_block, 0
    while given < b.idle:
        while block < starts.size - 1 and starts[block] == starts[block + 1]:
            block += 1  # a block without touches takes nobody's time
        if block >= starts.size - 1:
            break
        slot = idle[given]
        m.slot_at[slot], m.slot_end[slot] = behind + starts[block], behind + starts[block + 1]
        m.slot_status[slot], m.slot_due[slot] = RUNNING, m.slot_time[slot]
        block += 1
        given += 1
    b.next_block = block
    b.idle -= given
    if given:
        for i in range(b.idle):
            idle[i] = idle[i + given]
    return b.idle == 0


# Of hundreds of slots few move in a round, for a touch of a whole page may last for several. So no
# look at all of them has anything in it that the processor would have to guess, nor a sign to test
# (hence ``np.uint64``).


@jit_bare
def soonest(m: Any) -> float:
    """The earliest time at which a slot is due.

    Times are not negative: they compare as their bits do, eight at once.
    """
    bits = m.slot_due.view(np.int64)
    least = np.int64(0x7FF0000000000000)  # never
    for slot in range(m.books[0].slots):
        least = min(least, bits[np.uint64(slot)])
    return np.int64(least).view(np.float64)


@jit_bare
def choose_moving(m: Any, until: float) -> int:
    """Write down the slots that are due before ``until``, in the order of their numbers; how many
    there are.
    """
    bits, last, moving = m.slot_due.view(np.int64), np.float64(until).view(np.int64), m.moving
    n = np.uint64(0)
    for slot in range(m.books[0].slots):
        moving[n] = slot
        n += np.uint64(bits[np.uint64(slot)] < last)
    return int(n)


def _make_sweep(tracking: bool) -> Any:
    """The sweep over slots that move.

    There are two, because a store per touch is worth leaving out when nobody looks.
    """

    def sweep(
        m: Any, k: Any, blocks: Any, moving: int, until: float, per_byte: float, remote: float
    ) -> Any:
        """Move the first of ``m.moving`` on to ``until``.

        Answers a page that belongs to no object, or -1.
        """
        b = m.books[0]
        status, times, ats, ends, due, state = (
            m.slot_status,
            m.slot_time,
            m.slot_at,
            m.slot_end,
            m.slot_due,
            m.page_state,
        )
        rest, behind = blocks.rest, blocks.rest.page.size
        touched_last, region_touches = m.latest, m.region_touches
        pages_per_region, shift = np.uint32(k.pages_per_region), np.uint32(k.region_shift)
        touches, near_time, front, idle = b.touches, b.near_time, b.front, b.idle
        latency, chosen = k.latency, m.moving
        stray = np.int64(-1)
        for which in range(moving):
            slot = np.uint64(chosen[which])
            if tracking and which + AHEAD < moving:
                fetch_tracked(
                    m, blocks.new.page, ats[np.uint64(chosen[which + AHEAD])] - behind, shift
                )
            time = times[slot]
            pages, writes, sizes, references = blocks.new
            before = behind
            if ats[slot] < behind:
                pages, writes, sizes, references = rest
                before = 0
            i, end = np.uint64(ats[slot] - before), np.uint64(ends[slot] - before)
            far = 0.0
            while i < end and time < until:
                page = pages[i]
                s = state[page]
                if s & NEAR:  # the hit path
                    state[page] = s | (TOUCHED | DIRTY if writes[i] else TOUCHED)
                    time += max(latency, sizes[i] * per_byte)
                elif s & REMOTE:
                    spent = k.remote_latency + sizes[i] * remote
                    time += spent
                    far += spent
                    b.remote_touches += 1
                    b.remote_bytes += sizes[i]
                    notice(
                        m,
                        np.int64(page),
                        np.int64(page // pages_per_region),
                        np.int64(sizes[i]),
                        time,
                    )
                else:
                    if page % pages_per_region >= m.region_pages[page // pages_per_region]:
                        stray = np.int64(page)
                    stall(m, np.int64(slot), np.int64(page))
                    break
                if tracking:
                    touched_last[page] = latest(touches, references[i])
                    region_touches[page >> shift] += 1
                touches += 1
                i += np.uint64(1)
            if i == end:
                status[slot] = IDLE
                m.idle_slots[idle] = slot
                idle += 1
            near_time += time - times[slot] - far
            b.remote_time += far
            times[slot], ats[slot] = time, before + np.int64(i)
            due[slot] = time if status[slot] == RUNNING else np.inf
            front = max(front, time)
        b.running += front - b.front
        b.touches, b.near_time, b.front, b.idle = touches, near_time, front, idle
        return stray

    return sweep


@jit_bare
def fetch_tracked(m: Any, pages: Any, at: int, shift: Any) -> None:
    """Have what a touch soon to come will write fetched; two places in memory, and every touch
    would wait for them.
    """
    if 0 <= at < pages.size:
        page = pages[at]
        fetch_ahead(m.latest, page)
        fetch_ahead(m.region_touches, page >> shift)


sweep = jit_bare(_make_sweep(tracking=False))
sweep_tracking = jit_bare(_make_sweep(tracking=True))


@jit_bare
def stall(m: Any, slot: int, page: int) -> None:
    """The slot waits for this page; the others run on."""
    b = m.books[0]
    m.slot_status[slot] = STALLED
    m.slot_page[slot] = page
    m.queue[b.queue_n] = slot
    b.queue_n += 1
    b.stalls += 1


@jit
def take_rest(m: Any, blocks: Any, slots: int) -> Any:
    """What is left of unfinished blocks, to be played on from there when the next segment comes."""
    left = 0
    for slot in range(slots):
        if m.slot_status[slot] != IDLE:
            left += m.slot_end[slot] - m.slot_at[slot]
    rest = Touches(
        np.empty(left, np.uint32),
        np.empty(left, np.uint8),
        np.empty(left, np.int32),
        np.empty(left, np.int16),
    )
    to = 0
    for slot in range(slots):
        if m.slot_status[slot] != IDLE:
            first = to
            for i in range(m.slot_at[slot], m.slot_end[slot]):
                rest.page[to], rest.write[to], rest.bytes[to], rest.reference[to] = touch_at(
                    blocks, i
                )
                to += 1
            m.slot_at[slot], m.slot_end[slot] = first, to
    m.books[0].next_block = 0
    return rest
