"""Observation: noticing the use of near memory with counters that only see the link (ObservUVM, IV
and V).

    observe  ──▶ some near pages of a region are taken to far memory and mapped there        ▣ sampled
                   region  ■■■■■▣■■■■■■■■■■        the rest stays near
    a touch of ▣ ──▶ crosses the link, and a counter notices it: a notification
    notification ──▶ the region's sampled pages come home; it is observed no longer

There are as many counters as the hardware has (256); a page that finds none free is not sampled.
What observation costs, pages taken away and brought home included, is policy overhead.

How many pages are sampled per region adapts (V-D): of the regions evicted in one epoch of ``watch``
evictions, were more than half back before the next epoch ended, the number doubles; did four fifths
stay away, it halves.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tidegate.compiled.jit import jit_bare
from tidegate.policies.interface.page_flags import (
    COMING,
    DIRTY,
    FAULTED,
    NEAR,
    REMOTE,
    TOUCHED,
    WANTED,
)

BACK_SOON, STAY_AWAY = 0.5, 0.8  # shares of recently evicted regions (V-D)
ACCESS = 128  # bytes: what one access of the hardware's counters is

# What a page's entry in ``sampled`` says; NOTICED is added when its use is.
SAMPLED, LEFT_FAR, NOTICED = 1, 3, 1


@jit_bare
def draw(m: Any, n: int) -> Any:
    """A random number below ``n`` (xorshift64*)."""
    b = m.books[0]
    x = b.random
    x ^= x >> np.uint64(12)
    x ^= x << np.uint64(25)
    x ^= x >> np.uint64(27)
    b.random = x
    return np.int64(((x * np.uint64(0x2545F4914F6CDD1D)) >> np.uint64(33)) % np.uint64(n))


@jit_bare
def take_samples(m: Any, k: Any, region: int) -> None:
    """Take some near pages of a resident region away, so that its next use is noticed.

    One page at least stays.
    """
    b = m.books[0]
    base, pages = region * k.pages_per_region, m.region_pages[region]
    left = 0
    for page in range(base, base + pages):
        if m.page_state[page] & (NEAR | REMOTE) == NEAR:
            left += 1
    need = min(b.samples, left - 1, k.counters - b.sampled_n)
    if need < 1:
        return
    b.observations += 1
    b.observed_n += 1
    for page in range(base, base + pages):
        state = m.page_state[page]
        if need > 0 and state & (NEAR | REMOTE) == NEAR:
            if draw(m, left) < need:  # each choice of pages is as likely as any other
                need -= 1
                m.page_state[page] = (state | REMOTE) & ~(NEAR | DIRTY) & 0xFF
                m.resident[region] -= 1
                b.pages_sampled += 1
                b.turn_policy += k.sample + k.out_per_page
                b.link_out_time += k.out_per_page
                note_sample(m, page, region, SAMPLED)
            left -= 1


@jit_bare
def leave_one_far(m: Any, k: Any, region: int) -> None:
    """Leave one of the pages about to be prefetched where it is, so that the prefetch's use is
    noticed.
    """
    b = m.books[0]
    base, pages = region * k.pages_per_region, m.region_pages[region]
    coming = others = 0
    for page in range(base, base + pages):
        if m.page_state[page] & (WANTED | FAULTED | NEAR | COMING) == WANTED:
            coming += 1
        elif m.page_state[page] & (FAULTED | NEAR | COMING):
            others += 1
    if coming == 0 or coming + others < 2 or b.sampled_n >= k.counters or m.observed[region] > 0:
        return  # a region must not hold its frame with no page in it
    chosen = draw(m, coming)
    for page in range(base, base + pages):
        if m.page_state[page] & (WANTED | FAULTED | NEAR | COMING) == WANTED:
            if chosen == 0:
                m.page_state[page] = (m.page_state[page] | REMOTE) & ~WANTED & 0xFF
                b.observations += 1
                b.turn_policy += k.sample
                note_sample(m, page, region, LEFT_FAR)
                return
            chosen -= 1


@jit_bare
def note_sample(m: Any, page: int, region: int, kind: int) -> None:
    b = m.books[0]
    m.sampled[page] = kind
    m.observed[region] += 1
    b.sampled_n += 1


@jit_bare
def notice(m: Any, page: int, region: int, size: int, time: float) -> None:
    """A touch crossed the link: does a counter notice it?"""
    b = m.books[0]
    if m.sampled[page] & 1:
        m.sampled[page] += NOTICED
        put_notice(m, page, time)
    elif b.count_threshold > 0 and m.sampled[page] == 0:
        if m.counted[region] < 0:
            if b.counting_n >= m.notices.size // 2:
                return  # every counter is taken: this region goes unseen
            b.counting_n += 1
            m.counted[region] = 0
        before = m.counted[region]
        m.counted[region] = before + max(1, size // ACCESS)
        if before < b.count_threshold <= m.counted[region]:
            put_notice(m, -1 - region, time)


@jit_bare
def put_notice(m: Any, what: int, time: float) -> None:
    b = m.books[0]
    b.notice_from = time if b.notices_n == 0 else min(b.notice_from, time)
    m.notices[b.notices_n] = what
    b.notices_n += 1


@jit_bare
def bring_home(m: Any, k: Any, region: int) -> None:
    """The region's sampled pages come back; it is observed no longer."""
    b = m.books[0]
    sampled = False  # or left far by a prefetch: those do not count among the observed
    base = region * k.pages_per_region
    for page in range(base, base + m.region_pages[region]):
        if m.sampled[page]:
            left_far = m.sampled[page] >= LEFT_FAR
            sampled |= not left_far
            m.sampled[page] = 0
            b.sampled_n -= 1
            if k.by_page and left_far:  # a sampled page has kept its frame, this one never had any
                if b.frames_used >= k.frames:
                    m.page_state[page] &= ~REMOTE & 0xFF
                    continue
                b.frames_used += 1
            m.page_state[page] = (m.page_state[page] | COMING) & ~REMOTE & 0xFF
            m.coming[b.coming_n] = page
            b.coming_n += 1
            m.resident[region] += 1
            b.pages_home += 1
            b.turn_policy += k.run_overhead + k.in_per_page
            b.link_in_time += k.run_overhead + k.in_per_page
    b.observed_n -= sampled
    m.observed[region] = 0


@jit_bare
def forget(m: Any, k: Any, region: int) -> int:
    """An observed region is evicted: its sampled pages, which are far already, are ordinary pages
    again.

    Answers how many of them had kept a frame.
    """
    b = m.books[0]
    sampled = 0
    base = region * k.pages_per_region
    for page in range(base, base + m.region_pages[region]):
        if m.sampled[page]:
            sampled += m.sampled[page] < LEFT_FAR
            m.sampled[page] = 0
            m.page_state[page] &= ~(REMOTE | TOUCHED) & 0xFF
            b.sampled_n -= 1
    b.observed_n -= sampled > 0
    m.observed[region] = 0
    return sampled


@jit_bare
def watch_leaving(m: Any, k: Any, region: int) -> None:
    """Count evictions in epochs; at the end of each, judge by the regions of the one before."""
    b = m.books[0]
    m.left_in[region] = b.epoch
    b.epoch_evictions += 1
    if b.epoch_evictions < k.watch:
        return
    if b.epoch > 0 and k.samples == 0:
        back = b.returned_before / k.watch
        if back > BACK_SOON:
            # more than the counters can hold for all observed regions would leave some of them
            # unobserved
            b.samples = max(
                1, min(2 * b.samples, k.counters // k.observe_most, k.pages_per_region // 2)
            )
        elif 1 - back >= STAY_AWAY:
            b.samples = max(1, b.samples // 2)
    b.returned_before, b.returned = b.returned, 0
    b.epoch += 1
    b.epoch_evictions = 0


@jit_bare
def watch_returning(m: Any, region: int) -> None:
    """A region without a frame faulted: was it evicted a short while ago?"""
    b = m.books[0]
    if m.left_in[region] == b.epoch:
        b.returned += 1
    elif m.left_in[region] == b.epoch - 1:
        b.returned_before += 1
    m.left_in[region] = -2
