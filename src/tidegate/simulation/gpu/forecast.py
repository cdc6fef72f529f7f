"""Reading a trace for a forecast: which regions each launch uses, and how long it computes.

read_uses ──▶ regions by launch, deaths, bytes and operations    once for each trace
forecast  ──▶ runs of regions with the same uses are pieces; durations on a machine
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from tidegate.compiled.jit import jit
from tidegate.machine.machine import Machine
from tidegate.policies.interface.forecast import Forecast
from tidegate.simulation.gpu.memory import read_only
from tidegate.simulation.gpu.pace import near_time
from tidegate.trace.trace import Launch, Ranges, Segment, Trace, check_segment

_SEED = 0x9E3779B97F4A7C15  # of the hashes by which regions with the same uses are found


@dataclass(frozen=True)
class RegionUses:
    """What the launches of a trace use, region by region."""

    launch: NDArray[np.int64]
    region: NDArray[np.int64]  # in the order of first touches within a launch
    written: NDArray[np.bool_]
    used: NDArray[np.int64]  # bytes of data in the region that the launch uses, without repeats
    death: NDArray[np.int64]  # launch, region: after this launch the region's data are dead
    pace: list[Launch]  # of each launch, without its touches
    bytes: list[int]  # used by each launch


class PageData(NamedTuple):
    """Which pages hold data, and how much of each the launch has used.

    Touches of one page may be of the same bytes, so a page counts once. A page that nobody has
    written holds nothing that would have to come.
    """

    written: NDArray[np.bool_]
    counted: NDArray[np.int64]  # bytes in this launch
    bytes: int  # of a page


_read: WeakKeyDictionary[Trace, RegionUses] = WeakKeyDictionary()


def read_uses(trace: Trace) -> RegionUses:
    """Return what the launches of a trace use; the trace is read once."""
    if trace not in _read:
        _read[trace] = _read_uses(trace)
    return _read[trace]


def _read_uses(trace: Trace) -> RegionUses:
    shift = trace.geometry.pages_per_region.bit_length() - 1
    ends = _region_ends(trace)
    none = np.zeros(0, np.int64)
    uses: list[Any] = [(none, none, np.zeros(0, np.bool_), none)]
    deaths = [np.zeros((0, 2), np.int64)]
    place = np.full(trace.regions, -1, np.int64)
    pages = PageData(~trace.unwritten(), np.zeros(trace.pages, np.int64), trace.geometry.page)
    pace, used = [], []
    for number, launch in enumerate(trace.launches()):
        segments = list(launch.segments)
        for segment in segments:
            check_segment(segment, trace)
        page, write, size = _touches(segments)
        used.append(int(size.sum(dtype=np.int64)))
        region, written, bytes_ = _by_region(page, write, size, shift, place, pages)
        uses.append((np.full(len(region), number, np.int64), region, written, bytes_))
        deaths.append(_deaths(number, launch.frees, shift, ends))
        for first, end in launch.frees:
            pages.written[first:end] = False
        pace.append(_without_touches(launch))
    launch_, region, written, bytes_ = map(np.concatenate, zip(*uses, strict=True))
    return RegionUses(launch_, region, written, bytes_, np.concatenate(deaths), pace, used)


def _touches(segments: list[Segment]) -> list[NDArray[Any]]:
    """Return the page, write and bytes of a launch's touches."""
    if len(segments) == 1:
        only = segments[0]
        columns = [only.page, only.write, only.bytes]
    else:
        columns = [
            np.concatenate([np.zeros(0, kind), *(getattr(s, name) for s in segments)])
            for name, kind in (("page", np.int32), ("write", np.uint8), ("bytes", np.int32))
        ]
    return [read_only(column) for column in columns]


@jit
def _by_region(page: Any, write: Any, size: Any, shift: int, place: Any, pages: PageData) -> Any:
    """Return the regions by their first touch, whether each is written, and the bytes used.

    ``place``: -1 for each region, before and after.
    """
    region = np.empty(page.size, np.int64)
    written, used = np.zeros(page.size, np.bool_), np.zeros(page.size, np.int64)
    n = 0
    for i in range(page.size):
        at = place[page[i] >> shift]
        if at < 0:
            at = place[page[i] >> shift] = n
            region[n] = page[i] >> shift
            n += 1
        written[at] |= write[i] != 0
        pages.written[page[i]] |= write[i] != 0
        if pages.written[page[i]]:
            added = min(size[i], pages.bytes - pages.counted[page[i]])
            pages.counted[page[i]] += added
            used[at] += added
    for at in range(n):
        place[region[at]] = -1
    for i in range(page.size):
        pages.counted[page[i]] = 0
    return region[:n].copy(), written[:n].copy(), used[:n].copy()


def _region_ends(trace: Trace) -> NDArray[np.int64]:
    """Return for each region the page behind its last one that belongs to an object."""
    ppr = trace.geometry.pages_per_region
    ends = np.arange(1, trace.regions + 1, dtype=np.int64) * ppr
    for o in trace.objects:
        last = (o.first_page + o.pages - 1) // ppr
        ends[last] = o.first_page + o.pages
    return ends


def _deaths(number: int, frees: Ranges, shift: int, ends: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return launch and region for each region that dies as a whole."""
    found = []
    for first, end in frees:
        low = -(-first >> shift)
        high = min(len(ends), ((end - 1) >> shift) + 1)
        if high > low and ends[high - 1] > end:
            high -= 1
        if high > low:
            found.append(np.arange(low, high, dtype=np.int64))
    if not found:
        return np.zeros((0, 2), np.int64)
    regions = np.concatenate(found)
    return np.stack([np.full(len(regions), number, np.int64), regions], axis=1)


def _without_touches(launch: Launch) -> Launch:
    """Return what says how long a launch computes."""
    return Launch(
        launch.name,
        (),
        launch.width,
        launch.intensity,
        launch.duration,
        launch.flops,
        launch.dtype,
        launch.place,
    )


def forecast(trace: Trace, machine: Machine) -> Forecast:
    """Return the forecast of a trace on a machine."""
    uses = read_uses(trace)
    geometry, launches = trace.geometry, len(uses.pace)
    of_region, first, regions, owner = _pieces(trace, uses)
    of_use = of_region[uses.region]
    one = uses.region == first[of_use]  # one use for a piece, not for each of its regions
    piece, launch = of_use[one], uses.launch[one]
    # uses of one launch and piece are added up, whatever their order is
    key = uses.launch * len(first) + of_use
    _, of = np.unique(key, return_inverse=True)
    used = np.bincount(of, uses.used)[of[one]]
    deaths = _piece_deaths(uses, of_region, first)
    dead = np.bincount(deaths[:, 0] + 1, regions[deaths[:, 1]], launches + 1)
    next_use, dies = _next_uses(piece, launch, deaths, launches)
    duration = [near_time(p, used, machine) for p, used in zip(uses.pace, uses.bytes, strict=True)]
    unwritten = _unwritten_regions(trace)
    return Forecast(
        first=first,
        regions=regions,
        object=owner,
        host=~unwritten[first],
        begin=np.searchsorted(launch, np.arange(launches + 1)),
        piece=piece,
        written=uses.written[one],
        used=used.astype(np.int64),
        next=next_use,
        dies=dies,
        dead=np.cumsum(dead).astype(np.int64),
        duration=np.array(duration),
        region_bytes=geometry.region,
        inward=machine.link.inward,
        outward=machine.link.outward,
    )


def _pieces(trace: Trace, uses: RegionUses) -> tuple[NDArray[np.int64], ...]:
    """Return each region's piece, and each piece's first region, regions and object.

    Regions are alike if sums of random numbers, one for each launch, are.
    """
    random = np.random.default_rng(_SEED).integers(0, 2**63, (3, len(uses.pace) + 1), np.uint64)
    mark = np.zeros(trace.regions, np.uint64)
    with np.errstate(over="ignore"):
        np.add.at(mark, uses.region, random[0][uses.launch])
        np.add.at(mark, uses.region[uses.written], random[1][uses.launch[uses.written]])
        np.add.at(mark, uses.death[:, 1], random[2][uses.death[:, 0]])
    ppr = trace.geometry.pages_per_region
    owner = np.zeros(trace.regions, np.int64)
    owner[[o.first_page // ppr for o in trace.objects[1:]]] = 1
    owner = np.cumsum(owner)
    unwritten = _unwritten_regions(trace)
    new = np.ones(trace.regions, np.bool_)
    new[1:] = (
        (mark[1:] != mark[:-1]) | (owner[1:] != owner[:-1]) | (unwritten[1:] != unwritten[:-1])
    )
    first = np.flatnonzero(new)
    return np.cumsum(new) - 1, first, np.diff(np.append(first, trace.regions)), owner[first]


def _unwritten_regions(trace: Trace) -> Any:
    """Return for each region whether all its pages are unwritten at the start."""
    return trace.unwritten().reshape(-1, trace.geometry.pages_per_region).all(axis=1)


def _piece_deaths(
    uses: RegionUses, of_region: NDArray[np.int64], first: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return launch and piece of each death of a piece."""
    piece = of_region[uses.death[:, 1]]
    one = uses.death[:, 1] == first[piece]
    return np.stack([uses.death[one, 0], piece[one]], axis=1)


def _next_uses(
    piece: NDArray[np.int64], launch: NDArray[np.int64], deaths: NDArray[np.int64], launches: int
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return for each use the launch of the next use of the same data, and whether they die."""
    n = len(piece)
    all_pieces = np.append(piece, deaths[:, 1])
    all_launches = np.append(launch, deaths[:, 0])
    is_death = np.arange(len(all_pieces)) >= n
    order = np.lexsort((is_death, all_launches, all_pieces))
    after = np.append(order[1:], -1)
    same = np.append(all_pieces[order][1:] == all_pieces[order][:-1], False)
    used = same & ~is_death[after]
    next_use = np.full(len(all_pieces), launches, np.int64)
    next_use[order[used]] = all_launches[after[used]]
    dies = np.zeros(len(all_pieces), np.bool_)
    dies[order[same & is_death[after]]] = True
    return next_use[:n], dies[:n]
