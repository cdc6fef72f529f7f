"""Several ranges of addresses, swept in step: the touches of a launch's operands."""

from __future__ import annotations

from typing import Any

import numpy as np

from tidegate.compiled.jit import jit

_LAST_REFERENCE = np.iinfo(np.int16).max  # operands beyond it share this number


@jit
def merge_sweeps(
    given: Any,
    count: Any,
    first: Any,
    pool: Any,
    start: Any,
    done: Any,
    cursor: Any,
    page: int,
    out: Any,
) -> None:
    """Fill ``out`` with the next touches of several operands that are swept in step.

    The next touch is always of the operand that is least far on. ``given``: low and high address,
    bytes used, write and group of each operand; ``out``: page, write, bytes and reference.

    ``done`` and ``cursor`` (the current group's first operand) are carried on to the next call.
    """
    low, high, used, write, group = given
    pages, writes, sizes, references = out
    n, begin = 0, cursor[0]
    while n < len(pages):
        end = begin
        while end < len(low) and group[end] == group[begin]:
            end += 1
        while n < len(pages):
            best, least = -1, 2.0
            for i in range(begin, end):
                if done[i] < count[i]:
                    at = (done[i] + 0.5) / count[i]
                    if at < least:
                        best, least = i, at
            if best < 0:
                break
            i = best
            j = done[i]
            done[i] = j + 1
            if start[i] >= 0:  # rows: their bytes are spread evenly
                pages[n] = pool[start[i] + j]
                sizes[n] = max(1, min(page, used[i] // count[i]))
            else:
                number = first[i] + j
                pages[n] = number
                within = min(high[i], (number + 1) * page) - max(low[i], number * page)
                share = used[i] / (high[i] - low[i])
                sizes[n] = max(1, min(page, int(within * share + 0.5)))
            writes[n] = write[i]
            references[n] = min(i, _LAST_REFERENCE)
            n += 1
        if n < len(pages):
            begin = end
    cursor[0] = begin
