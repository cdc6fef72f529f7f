"""Trace: what is touched, in the order in which a GPU is given it.

    Trace ── objects            one allocation each, at a region boundary
          └─ launches           one kernel each, in order
               └─ segments      runs of whole blocks, streamed, so that a trace need never be in memory as a whole
                    └─ blocks   each a short sequence of touches (page, write?, bytes used, reference)

Page numbers count from 0 over all objects; an object begins at a region boundary, as
cudaMallocManaged gives it.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tidegate.errors import TidegateError
from tidegate.trace.geometry import Geometry

if TYPE_CHECKING:
    from tidegate.trace.plan import Plan


class Provenance(StrEnum):
    """How a trace came about. An honest report says which."""

    RECORDED = "recorded"  # seen while a real program ran
    DERIVED = "derived"  # from the kernel's index functions
    ASSUMED = "assumed"  # made up to have a shape


@dataclass(frozen=True)
class Object:
    """One allocation."""

    name: str
    bytes: int
    first_page: int
    pages: int


@dataclass(frozen=True)
class Segment:
    """Some whole blocks of one launch, in columns.

    Block ``b`` is touches ``starts[b]`` to ``starts[b + 1]``.
    """

    starts: NDArray[np.int64]
    page: NDArray[np.int32]
    write: NDArray[np.uint8]
    bytes: NDArray[np.int32]
    reference: NDArray[np.int16]

    def __post_init__(self) -> None:
        for name, kind in (
            ("starts", np.int64),
            ("page", np.int32),
            ("write", np.uint8),
            ("bytes", np.int32),
            ("reference", np.int16),
        ):
            object.__setattr__(self, name, np.ascontiguousarray(getattr(self, name), dtype=kind))
        starts, n = self.starts, len(self.page)
        if any(len(column) != n for column in (self.write, self.bytes, self.reference)):
            raise TidegateError(
                "a segment's columns differ in length; expected one entry per touch in each"
            )
        if not len(starts) or starts[0] != 0 or starts[-1] != n or (np.diff(starts) < 0).any():
            raise TidegateError(
                f"a segment's starts do not cover its {n} touches; expected them to rise from 0 to {n}"
            )

    @property
    def blocks(self) -> int:
        return len(self.starts) - 1

    @property
    def touches(self) -> int:
        return len(self.page)


@dataclass(frozen=True)
class Launch:
    """One kernel.

    ``width``: how many thread blocks one block of this launch stands for. Thread blocks that walk
    in step touch the same pages at the same time; merged into one, they take ``width`` slots.
    ``intensity``: floating-point operations per byte touched, at the rate the kernel reaches; with
    the bandwidth it makes the usual roofline.
    """

    name: str
    segments: Iterable[Segment]
    width: int = 1
    intensity: float = 0.0

    def __post_init__(self) -> None:
        if self.width < 1:
            raise TidegateError(
                f"launch {self.name} has a width of {self.width}; expected at least 1"
            )
        if not 0 <= self.intensity < math.inf:
            raise TidegateError(
                f"launch {self.name} has an intensity of {self.intensity}; expected a number of at least 0"
            )


class Trace(ABC):
    """A stream of launches over some objects. Iterating again gives the same stream again."""

    name: str
    geometry: Geometry
    objects: tuple[Object, ...]
    provenance: Provenance
    plan: Plan | None = None  # what a compiler says of the program, for placement policies
    # objects that the CPU has not touched, so that it has no pages of them mapped
    fresh: frozenset[str] = frozenset()

    @abstractmethod
    def launches(self) -> Iterator[Launch]:
        """The launches, in order.

        A launch's segments must be used up before the next launch is asked for.
        """

    @abstractmethod
    def identity(self) -> dict[str, Any]:
        """What names this trace: equal identities stream equal touches."""

    @property
    def pages(self) -> int:
        """Page numbers run from 0 to here (objects begin at region boundaries, so some numbers are
        unused).
        """
        ppr = self.geometry.pages_per_region
        return self.regions * ppr

    @property
    def regions(self) -> int:
        last = self.objects[-1]
        return -(-(last.first_page + last.pages) // self.geometry.pages_per_region)

    @property
    def footprint(self) -> int:
        """Bytes allocated, in whole pages."""
        return sum(o.pages for o in self.objects) * self.geometry.page


def lay_out(sizes: dict[str, int], geometry: Geometry) -> tuple[Object, ...]:
    """Place objects one after another, each at a region boundary.

    >>> [o.first_page for o in lay_out({"a": 100_000, "b": 5_000_000}, Geometry())]
    [0, 32]
    """
    objects, page = [], 0
    for name, size in sizes.items():
        objects.append(Object(name, size, page, geometry.pages(size)))
        page += geometry.regions(size) * geometry.pages_per_region
    return tuple(objects)


def check_trace(given: Any) -> None:
    """Refuse what is no trace, such as a workload's name."""
    if not isinstance(given, Trace):
        raise TidegateError(
            f"{given!r} is no trace; expected one such as tidegate.RunSpec('matmul').trace()"
        )


def check_segment(segment: Segment, trace: Trace) -> None:
    """The compiled loop trusts its columns, so they are looked at once here."""
    if segment.touches == 0:
        return
    high = int(segment.page.view(np.uint32).max())  # a negative page is a very large one
    if high >= trace.pages:
        raise TidegateError(
            f"trace {trace.name} touches page {segment.page[segment.page.view(np.uint32).argmax()]}, "
            f"but its pages run from 0 to {trace.pages - 1}"
        )
    if segment.bytes.min() < 0:
        raise TidegateError(
            f"trace {trace.name} has a touch of {segment.bytes.min()} bytes; expected at least 0"
        )
