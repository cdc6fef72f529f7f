"""Tree prefetch, by the rule of NVIDIA's driver (open-gpu-kernel-modules, uvm_perf_prefetch.c).

A region is the root of a binary tree whose leaves are its pages. A leaf is occupied if its page is
near or has just faulted. From each faulted page walk up to the root and keep the *largest* node
that is more than ``threshold`` % occupied; prefetch whatever that node lacks. Prefetched
pages do not count as occupied in the same pass.

         root  5/8 = 62 % > 51 % ── so all eight are fetched
        /    \\
      4/4    1/4       leaves: ■ near   ▣ just faulted   □ far
     ■■ ■▣   ■□ □□

At 51 % that is 2 of 2, 3 of 4, 5 of 8, 9 of 16, 17 of 32; at 1 % the first fault takes the whole
region.
"""

from __future__ import annotations

from typing import Any

from tidegate.compiled.jit import jit
from tidegate.policies.interface.page_flags import ARRIVING, COMING, FAULTED, NEAR, REMOTE, WANTED


@jit
def mark_subtrees(memory: Any, constants: Any, region: int, first: int, last: int) -> None:
    """Mark as WANTED what the tree rule prefetches for the faults ``batch_page[first:last]``."""
    base = region * constants.pages_per_region
    pages = memory.region_pages[region]
    threshold = memory.books[0].threshold
    filled = memory.occupied  # filled[i]: occupied pages before page i
    filled[0] = 0
    for i in range(pages):
        filled[i + 1] = filled[i] + (
            1 if memory.page_state[base + i] & (NEAR | COMING | FAULTED) else 0
        )
    whole = constants.pages_per_region if constants.round_tails else pages
    while whole >= 2 * pages:
        whole //= 2
    done = 0  # nodes are aligned, so they only ever begin at or after the last one's end
    for j in range(first, last):
        leaf = memory.batch_page[j] - base
        best_from, best_to = leaf, leaf + 1
        size = 2
        while size <= constants.pages_per_region:
            low = leaf // size * size
            high = min(low + size, pages)  # an object's last region may end early
            leaves = min(low + size, whole) - low
            if (filled[high] - filled[low]) * 100 > threshold * leaves:
                best_from, best_to = low, high
            size *= 2
        for i in range(max(best_from, done), best_to):
            if not memory.page_state[base + i] & (NEAR | COMING | FAULTED | REMOTE | ARRIVING):
                memory.page_state[base + i] |= WANTED
        done = max(done, best_to)
