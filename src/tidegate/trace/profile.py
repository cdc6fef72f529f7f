"""Profile: the plan of a program without a compiler, from what its trace does.

A compiler estimates what a launch uses; a trace shows it. So that policies read both alike,
launches of one place count as one launch site, and their uses are averaged, as a static analysis
does.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from tidegate.trace.plan import Plan, PlannedLaunch, PlannedUse
from tidegate.trace.trace import Object, Trace, check_segment


class _Uses(NamedTuple):
    """A row for each launch and object it uses, by launch and then by object."""

    launch: NDArray[np.int64]
    object: NDArray[np.int64]
    bytes: NDArray[np.float64]  # used; at least 1 per touch: a touch of no bytes is a use, too
    written: NDArray[np.bool_]


_plans: WeakKeyDictionary[Trace, Plan] = WeakKeyDictionary()


def profile(trace: Trace) -> Plan:
    """Return the plan of a trace, which is read once.

    Locality is the bytes used. Distances are exact, and averaged over launches of one place.
    """
    if trace not in _plans:
        _plans[trace] = _plan(trace)
    return _plans[trace]


def _plan(trace: Trace) -> Plan:
    places, uses = _read(trace)
    numbers = {place: n for n, place in enumerate(dict.fromkeys(places))}
    planned: list[list[PlannedUse]] = [[] for _ in numbers]
    site = np.array([numbers[place] for place in places], np.int64)
    for at, use in _averages(site, uses, trace.objects):
        planned[at].append(use)
    total = np.bincount(uses.object, uses.bytes, len(trace.objects)).tolist()
    launches = (PlannedLaunch(place, tuple(planned[at])) for place, at in numbers.items())
    return Plan(tuple(launches), {o.name: total[i] for i, o in enumerate(trace.objects)})


def _averages(
    site: NDArray[np.int64], uses: _Uses, objects: Sequence[Object]
) -> Iterator[tuple[int, PlannedUse]]:
    """Yield each launch site's number and average use of each object, by site and then by object.

    Sums of whole numbers are exact in doubles, whatever their order.
    """
    pair = site[uses.launch] * len(objects) + uses.object
    found, of, count = np.unique(pair, return_inverse=True, return_counts=True)
    distance = _distances(uses)
    again = np.isfinite(distance)
    columns = (
        *np.divmod(found, max(1, len(objects))),
        np.bincount(of, uses.bytes, len(found)) / count,
        np.bincount(of[again], distance[again], len(found)),
        np.bincount(of[again], minlength=len(found)),
        np.bincount(of, uses.written, len(found)) > 0,
    )
    for at, i, used, far, reuses, out in zip(*(c.tolist() for c in columns), strict=True):
        far = far / reuses if reuses else math.inf
        o = objects[i]
        yield at, PlannedUse(o.name, used, far, used / o.bytes, copied_out=out)


def _read(trace: Trace) -> tuple[list[str], _Uses]:
    """Return the launches' places, and what each uses."""
    first = np.array([o.first_page for o in trace.objects])
    places: list[str] = []
    uses = [_Uses(np.zeros(0, int), np.zeros(0, int), np.zeros(0), np.zeros(0, bool))]
    for number, launch in enumerate(trace.launches()):
        used, written = np.zeros(len(first)), np.zeros(len(first))
        for segment in launch.segments:
            check_segment(segment, trace)
            owner = np.searchsorted(first, segment.page, side="right") - 1
            used += np.bincount(owner, np.maximum(segment.bytes, 1), len(first))
            written += np.bincount(owner, segment.write, len(first))
        own = np.flatnonzero(used)
        places.append(launch.place)
        uses.append(_Uses(np.full(len(own), number), own, used[own], written[own] > 0))
    return places, _Uses(*map(np.concatenate, zip(*uses, strict=True)))


def _distances(uses: _Uses) -> NDArray[np.float64]:
    """Return for each use how many launches later the object is used again; infinite if never."""
    order = np.lexsort((uses.launch, uses.object))
    launch, object_ = uses.launch[order], uses.object[order]
    same = object_[1:] == object_[:-1]
    distance = np.full(len(order), math.inf)
    distance[order[:-1][same]] = np.diff(launch)[same]
    return distance
