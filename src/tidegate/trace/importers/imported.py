"""ImportedTrace: addresses of a file as objects and pages.

The file is read twice: once to find the pages that are used, then for the touches. Objects that the
file names keep their names. Other pages that are used are put together: pages closer than a region
belong to one object, which begins at a region boundary of its addresses. A file of identifiers
(caches of keys) becomes one object, in which each identifier is a page and a region.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tidegate.errors import TidegateError
from tidegate.trace.geometry import Geometry
from tidegate.trace.importers.importer import Allocation, Importer, RawLaunch, coalesce
from tidegate.trace.trace import Launch, Object, Segment, Trace

_MOST_PAGES = 1 << 30  # page numbers are int32, and objects end at region boundaries
_MOST_OBJECTS = 1 << 16  # more scattered than this, addresses are packed into one object
_MOST_BYTES = 1 << 47  # of one touch or object: what an address can reach

Progress = Callable[[int], None]


class ImportedTrace(Trace):
    """The trace that an importer reads, laid out for a geometry."""

    def __init__(
        self, importer: Importer, geometry: Geometry, progress: Progress = lambda read: None
    ):
        if importer.identifiers:  # a key is the unit of eviction, too
            geometry = Geometry(geometry.page, geometry.page)
        self.importer, self.geometry = importer, geometry
        self.name = importer.path.name
        self.provenance, self.notes = importer.provenance, importer.notes
        self._progress = progress
        used = self._pages_used()
        if not len(used):
            raise TidegateError(f"{importer.path} touches no memory; nothing can be played")
        self._layout = (
            _Identifiers(used)
            if importer.identifiers
            else _Addresses(used, importer.allocations(), geometry)
        )
        self.objects = self._layout.objects(geometry)
        if self.pages > _MOST_PAGES:
            raise TidegateError(
                f"{importer.path} spans {self.pages} pages; at most {_MOST_PAGES} can be played: "
                "import it with larger pages (--geometry)"
            )

    def identity(self) -> dict[str, Any]:
        digest = hashlib.sha256()
        with self.importer.path.open("rb") as file:
            while chunk := file.read(1 << 20):
                digest.update(chunk)
        return {
            "imported": digest.hexdigest(),
            "format": str(self.importer),
            "geometry": str(self.geometry),
        }

    def launches(self) -> Iterator[Launch]:
        for raw in self.importer.read(self._progress):
            if len(raw.address):
                yield Launch(raw.name, [self._segment(raw)])

    def _unit(self) -> int:
        return 1 if self.importer.identifiers else self.geometry.page

    def _pages_used(self) -> NDArray[np.uint64]:
        """Return the numbers of the pages (or the identifiers) that the file uses, sorted."""
        unit = np.uint64(self._unit())
        used = np.zeros(0, np.uint64)
        waiting: list[NDArray[np.uint64]] = []
        count = 0
        for raw in self.importer.read(self._progress):
            ends = _ends(raw)[: 1 if self.importer.identifiers else 2]
            waiting += [np.unique(part // unit) for part in ends]
            count += sum(map(len, waiting[-len(ends) :]))
            if count > 1 << 22:
                used = np.unique(np.concatenate([used, *waiting]))
                waiting, count = [], 0
        return np.unique(np.concatenate([used, *waiting]))

    def _segment(self, raw: RawLaunch) -> Segment:
        raw = self._split(raw)
        order = np.argsort(raw.block, kind="stable")
        raw = raw.take(order)
        if not self.importer.identifiers:  # a key that is used twice is used twice
            raw = coalesce(raw, self._unit())
        starts = np.flatnonzero(np.diff(raw.block, prepend=raw.block[0] - 1))
        return Segment(
            np.append(starts, len(raw.block)),
            self._layout.pages(raw.address // np.uint64(self._unit())).astype(np.int32),
            (raw.write != 0).astype(np.uint8),
            np.clip(raw.bytes, 1, self.geometry.page).astype(np.int32),
            raw.site,
        )

    def _split(self, raw: RawLaunch) -> RawLaunch:
        """Cut touches that reach beyond their page into one for each page."""
        page = np.uint64(self._unit())
        if page == 1:
            return raw
        first, last = (part // page for part in _ends(raw))
        pieces = (last - first).astype(np.int64) + 1
        if pieces.max() == 1:
            return raw
        of = np.repeat(np.arange(len(pieces)), pieces)
        index = np.arange(len(of)) - np.repeat(np.cumsum(pieces) - pieces, pieces)
        begin = (first[of] + index.astype(np.uint64)) * page
        address = np.maximum(begin, raw.address[of])
        end = np.minimum(begin + page, raw.address[of] + raw.bytes[of].astype(np.uint64))
        return raw.take(of)._replace(address=address, bytes=(end - address).astype(np.int64))


def _ends(raw: RawLaunch) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """Return the first and the last address of each touch."""
    size = np.maximum(raw.bytes, 1)
    if size.max(initial=1) > _MOST_BYTES or raw.bytes.min(initial=0) < 0:
        wrong = raw.bytes.max() if size.max(initial=1) > _MOST_BYTES else raw.bytes.min()
        raise TidegateError(
            f"a touch in {raw.name} must have 0 to {_MOST_BYTES} bytes, got {wrong}; "
            "the file is damaged or of another format"
        )
    return raw.address, raw.address + (size - 1).astype(np.uint64)


class _Identifiers:
    """One object with a page for each identifier, in the order of the identifiers."""

    def __init__(self, used: NDArray[np.uint64]):
        self._used = used

    def objects(self, geometry: Geometry) -> tuple[Object, ...]:
        count = len(self._used)
        return (Object("keys", count * geometry.page, 0, count),)

    def pages(self, unit: NDArray[np.uint64]) -> NDArray[np.int64]:
        return np.searchsorted(self._used, unit)


class _Addresses:
    """Stretches of pages, each an object: those that the file names, then those that are used."""

    def __init__(self, used: NDArray[np.uint64], named: list[Allocation], geometry: Geometry):
        self._page, self._per_region = geometry.page, geometry.pages_per_region
        stretches = _named_stretches(named, geometry) + _used_stretches(
            _outside(used, named, geometry), self._per_region
        )
        stretches.sort(key=lambda s: s[0])
        for (_, end, before), (begin, _, name) in pairwise(stretches):
            if begin < end:
                raise TidegateError(f"objects {before} and {name} overlap; the file is damaged")
        self._packed = used if len(stretches) > _MOST_OBJECTS else None
        self._stretches = stretches
        self._begin = np.array([s[0] for s in stretches], np.uint64)

    def objects(self, geometry: Geometry) -> tuple[Object, ...]:
        if self._packed is not None:
            count = len(self._packed)
            return (Object("scattered", count * self._page, 0, count),)
        found, at = [], 0
        for begin, end, name in self._stretches:
            pages = end - begin
            found.append(Object(name, pages * self._page, at, pages))
            at += -(-pages // self._per_region) * self._per_region
        self._first = np.array([o.first_page for o in found], np.int64)
        return tuple(found)

    def pages(self, unit: NDArray[np.uint64]) -> NDArray[np.int64]:
        if self._packed is not None:
            return np.searchsorted(self._packed, unit)
        owner = np.searchsorted(self._begin, unit, side="right") - 1
        return self._first[owner] + (unit - self._begin[owner]).astype(np.int64)


_Stretch = tuple[int, int, str]  # first page, the page behind the last, name


def _named_stretches(named: list[Allocation], geometry: Geometry) -> list[_Stretch]:
    for a in named:
        if not 0 < a.bytes <= _MOST_BYTES or not 0 <= a.address < 1 << 64:
            raise TidegateError(
                f"object {a.name} must have 1 to {_MOST_BYTES} bytes at an address of 64 bits, "
                f"got {a.bytes} at {a.address}; the file is damaged"
            )
    page = geometry.page
    return [(a.address // page, -(-(a.address + a.bytes) // page), a.name) for a in named]


def _outside(
    used: NDArray[np.uint64], named: list[Allocation], geometry: Geometry
) -> NDArray[np.uint64]:
    """Return the pages that are used and belong to no named object."""
    keep = np.ones(len(used), bool)
    for begin, end, _ in _named_stretches(named, geometry):
        keep[np.searchsorted(used, np.uint64(begin)) : np.searchsorted(used, np.uint64(end))] = (
            False
        )
    return used[keep]


def _used_stretches(used: NDArray[np.uint64], per_region: int) -> list[_Stretch]:
    """Return stretches of pages with no gap of a region or more, from a region boundary on."""
    if not len(used):
        return []
    region = used // np.uint64(per_region)
    cut = np.flatnonzero(np.diff(region) > 1) + 1
    first = np.append(0, cut)
    last = np.append(cut, len(used)) - 1
    begins = region[first] * np.uint64(per_region)
    return [
        (int(b), int(e) + 1, f"{int(b):#x}")
        for b, e in zip(begins.tolist(), used[last].tolist(), strict=True)
    ]
