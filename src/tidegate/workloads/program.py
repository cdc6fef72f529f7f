"""Workload: a named program that makes a trace for any geometry and size.

    @workload("stream")
    class Stream(Derived):
        \"\"\"One pass over one array.\"\"\"

        bytes = footprint("1GiB", "size of the array")

        def sizes(self):
            return {"a": self.bytes}

        def launches(self, space):
            a = space["a"]
            pages = a.first_page + np.arange(a.pages)
            yield Launch("pass", [blocks_of(16, pages, bytes=space.geometry.page)])

A workload gives the sizes of its objects. A Program (which is a Trace) lays them out for a
geometry; the workload then streams its launches over the pages of its objects.
"""

from __future__ import annotations

import dataclasses
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from math import isqrt
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tidegate import units
from tidegate.errors import TidegateError
from tidegate.options import Configurable, Option, format_spec
from tidegate.registry import Registry, error_line, place_of
from tidegate.trace.geometry import Geometry
from tidegate.trace.trace import Launch, Object, Provenance, Segment, Trace, lay_out

if TYPE_CHECKING:
    from tidegate.trace.plan import Plan

Launches = Iterator[Launch]

_MOST_PAGES = 2**31 - 1  # page numbers are 32 bits wide
_MOST_BYTES = 1 << 60
_MOST_TOUCHES = 10**14  # a month of simulation
_REPEATS = ("passes", "iterations")  # options by which a workload does all of its work again


class Workload(Configurable, ABC):
    """Base of all workloads: options are class attributes, touches come from ``launches``.

    By convention every workload has an option ``bytes``, its whole footprint.
    """

    provenance: Provenance = Provenance.ASSUMED
    unwritten: frozenset[str] = frozenset()  # objects without host data: the GPU writes them first
    first_touch: Any = True  # see Trace; an option where a paper's runs need the other reading

    @abstractmethod
    def sizes(self) -> dict[str, int]:
        """Return the objects and their sizes in bytes, in the order of allocation."""

    @abstractmethod
    def launches(self, space: Space) -> Launches:
        """Yield the launches, over the pages of the objects in ``space``."""

    def about_touches(self, pages: int) -> int | None:
        """Return about how many touches the launches have over ``pages``; None if unknown.

        Without better knowledge, each of the declared passes or iterations touches every page.
        """
        repeated = [getattr(self, name) for name in _REPEATS if name in self.options()]
        return pages * math.prod(repeated) if repeated else None

    def release(self) -> None:
        """Free what is cached between two streams of the launches, such as a graph."""

    def plan(self) -> Plan | None:
        """Return the compiler's plan of the program, or None if there is none."""
        return None

    def trace(self, geometry: Geometry | None = None) -> Program:
        """Return this workload laid out for a geometry: a Trace."""
        return Program(self, geometry or Geometry())


class Derived(Workload):
    """Base of workloads whose touches follow from a kernel's index functions."""

    provenance = Provenance.DERIVED


class SquareMatrices(Derived):
    """Base of workloads over matrices of n × n floats, all of one size."""

    bytes: Option[int]
    arrays: tuple[str, ...] = ()

    @property
    def n(self) -> int:
        """Rows and columns of a matrix."""
        return isqrt(self.bytes // (4 * len(self.arrays)))

    def sizes(self) -> dict[str, int]:
        return dict.fromkeys(self.arrays, 4 * self.n**2)


def footprint(default: int | str, help: str) -> Option[int]:
    """Return the option ``bytes``: the size of all objects together."""
    return Option(units.size(default), help, parse=units.size, least=1)


def efficiency_option(default: float) -> Option[float]:
    """Return the option ``efficiency``. All its defaults are guesses, of low confidence."""
    help = "share of peak FP32 that the kernels reach (a guess)"
    return Option(default, help, parse=units.fraction, least=0.001, most=1)


def largest_fit(size: int, sizes: Callable[[int], Mapping[str, int]], least: int = 1) -> int:
    """Return the largest number, at least ``least``, whose objects take at most ``size`` bytes."""
    low, high = least, least + 1
    while sum(sizes(high).values()) <= size:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        if sum(sizes(middle).values()) <= size:
            low = middle
        else:
            high = middle
    return low


class Space(Mapping[str, Object]):
    """The objects by name, and the geometry they were laid out for."""

    def __init__(self, geometry: Geometry, objects: tuple[Object, ...]):
        self.geometry = geometry
        self._objects = {o.name: o for o in objects}

    def __getitem__(self, name: str) -> Object:
        return self._objects[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._objects)

    def __len__(self) -> int:
        return len(self._objects)


def bytes_within(owner: Object, index: NDArray[Any], geometry: Geometry) -> NDArray[Any]:
    """Return how many bytes of ``owner`` lie in each of its pages ``index``, which count from 0.

    >>> bytes_within(Object("a", 100_000, first_page=0, pages=2), np.array([0, 1]), Geometry())
    array([65536, 34464])
    """
    return np.minimum(geometry.page, owner.bytes - index.astype(np.int64) * geometry.page)


_END = object()
_EXPECTED = {
    Launch: "launches, such as Launch('pass', [blocks_of(16, pages, bytes=64)])",
    Segment: "lists of segments, such as [blocks_of(16, pages, bytes=64)]",
}


def _checked_sizes(source: Workload, name: str) -> dict[str, int]:
    """Return a workload's sizes, fractions of bytes rounded up; refuse what is no size."""
    try:
        sizes = source.sizes()
    except TidegateError:
        raise
    except Exception as error:
        said = error_line(error, type(source))
        raise TidegateError(f"workload {name} raised in sizes(): {said}") from error
    place = place_of(type(source).sizes)
    if not isinstance(sizes, Mapping):
        raise TidegateError(
            f"workload {name}: sizes() must return a dictionary such as "
            f"{{'array': 1 << 20}}, got {sizes!r:.80}{place}"
        )
    made = {}
    for object_name, size in sizes.items():
        numeric = isinstance(size, int | float | np.integer | np.floating)
        if isinstance(size, bool) or not numeric or not 0 <= size <= _MOST_BYTES:
            raise TidegateError(
                f"workload {name}: sizes() must give bytes from 1 to {_MOST_BYTES}, "
                f"got {size!r:.80} for {object_name}{place}"
            )
        made[str(object_name)] = math.ceil(size)
    if not made or min(made.values()) < 1:
        raise TidegateError(f"workload {name} has an empty object; give it more bytes")
    return made


class Program(Trace):
    """A workload laid out for a geometry: a Trace that is made while it is read."""

    def __init__(self, source: Workload, geometry: Geometry):
        self.workload, self.geometry = source, geometry
        self.name = format_spec(source)
        self.provenance = source.provenance
        self.plan, self.first_touch = source.plan(), source.first_touch
        sizes = _checked_sizes(source, self.name)
        self.objects = lay_out(sizes, geometry, source.unwritten)
        if self.pages > _MOST_PAGES:
            raise TidegateError(
                f"workload {self.name} must have at most {_MOST_PAGES:,} pages, got "
                f"{self.pages:,}; take fewer bytes or larger pages (--geometry)"
            )

        self.about_touches = source.about_touches(sum(o.pages for o in self.objects))
        if self.about_touches is not None and self.about_touches > _MOST_TOUCHES:
            raise TidegateError(
                f"workload {self.name} would have about {units.show_count(self.about_touches)} "
                f"touches, more than {units.show_count(_MOST_TOUCHES)}; give it fewer passes, "
                "iterations or bytes, or larger pages (--geometry)"
            )

    def launches(self) -> Launches:
        with self._named():
            made = self.workload.launches(Space(self.geometry, self.objects))
        for launch in self._each(made, Launch, made):
            yield dataclasses.replace(launch, segments=self._each(launch.segments, Segment, made))

    def _each(self, items: Any, kind: type, made: Any) -> Iterator[Any]:
        """Yield the launches or segments, after a look at their type."""
        try:
            stream = iter(items)
        except TypeError:
            raise self._wrong(f"must give {_EXPECTED[kind]}", items, made) from None
        while True:
            with self._named():
                item = next(stream, _END)
            if item is _END:
                return
            if not isinstance(item, kind):
                raise self._wrong(f"must give {_EXPECTED[kind]}", item, made)
            yield item

    def _wrong(self, expected: str, given: Any, made: Any) -> TidegateError:
        """Return the error for a launch or segment that is none; ``made``: what launches gave."""
        frame = getattr(made, "gi_frame", None)  # of a generator: the line that it stopped at
        place = place_of(type(self.workload).launches, frame and frame.f_lineno)
        return TidegateError(
            f"workload {self.name}: launches() {expected}, got {given!r:.80}{place}"
        )

    @contextmanager
    def _named(self) -> Iterator[None]:
        """Put the workload's name before what it raises."""
        try:
            yield
        except Exception as error:
            said = error_line(error, type(self.workload))
            raise TidegateError(f"workload {self.name} raised while it was read: {said}") from error

    def code_dependencies(self) -> tuple[object, ...]:
        return (self.workload,)

    def identity(self) -> dict[str, Any]:
        named = {
            "workload": self.workload.name or type(self.workload).__name__,
            "settings": self.workload.settings(),
            "geometry": [self.geometry.page, self.geometry.region],
        }
        return named if self.plan is None else {**named, "plan": self.plan.digest}


workloads: Registry[Workload] = Registry(
    "workload", lambda: Workload, "tidegate.workloads", "tidegate.papers.*.applications"
)
workload: Registry[Workload] = workloads  # as a decorator: @workload("name")
# what names a program: its name with options, a file, a class, an object, or a trace
WorkloadLike: TypeAlias = str | Path | type[Workload] | Workload | Trace
