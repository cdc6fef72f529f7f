"""Lifetimes: data die, their near pages are discarded and their frames are free.

free_in_region ──▶ the region's last near pages die: the event FREE, its frame is free
               ──▶ its pages are unwritten again: their next touch is a birth
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tidegate.compiled.jit import jit_bare
from tidegate.policies.interface.events import FREE
from tidegate.policies.interface.page_flags import COMING, NEAR, READ_MOSTLY, REMOTE, UNWRITTEN
from tidegate.simulation.gpu.memory import OK
from tidegate.simulation.gpu.observation import LEFT_FAR, drop_samples
from tidegate.simulation.gpu.policy_calls import send_event
from tidegate.simulation.gpu.recorded_moves import record_died


@jit_bare
def discard(memory: Any, constants: Any, relay: Any, region: int) -> int:
    """Discard a whole region."""
    first = region * constants.pages_per_region
    end = first + constants.pages_per_region
    return free_in_region(memory, constants, relay, region, first, end)


@jit_bare
def free_in_region(
    memory: Any, constants: Any, relay: Any, region: int, first: int, end: int
) -> int:
    """Discard pages of one region; send FREE if no near page of it is left."""
    books = memory.books[0]
    near, sampled, held = 0, False, 0
    for page in range(first, end):
        near += (memory.page_state[page] & (NEAR | COMING)) != 0
        sampled |= memory.sampled[page] != 0
    if memory.observed[region] > 0:
        held = held_by_samples(memory, constants, region)
        # without another near page the region leaves, whatever is sampled of it
        if not sampled and not 0 < near == memory.resident[region] - held:
            held = 0
    emptied = 0 < near + held == memory.resident[region]
    if emptied:
        code = send_event(memory, constants, relay, FREE, region)
        if code != OK:
            return code
    if held > 0 or sampled:
        drop_samples(memory, constants, region)
    for page in range(first, end):
        if memory.page_state[page] & COMING:
            forget_coming(memory, page)
        memory.page_state[page] &= REMOTE
        memory.page_data[page] = memory.page_data[page] & READ_MOSTLY | UNWRITTEN
    memory.resident[region] -= near + held
    record_died(memory, region, np.int64(near + held))
    books.pages_discarded += near
    books.frames_used -= near + held if constants.by_page else emptied
    return OK


@jit_bare
def held_by_samples(memory: Any, constants: Any, region: int) -> int:
    """Return how many sampled pages of a region keep its frame: those that were near."""
    held, first = 0, region * constants.pages_per_region
    for page in range(first, first + memory.region_pages[region]):
        held += 0 < memory.sampled[page] < LEFT_FAR
    return held


@jit_bare
def forget_coming(memory: Any, page: int) -> None:
    """Take a page off the list of those that arrive when the driver's turn ends."""
    books = memory.books[0]
    for i in range(books.coming_n):
        if memory.coming[i] == page:
            books.coming_n -= 1
            memory.coming[i] = memory.coming[books.coming_n]
            return
