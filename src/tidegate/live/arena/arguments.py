"""Validate Arena arguments."""

from __future__ import annotations

import operator
import os
import sys
from collections.abc import Iterable

from tidegate import units
from tidegate.errors import TidegateError
from tidegate.live.transfer import userfault
from tidegate.trace.geometry import Geometry
from tidegate.units import show_size

LARGEST_SPAN = 65536 * units.GiB  # half of what a process can address


LONGEST_CALL = 24 * 3600  # seconds


def check_memory(geometry: Geometry, near: int, middle: int) -> None:
    """Refuse sizes of memory that this machine cannot provide."""
    if sys.platform != "linux":
        raise TidegateError("live memory needs Linux's userfaultfd")
    if geometry.page % userfault.SMALL_PAGE:
        raise TidegateError(
            f"page must be a multiple of the system's {userfault.SMALL_PAGE} bytes, "
            f"got {geometry.page}"
        )
    if near < 2 * geometry.region:
        raise TidegateError(
            f"near memory of {show_size(near)} is less than two regions of "
            f"{show_size(geometry.region)}; give more, or a smaller region with geometry="
        )
    ram = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    if (most := max(near, middle)) > ram:
        raise TidegateError(
            f"near and middle must fit in RAM; this machine has {show_size(ram)}, "
            f"got {show_size(most)}"
        )
    if 0 < middle < geometry.page:
        raise TidegateError(
            f"a middle of {show_size(middle)} holds no page of {show_size(geometry.page)}; "
            "give more"
        )


def check_observation(observed: int | None, samples: int, share: float) -> None:
    """Refuse numbers of regions, pages and shares of time that observation cannot have."""
    if observed is not None and observed < 0:
        raise TidegateError(f"observed (regions at a time) must be 0 or more, got {observed}")
    if samples < 0:
        raise TidegateError(
            f"samples (pages per region) must be 1 or more, or 0 to adapt it, got {samples}"
        )
    if not 0 <= share <= 1:
        raise TidegateError(f"observe_share must be between 0 and 1, got {share}")


def check_options(span: int, geometry: Geometry, middle: int, tiering: str | None) -> None:
    """Refuse a span that cannot be reserved, and tiering without a middle tier."""
    if not 2 * geometry.region <= span <= LARGEST_SPAN:
        raise TidegateError(
            f"a span of {show_size(span)} cannot be reserved; give between two regions "
            f"({show_size(2 * geometry.region)}) and {show_size(LARGEST_SPAN)}"
        )
    if tiering is not None and not middle:
        raise TidegateError(
            f"tiering={tiering} decides what goes to the middle, and there is none; give middle="
        )


def check_watchdog(seconds: float) -> None:
    """Refuse a time within which no call of a policy could return, and one that never ends."""
    if not 0 < seconds <= LONGEST_CALL:
        raise TidegateError(
            "watchdog (seconds for a call of a policy) must be positive and at most "
            f"{LONGEST_CALL}, got {seconds:g}"
        )


def check_names(**policies: object) -> None:
    """Refuse policies that are not given by name."""
    for kind, given in policies.items():
        if given is not None and not isinstance(given, str):
            raise TidegateError(
                f"{kind} must be a name, because the pager is another process, got {given!r}; "
                "give one such as lru, or mine.py:MyPolicy for a class in a file"
            )


def dims_of(shape: int | tuple[int, ...]) -> tuple[int, ...]:
    """Return a shape as a tuple of lengths."""
    try:
        lengths = shape if isinstance(shape, Iterable) else (shape,)
        dims = tuple(map(operator.index, lengths))
    except TypeError:
        raise TidegateError(
            f"shape must be a length such as 1000 or lengths such as (10, 100), got {shape!r}"
        ) from None
    if any(n < 0 for n in dims):
        raise TidegateError(f"shape must have no negative length, got {dims}")
    return dims
