"""What a person asked an arena for: can it be?"""

from __future__ import annotations

import operator
import os
import sys
from collections.abc import Iterable

from tidegate import units
from tidegate.errors import TidegateError
from tidegate.live.transfer import userfault
from tidegate.trace.geometry import Geometry

LARGEST_SPAN = 65536 * units.GiB  # half of what a process can address


def check_memory(geometry: Geometry, frames: int, near: int, middle: int) -> None:
    if sys.platform != "linux":
        raise TidegateError("live memory needs Linux's userfaultfd")
    if geometry.page % userfault.SMALL_PAGE:
        raise TidegateError(
            f"a page of {geometry.page} bytes is not a multiple of the system's {userfault.SMALL_PAGE}"
        )
    if frames < 2:
        raise TidegateError(
            f"near memory of {units.show_size(near)} is less than two regions of {units.show_size(geometry.region)}; "
            "give more, or a smaller region with geometry="
        )
    ram = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    if near > ram or middle > ram:
        raise TidegateError(
            f"{units.show_size(max(near, middle))} of RAM were asked for; this machine has {units.show_size(ram)}; give less"
        )
    if 0 < middle < geometry.page:
        raise TidegateError(
            f"a middle of {units.show_size(middle)} holds no page of {units.show_size(geometry.page)}; give more"
        )


def check_choices(
    observed: int | None,
    samples: int,
    span: int,
    geometry: Geometry,
    middle: int,
    tiering: str | None,
) -> None:
    if observed is not None and observed < 0:
        raise TidegateError(f"observed={observed}: regions observed at a time; expected 0 or more")
    if samples < 0:
        raise TidegateError(
            f"samples={samples}: pages sampled per region; expected 1 or more, or 0 to adapt it"
        )
    if not 2 * geometry.region <= span <= LARGEST_SPAN:
        raise TidegateError(
            f"a span of {units.show_size(span)} cannot be reserved; expected between two regions "
            f"({units.show_size(2 * geometry.region)}) and {units.show_size(LARGEST_SPAN)}"
        )
    if tiering is not None and not middle:
        raise TidegateError(
            f"tiering={tiering} decides what goes to the middle, and there is none; give middle= too"
        )


def check_names(**policies: object) -> None:
    for kind, given in policies.items():
        if given is not None and not isinstance(given, str):
            raise TidegateError(
                f"{kind}={given!r} is not a name; the pager is a process of its own, so give one, such as lru, or "
                "mine.py:MyPolicy for a class in a file"
            )


def dims_of(shape: int | tuple[int, ...]) -> tuple[int, ...]:
    try:
        dims = (
            (operator.index(shape),)
            if not isinstance(shape, Iterable)
            else tuple(map(operator.index, shape))
        )
    except TypeError:
        raise TidegateError(
            f"{shape!r} is not a shape; expected a length such as 1000 or lengths such as (10, 100)"
        ) from None
    if any(n < 0 for n in dims):
        raise TidegateError(f"shape {dims} has a negative length")
    return dims
