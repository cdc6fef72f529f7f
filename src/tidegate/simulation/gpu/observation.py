"""Observation: noticing the use of near pages with counters that only see the link (ObservUVM, IV
and V).

    take_samples ──▶ some near pages of a region go far and are mapped there       ▣ sampled
                       region  ■■■■■▣■■■■■■■■■■        the rest stays near
    a touch of ▣ ──▶ crosses the link, where a counter sees it: a notification
    notification ──▶ the region's sampled pages return; it is observed no longer

There are as many counters as the hardware has (256); a page that finds none free is not sampled.
All costs of observation, both transfers included, are policy overhead.

The number of pages sampled per region adapts (V-D). Evictions are counted in epochs of ``watch``.
If more than half of the regions evicted in one epoch are back before the next one ends, the number
doubles, up to half of a region; if four fifths stay away, it halves. With more samples per region
the counters last for fewer regions: the text sets no bound, and Figure 17 tries more.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tidegate.compiled.jit import jit_bare
from tidegate.policies.interface.events import MOST_ACCESSES
from tidegate.policies.interface.page_flags import (
    ADVISED_FAR,
    COMING,
    COUNTED,
    DIRTY,
    FAULTED,
    NEAR,
    REMOTE,
    TOUCHED,
    UNWRITTEN,
    WANTED,
)
from tidegate.simulation.gpu.driver_constants import BACK_SOON, STAY_AWAY
from tidegate.simulation.gpu.recorded_moves import record_came
from tidegate.simulation.recording import BY_SAMPLE

ACCESS = 128  # bytes: one access, as the hardware's counters count

# Entries of pages in ``sampled``; NOTICED is added when a use is noticed.
SAMPLED, LEFT_FAR, NOTICED = 1, 3, 1


@jit_bare
def random_below(memory: Any, n: int) -> Any:
    """Return a random number below ``n`` (xorshift64*)."""
    books = memory.books[0]
    x = books.random
    x ^= x >> np.uint64(12)
    x ^= x << np.uint64(25)
    x ^= x >> np.uint64(27)
    books.random = x
    return np.int64(((x * np.uint64(0x2545F4914F6CDD1D)) >> np.uint64(33)) % np.uint64(n))


@jit_bare
def take_samples(memory: Any, constants: Any, region: int) -> None:
    """Sample some near pages of a resident region, which keeps its frame even without others."""
    books = memory.books[0]
    base, pages = region * constants.pages_per_region, memory.region_pages[region]
    left = 0
    for page in range(base, base + pages):
        if memory.page_state[page] & (NEAR | REMOTE) == NEAR:
            left += 1
    need = min(books.samples, left, constants.counters - books.sampled_n)
    if need < 1:
        return
    books.observations += 1
    books.observed_n += 1
    for page in range(base, base + pages):
        state = memory.page_state[page]
        if need > 0 and state & (NEAR | REMOTE) == NEAR:
            if random_below(memory, left) < need:  # all choices of pages are equally likely
                need -= 1
                memory.page_state[page] = (state | REMOTE) & ~(NEAR | DIRTY) & 0xFF
                memory.page_data[page] &= ~UNWRITTEN & 0xFF
                books.pages_sampled += 1
                books.turn_policy += constants.sample + constants.out_per_page
                books.link_out_time += constants.out_per_page
                mark_sampled(memory, page, region, SAMPLED)
            left -= 1


@jit_bare
def leave_one_far(memory: Any, constants: Any, region: int) -> None:
    """Leave one of the pages about to be prefetched far, so that the prefetch's use is noticed."""
    books = memory.books[0]
    base, pages = region * constants.pages_per_region, memory.region_pages[region]
    coming = others = 0
    for page in range(base, base + pages):
        if memory.page_state[page] & (WANTED | FAULTED | NEAR | COMING) == WANTED:
            coming += 1
        elif memory.page_state[page] & (FAULTED | NEAR | COMING):
            others += 1
    if (
        coming == 0
        or coming + others < 2
        or books.sampled_n >= constants.counters
        or memory.observed[region] > 0
    ):
        return  # nothing would come
    chosen = random_below(memory, coming)
    for page in range(base, base + pages):
        if memory.page_state[page] & (WANTED | FAULTED | NEAR | COMING) == WANTED:
            if chosen == 0:
                memory.page_state[page] = (memory.page_state[page] | REMOTE) & ~WANTED & 0xFF
                books.observations += 1
                books.turn_policy += constants.sample
                mark_sampled(memory, page, region, LEFT_FAR)
                return
            chosen -= 1


@jit_bare
def mark_sampled(memory: Any, page: int, region: int, kind: int) -> None:
    books = memory.books[0]
    memory.sampled[page] = kind
    memory.observed[region] += 1
    books.sampled_n += 1


@jit_bare
def notice(memory: Any, page: int, time: float) -> None:
    """Notice the first use of a sampled page."""
    if memory.sampled[page] & 1:
        memory.sampled[page] += NOTICED
        add_notification(memory, page, time)


@jit_bare
def count_access(memory: Any, page: int, size: int, time: float) -> None:
    """Count accesses over the link, if a counter watches the page's granule or is free to.

    ``counted`` is 1 more than the accesses of a granule, so that 0 is one without a counter.
    """
    books = memory.books[0]
    if books.count_threshold == 0:
        return
    granule = page // books.granule
    before = np.int64(memory.counted[granule])
    if before == 0:
        if books.counting_n >= memory.notifications.size // 2:
            return  # every counter is taken: this granule is not counted
        books.counting_n += 1
        before = np.int64(1)
    after = min(before + max(1, size // ACCESS), MOST_ACCESSES)
    memory.counted[granule] = after
    memory.page_data[page] |= COUNTED
    if before <= books.count_threshold < after:
        add_notification(memory, -1 - granule, time)


@jit_bare
def count_by(memory: Any, constants: Any, threshold: int, pages: int, each: int) -> None:
    """Count accesses by granules of so many pages, 0 for a region's, from now on.

    ``each``: notify of each page that had some of them, as the hardware's entries do
    (``sub_granularity`` in uvm_gpu_access_counters.c).
    """
    books = memory.books[0]
    books.count_threshold = threshold
    books.count_each = each
    granule = pages if pages > 0 else constants.pages_per_region
    if granule != books.granule:
        books.granule = granule
        books.counting_n = 0
        memory.counted[:] = 0


@jit_bare
def add_notification(memory: Any, what: int, time: float) -> None:
    books = memory.books[0]
    books.notification_from = (
        time if books.notification_n == 0 else min(books.notification_from, time)
    )
    memory.notifications[books.notification_n] = what
    books.notification_n += 1


@jit_bare
def end_sample(memory: Any, page: int) -> None:
    """Let a page be sampled no longer; it stays REMOTE only if it was advised so."""
    memory.books[0].sampled_n -= 1
    memory.sampled[page] = 0
    if not memory.page_data[page] & ADVISED_FAR:
        memory.page_state[page] &= ~REMOTE & 0xFF
    memory.page_data[page] &= ~ADVISED_FAR & 0xFF


@jit_bare
def return_samples(memory: Any, constants: Any, region: int) -> None:
    """Bring the region's sampled pages back; it is observed no longer."""
    books = memory.books[0]
    sampled = False  # pages left far by a prefetch do not count as observed
    base = region * constants.pages_per_region
    for page in range(base, base + memory.region_pages[region]):
        if memory.sampled[page]:
            left_far = memory.sampled[page] >= LEFT_FAR
            sampled |= not left_far
            if (
                constants.by_page and left_far
            ):  # a sampled page keeps its frame, this one never had any
                if books.frames_used >= constants.frames:
                    end_sample(memory, page)
                    continue
                books.frames_used += 1
            end_sample(memory, page)
            memory.page_state[page] |= COMING
            memory.coming[books.coming_n] = page
            books.coming_n += 1
            memory.resident[region] += left_far
            if left_far:
                record_came(memory, region, 1, 0, BY_SAMPLE)
            books.pages_home += 1
            books.turn_policy += constants.run_overhead + constants.in_per_page
            books.link_in_time += constants.run_overhead + constants.in_per_page
    books.observed_n -= sampled
    memory.observed[region] = 0


@jit_bare
def drop_samples(memory: Any, constants: Any, region: int) -> int:
    """Make sampled pages of an evicted region ordinary far pages; return how many had a frame."""
    books = memory.books[0]
    sampled = 0
    base = region * constants.pages_per_region
    for page in range(base, base + memory.region_pages[region]):
        if memory.sampled[page]:
            sampled += memory.sampled[page] < LEFT_FAR
            memory.page_state[page] &= ~TOUCHED & 0xFF
            end_sample(memory, page)
    books.observed_n -= sampled > 0
    memory.observed[region] = 0
    return sampled


@jit_bare
def count_eviction(memory: Any, constants: Any, region: int) -> None:
    """Count an eviction; at the end of an epoch, adapt the number of samples by the one before."""
    books = memory.books[0]
    memory.left_in[region] = books.epoch
    books.epoch_evictions += 1
    if books.epoch_evictions < constants.watch:
        return
    if books.epoch > 0 and constants.samples == 0:
        back = books.returned_before / constants.watch
        if back > BACK_SOON:
            books.samples = max(1, min(2 * books.samples, constants.pages_per_region // 2))
        elif 1 - back >= STAY_AWAY:
            books.samples = max(1, books.samples // 2)
    books.returned_before, books.returned = books.returned, 0
    books.epoch += 1
    books.epoch_evictions = 0


@jit_bare
def count_return(memory: Any, region: int) -> None:
    """Count the return of a region, if it was evicted in this epoch or the one before."""
    books = memory.books[0]
    if memory.left_in[region] == books.epoch:
        books.returned += 1
    elif memory.left_in[region] == books.epoch - 1:
        books.returned_before += 1
    memory.left_in[region] = -2
