"""Orders to the copy streams: what a policy or the program asks for, in the order of asking."""

from __future__ import annotations

from typing import Any

from tidegate.compiled.jit import jit_bare
from tidegate.policies.interface.page_flags import ARRIVING, COMING, NEAR, REMOTE
from tidegate.simulation.gpu.memory import ASKED, CANCELLED, LEAVING


@jit_bare
def order_in(memory: Any, constants: Any, first: int, count: int) -> None:
    """Ask the inward stream for pages, but for those near, on their way or remote."""
    for page in range(first, first + count):
        region = page // constants.pages_per_region
        if page - region * constants.pages_per_region >= memory.region_pages[region]:
            continue  # the gap behind an object's end
        stay(memory, region)
        if memory.page_state[page] & (NEAR | COMING | ARRIVING | REMOTE):
            continue
        memory.page_state[page] |= ARRIVING
        append_in(memory, region)


@jit_bare
def append_in(memory: Any, region: int) -> None:
    """Append a region to the inward stream's orders, unless it is among them."""
    books = memory.books[0]
    if memory.ordered[region]:
        return
    memory.ordered[region] = 1
    if books.in_n == 0 and not books.in_busy:
        books.in_free = max(books.in_free, books.front)
    memory.in_ring[(books.in_head + books.in_n) % memory.in_ring.size] = region
    books.in_n += 1


@jit_bare
def order_out(memory: Any, region: int) -> None:
    """Ask the outward stream to evict a region."""
    books = memory.books[0]
    if memory.resident[region] == 0 or memory.leaving[region] == LEAVING:
        return
    if memory.leaving[region] == 0:
        if books.out_n == 0 and not books.out_busy:
            books.out_free = max(books.out_free, books.front)
        memory.out_ring[(books.out_head + books.out_n) % memory.out_ring.size] = region
        books.out_n += 1
    memory.leaving[region] = ASKED


@jit_bare
def stay(memory: Any, region: int) -> None:
    """Cancel the eviction of a region that the outward stream has not begun to copy."""
    if memory.leaving[region] == ASKED:
        memory.leaving[region] = CANCELLED


@jit_bare
def order_regions_out(memory: Any, constants: Any, first: int, count: int) -> None:
    """Ask the outward stream to evict the regions that lie whole in a range of pages."""
    last = (first + count - 1) // constants.pages_per_region
    for region in range(first // constants.pages_per_region, last + 1):
        begin = region * constants.pages_per_region
        if first <= begin and begin + memory.region_pages[region] <= first + count:
            order_out(memory, region)


@jit_bare
def unblock(memory: Any, when: float) -> None:
    """Let blocked streams try again, not before ``when``."""
    books = memory.books[0]
    if books.in_blocked:
        books.in_blocked = 0
        books.in_free = max(books.in_free, when)
    if books.out_blocked:
        books.out_blocked = 0
        books.out_free = max(books.out_free, when)
