"""Workload: a program's touches, derived from its index functions, at any size.

    @workload("stream")
    class Stream(Workload):
        \"\"\"One pass over one array.\"\"\"

        provenance = Provenance.DERIVED
        bytes = Option(units.size("1GiB"), "size of the array", parse=units.size)

        def sizes(self):
            return {"a": self.bytes}

        def launches(self, space):
            a = space["a"]
            yield Launch("pass", [blocks_of(16, a.first_page + np.arange(a.pages), bytes=space.geometry.page)])

A workload says how large its objects are; they are laid out for a geometry (that makes a Program,
which is a Trace); then it streams its launches over the pages its objects were given.
"""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from tidegate.errors import TidegateError
from tidegate.options import Configurable
from tidegate.registry import Registry, source_digest
from tidegate.trace.geometry import Geometry
from tidegate.trace.trace import Launch, Object, Provenance, Segment, Trace, lay_out

if TYPE_CHECKING:
    from tidegate.trace.plan import Plan

_MOST_PAGES = 2**31 - 1  # page numbers are 32 bits wide


class Workload(Configurable, ABC):
    """Base of all workloads. Options are class attributes (``Option``); touches come from
    ``launches``.

    By convention every workload has an option ``bytes`` that sets its whole footprint.
    """

    provenance: Provenance = Provenance.ASSUMED
    fresh: frozenset[str] = frozenset()  # objects that the CPU does not touch before the GPU does

    @abstractmethod
    def sizes(self) -> dict[str, int]:
        """The objects and their sizes in bytes, in the order in which they are allocated."""

    @abstractmethod
    def launches(self, space: Space) -> Iterator[Launch]:
        """The launches, over the pages the objects were given."""

    def release(self) -> None:
        """Let go of what was made for the launches and is kept for the next time, such as a graph."""

    def plan(self) -> Plan | None:
        """What a compiler says of the program this workload stands for; None if nobody compiled it."""
        return None

    def trace(self, geometry: Geometry | None = None) -> Program:
        """This workload laid out for a geometry: a Trace."""
        return Program(self, geometry or Geometry())


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


class Program(Trace):
    """A workload laid out for a geometry: a Trace that is made while it is read."""

    def __init__(self, source: Workload, geometry: Geometry):
        self.workload, self.geometry = source, geometry
        self.name = source.name or type(source).__name__
        self.provenance = source.provenance
        self.plan, self.fresh = source.plan(), source.fresh
        sizes = source.sizes()
        if not sizes or min(sizes.values()) < 1:
            raise TidegateError(f"workload {self.name} is empty; give it more bytes")
        self.objects = lay_out(sizes, geometry)
        if self.pages > _MOST_PAGES:
            raise TidegateError(
                f"workload {self.name} has {self.pages:,} pages, at most {_MOST_PAGES:,} are possible; take fewer bytes or "
                f"larger pages (--geometry)"
            )

    def launches(self) -> Iterator[Launch]:
        with self._named():
            stream = iter(self.workload.launches(Space(self.geometry, self.objects)))
        while True:
            with self._named():
                launch = next(stream, None)
            if launch is None:
                return
            yield dataclasses.replace(launch, segments=self._segments(launch))

    def _segments(self, launch: Launch) -> Iterator[Segment]:
        segments = iter(launch.segments)
        while True:
            with self._named():
                segment = next(segments, None)
            if segment is None:
                return
            yield segment

    @contextmanager
    def _named(self) -> Iterator[None]:
        """What a workload raises is said with its name."""
        try:
            yield
        except Exception as error:
            what = (
                str(error)
                if isinstance(error, TidegateError)
                else f"{type(error).__name__}: {error}"
            )
            raise TidegateError(f"workload {self.name} raised while it was read: {what}") from error

    def identity(self) -> dict[str, Any]:
        named = {
            "workload": self.name,
            "settings": self.workload.settings(),
            "source": source_digest(type(self.workload)),
            "geometry": [self.geometry.page, self.geometry.region],
        }
        return named if self.plan is None else {**named, "plan": self.plan.digest}


workloads: Registry[Workload] = Registry("workload", lambda: Workload, "tidegate.workloads")
workload: Registry[Workload] = workloads  # as a decorator: @workload("name")
