"""Which faults are in a batch, and in which order blocks raise them.

    order of stalls   blocks one after another, each with the faults that it raises at once
    by µTLB           µTLBs by number, each with a window of its blocks' faults

Duplicates merge. What real cards say of both orders: docs/validation.md.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tidegate.compiled.jit import jit_bare
from tidegate.policies.interface.page_flags import ARRIVING, COMING, FAULTED, NEAR, REMOTE
from tidegate.simulation.gpu.observation import ACCESS


@jit_bare
def fill_batch(memory: Any, constants: Any, blocks: Any) -> Any:
    """Take faults of stalled blocks until the batch is full; return how many pages they are of."""
    if constants.utlbs > 0:
        return fill_by_utlb(memory, constants, blocks)
    books, most = memory.books[0], constants.batch_faults
    n = i = raw = np.int64(0)
    if constants.ahead == 1:
        for j in range(min(books.queue_n, most)):
            at, page = memory.slot_at[memory.queue[j]], memory.slot_page[memory.queue[j]]
            n = add_fault(memory, constants, blocks, at, page, n)
        books.raw_faults += min(books.queue_n, most)
        return n
    while i < books.queue_n and raw < most:
        n, raised = raise_faults(memory, constants, blocks, memory.queue[i], n, most - raw)
        raw += raised
        i += 1
    books.raw_faults += raw
    return n


@jit_bare
def fill_by_utlb(memory: Any, constants: Any, blocks: Any) -> Any:
    """Take faults as the µTLBs raise them; return how many pages they are of.

    Every batch is a new set: after it the driver flushes the fault buffer and replays, and stalled
    blocks raise their faults again (uvm_gpu_replayable_faults.c, BATCH_FLUSH). µTLBs raise theirs
    by number, ``window`` at a time, so the first ones get on before the others do.
    """
    books = memory.books[0]
    sort_by_utlb(memory, constants)
    n = i = raw = np.int64(0)
    for utlb in range(constants.utlbs):
        left = constants.window * books.width
        while i < memory.utlb_end[utlb] and min(left, constants.batch_faults - raw) > 0:
            most = min(left, constants.batch_faults - raw)
            n, raised = raise_faults(memory, constants, blocks, memory.by_utlb[i], n, most)
            raw += raised
            left -= raised
            i += 1
        i = memory.utlb_end[utlb]
    books.raw_faults += raw
    return n


@jit_bare
def raise_faults(memory: Any, constants: Any, blocks: Any, slot: int, n: int, most: int) -> Any:
    """Take the faults that a block raises together; return pages in the batch and faults taken.

    Its warps do not wait for one another, but a store waits for loads, and loads for stores. After
    a cut batch it raises one fault, that of the touch it waits for: pages of later touches could
    take all frames, batch after batch, and no block would get on.
    """
    at = memory.slot_at[slot]
    n = add_fault(memory, constants, blocks, at, memory.slot_page[slot], n)
    if constants.ahead < 2 or memory.books[0].cut:
        return n, 1
    last = min(memory.slot_end[slot], at + constants.ahead)
    _, writes, _, _, _ = touch_at(blocks, at)
    raised, at = 1, at + 1
    while at < last and raised < most:
        page, write, _, _, _ = touch_at(blocks, at)
        if write != writes:
            break
        if can_fault(memory, constants, page):
            n = add_fault(memory, constants, blocks, at, page, n)
            raised += 1
        at += 1
    return n, raised


@jit_bare
def sort_by_utlb(memory: Any, constants: Any) -> None:
    """Write the stalled slots by the number of their µTLB, each µTLB's in the order of stalls."""
    n, end = memory.books[0].queue_n, memory.utlb_end
    end[:] = 0
    for i in range(n):
        end[memory.slot_utlb[memory.queue[i]] + 1] += 1
    for utlb in range(constants.utlbs):
        end[utlb + 1] += end[utlb]
    for i in range(n):
        utlb = memory.slot_utlb[memory.queue[i]]
        memory.by_utlb[end[utlb]] = memory.queue[i]
        end[utlb] += 1


@jit_bare
def add_fault(memory: Any, constants: Any, blocks: Any, at: int, page: int, n: int) -> int:
    """Add the fault of the touch at a slot's place; return how many pages are in the batch."""
    first = not memory.page_state[page] & FAULTED
    if first:
        memory.page_state[page] |= FAULTED
        memory.batch_page[n] = page
        n += 1
    if constants.fault_bytes < constants.page:
        _, _, size, _, _ = touch_at(blocks, at)
        # an isolated access is alone on what its fault asks for
        asked = size if size >= ACCESS else constants.fault_bytes
        before = 0 if first else memory.faulted_bytes[page]
        memory.faulted_bytes[page] = min(constants.page, before + asked)
    return n


@jit_bare
def can_fault(memory: Any, constants: Any, page: int) -> bool:
    """Return whether a page is absent, is not on its way and belongs to an object."""
    number = page % constants.pages_per_region
    if number >= memory.region_pages[page // constants.pages_per_region]:
        return False
    return not memory.page_state[page] & (NEAR | COMING | REMOTE | ARRIVING)


@jit_bare
def touch_at(blocks: Any, at: int) -> Any:
    """Return the touch at a slot's place: page, write, bytes, access site and cost."""
    i, behind = at, blocks.rest.page.size
    touches = blocks.rest
    if at >= behind:
        i, touches = at - behind, blocks.new
    page, write, size = touches.page[i], touches.write[i], touches.bytes[i]
    return page, write, size, touches.reference[i], touches.cost[i]
