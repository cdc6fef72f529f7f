"""Jitter: touches that are under way together change places.

A trace has its touches in one order. On a GPU, warps that miss at the same time have none, and what
hangs on the order of two neighbouring pages is not a property of the program.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from tidegate.trace.trace import Segment, Trace


def jittered_launches(trace: Trace, reach: int) -> Iterator[tuple[str, Iterator[Segment]]]:
    """Yield name and segments of every launch, each touch moved by less than ``reach`` places.

    Touches stay in their segment. The same trace and reach give the same order every time.
    """
    for number, launch in enumerate(trace.launches()):
        segments = launch.segments
        if reach < 2:
            yield launch.name, iter(segments)
        else:
            random = np.random.default_rng(number)
            yield launch.name, (_jittered(s, reach, random) for s in segments)


def _jittered(segment: Segment, reach: int, random: np.random.Generator) -> Segment:
    """Return the segment with its touches moved; blocks lose their meaning, which tiers ignore."""
    order = jittered_order(segment.touches, reach, random)
    return Segment(
        segment.starts,
        segment.page[order],
        segment.write[order],
        segment.bytes[order],
        segment.reference[order],
    )


def jittered_order(count: int, reach: int, random: np.random.Generator) -> NDArray[np.int64]:
    """Return so many places in an order in which each has moved by less than ``reach``.

    >>> jittered_order(6, 3, np.random.default_rng(0)).tolist()
    [1, 0, 2, 3, 4, 5]
    """
    return np.argsort(np.arange(count) + reach * random.random(count), kind="stable")
