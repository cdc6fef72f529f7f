"""Ways out of near memory, and the middle: a queue of pages in order of arrival.

A page that leaves the middle leaves an empty place, until the queue is full and closes up. An
inclusive middle, a page cache, keeps a copy of a page that goes near, and takes what the SSD reads.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tidegate.compiled.jit import jit_within
from tidegate.policies.interface.tier_policy import FAILED, SPILL, Spill, Tier
from tidegate.simulation.tiers.candidates import call_placement
from tidegate.simulation.tiers.recorded_moves import record_left, record_middle, record_spill
from tidegate.simulation.tiers.service import write_storage
from tidegate.simulation.tiers.state import (
    BAD_SPILL,
    FAR_AWAY,
    FINISHED,
    IN_MIDDLE,
    NEW,
    POLICY_FAILED,
)


@jit_within
def leave(memory: Any, policies: Any, page: int, dirty: int, to: int) -> Any:
    """Send a page to the middle, if it may go there and finds room, else far.

    Return a code, and where bytes go: STAY for nowhere.
    """
    counts, constants = memory.counts[0], memory.constants[0]
    counts.evictions += 1
    memory.history[page, 0] = counts.touches
    if constants.inclusive:
        copied, out = _recall(memory, page, dirty)
        if copied or not dirty:  # the SSD has a clean page
            return FINISHED, out
    full = counts.middle_used >= constants.middle
    if (
        to == Tier.MIDDLE
        and constants.middle
        and not (full and constants.makes_room == Spill.NOBODY)
    ):
        if full:
            code = _spill(memory, policies)
            if code != FINISHED:
                return code, Tier.STAY
        record_left(memory, np.int64(page), False)
        _put(memory, page, dirty)
        counts.to_middle += 1
        return FINISHED, Tier.MIDDLE
    record_left(memory, np.int64(page), True)
    counts.to_far += 1
    memory.where[page] = FAR_AWAY
    if dirty:
        counts.near_written += 1
        return FINISHED, Tier.FAR
    counts.dropped += 1
    return FINISHED, Tier.STAY


@jit_within
def _recall(memory: Any, page: int, dirty: int) -> Any:
    """Let a near page go whose copy may be in the middle; a clean one without a copy is dropped.

    Return whether there is a copy, and where bytes go.
    """
    counts, place = memory.counts[0], memory.copies[page]
    if place >= 0:
        record_left(memory, np.int64(page), False)
        counts.recalled += 1
        memory.copies[page] = -1
        memory.where[page] = IN_MIDDLE - place
        memory.queue[place] |= dirty != 0
        return True, Tier.MIDDLE if dirty else Tier.STAY
    if not dirty:
        record_left(memory, np.int64(page), True)
        counts.to_far += 1
        counts.dropped += 1
        memory.where[page] = FAR_AWAY
    return False, Tier.STAY


@jit_within
def cache_read(memory: Any, policies: Any, page: int) -> int:
    """Put a page that is read from the SSD, and those read ahead with it, in an inclusive middle.

    Return how many are read. Pages that are near or in the middle are not read again.
    """
    counts, constants = memory.counts[0], memory.constants[0]
    first = page - page % constants.read_ahead
    last = min(first + constants.read_ahead, len(memory.where))
    for other in range(first, last):
        # a page that makes room below is not read again
        if memory.where[other] == FAR_AWAY:
            memory.where[other] = NEW
    read = 0
    for other in range(first, last):
        if memory.where[other] != NEW:
            continue
        if counts.middle_used >= constants.middle:
            _spill(memory, policies)  # the oldest, which is there
        _put(memory, other, 0)
        read += 1
        if other == page:
            memory.copies[page] = IN_MIDDLE - memory.where[page]
            memory.where[page] = FAR_AWAY
    counts.read_ahead += read - 1
    return read


@jit_within
def _spill(memory: Any, policies: Any) -> int:
    """Send a page of the middle to the SSD."""
    counts, cursors = memory.counts[0], memory.cursors[0]
    if memory.constants[0].makes_room == Spill.ASKED:
        page = call_placement(policies, SPILL, 0)
        if page < 0 or page >= len(memory.where) or memory.where[page] > IN_MIDDLE:
            return POLICY_FAILED if page == FAILED else BAD_SPILL
        place = IN_MIDDLE - np.int64(memory.where[page])
    else:
        place = cursors.head
        while memory.queue[place] < 0:
            place += 1
        cursors.head = place
        page = np.int64(memory.queue[place] >> 1)
    counts.middle_spilled += 1
    record_spill(memory, page)
    if take(memory, place):
        counts.middle_written += 1
        write_storage(memory)
    if memory.constants[0].inclusive and memory.copies[page] == place:
        memory.copies[page] = -1
    else:
        memory.where[page] = FAR_AWAY
    return FINISHED


@jit_within
def _put(memory: Any, page: int, dirty: int) -> None:
    """Put a page at the tail of the middle."""
    cursors = memory.cursors[0]
    if cursors.tail == len(memory.queue):
        _close_up(memory)
    place = cursors.tail
    memory.queue[place] = 2 * page + (dirty != 0)
    memory.where[page] = IN_MIDDLE - place
    cursors.tail = place + 1
    memory.counts[0].middle_used += 1
    record_middle(memory, np.int64(page), 1)


@jit_within
def take(memory: Any, place: int) -> int:
    """Take a page from its place in the middle; return whether it is dirty."""
    dirty = memory.queue[place] & 1
    record_middle(memory, np.int64(memory.queue[place] >> 1), -1)
    memory.queue[place] = -1
    memory.counts[0].middle_used -= 1
    return dirty


@jit_within
def _close_up(memory: Any) -> None:
    """Close empty places, because there is no room at the tail."""
    cursors = memory.cursors[0]
    kept = 0
    for place in range(cursors.head, cursors.tail):
        entry = memory.queue[place]
        if entry >= 0:
            memory.queue[kept] = entry
            page = entry >> 1
            if memory.constants[0].inclusive and memory.copies[page] == place:
                memory.copies[page] = kept
            else:
                memory.where[page] = IN_MIDDLE - kept
            kept += 1
    cursors.head, cursors.tail = 0, kept
