"""Profile: the plan of a program that nobody compiled, from what its trace does.

A compiler estimates what a launch uses; a trace shows it. So that one policy reads both, what is
seen is put in the compiler's words: launches of one name are one place, and what they do is
averaged over them, as a static analysis has it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import mean

import numpy as np
from numpy.typing import NDArray

from tidegate.trace.plan import Plan, PlannedLaunch, PlannedUse
from tidegate.trace.trace import Object, Trace, check_segment


@dataclass(frozen=True)
class Seen:
    """One launch: bytes it used and bytes it wrote, by the object's number."""

    name: str
    used: NDArray[np.float64]
    written: NDArray[np.float64]


def profile(trace: Trace) -> Plan:
    """Read the whole trace once.

    Locality is the bytes used; distances are exact, and averaged over launches of one name.
    """
    launches = list(_launches(trace))
    distances = _distances(launches)
    places = dict.fromkeys(launch.name for launch in launches)
    planned = tuple(
        PlannedLaunch(
            name,
            tuple(
                _uses(
                    trace.objects,
                    [(x, d) for x, d in zip(launches, distances, strict=True) if x.name == name],
                )
            ),
        )
        for name in places
    )
    total = sum((launch.used for launch in launches), np.zeros(len(trace.objects)))
    return Plan(planned, {o.name: float(total[i]) for i, o in enumerate(trace.objects)})


def _launches(trace: Trace) -> Iterator[Seen]:
    first = np.array([o.first_page for o in trace.objects])
    for launch in trace.launches():
        used, written = np.zeros(len(first)), np.zeros(len(first))
        for segment in launch.segments:
            check_segment(segment, trace)
            owner = np.searchsorted(first, segment.page, side="right") - 1
            # a touch of no bytes is still a use
            used += np.bincount(owner, np.maximum(segment.bytes, 1), len(first))
            written += np.bincount(owner, segment.write, len(first))
        yield Seen(launch.name, used, written)


def _distances(launches: Sequence[Seen]) -> list[NDArray[np.float64]]:
    """For each launch, how many launches on each object is used again; infinite when it never is."""
    if not launches:
        return []
    coming = np.full(len(launches[0].used), math.inf)
    found = []
    for at in range(len(launches) - 1, -1, -1):
        found.append(coming - at)
        coming[launches[at].used > 0] = at
    return found[::-1]


def _uses(
    objects: Sequence[Object], seen: Sequence[tuple[Seen, NDArray[np.float64]]]
) -> Iterator[PlannedUse]:
    for i, o in enumerate(objects):
        own = [(launch, float(distance[i])) for launch, distance in seen if launch.used[i] > 0]
        if own:
            used = float(mean(launch.used[i] for launch, _ in own))
            again = [distance for _, distance in own if distance != math.inf]
            out = any(launch.written[i] > 0 for launch, _ in own)
            yield PlannedUse(
                o.name, used, mean(again) if again else math.inf, used / o.bytes, copied_out=out
            )
