"""Trace: the touches of a program, in the order in which a GPU receives them.

    Trace ── objects            one allocation each, at a region boundary
          └─ launches           one kernel each, in order
               ├─ copies        that the program asks for before it
               ├─ segments      runs of whole blocks, streamed: a trace need not fit in memory
               │    └─ blocks   short sequences of touches (page, write?, bytes used, reference)
               └─ frees         pages whose data die when it has ended

``reference`` is the number of the access site. Page numbers count from 0 over all objects. An
object begins at a region boundary, as with cudaMallocManaged. A page is *unwritten* while nobody
has written it: from the start where its object holds no host data, and again when its data died.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from tidegate.errors import TidegateError, UnknownName
from tidegate.trace.geometry import Geometry

if TYPE_CHECKING:
    from tidegate.trace.plan import Plan


DTYPES = ("fp64", "fp32", "tf32", "fp16", "bf16", "fp8", "int8")  # whose rates machines may have


class Provenance(StrEnum):
    """Where a trace comes from. Every report repeats it."""

    RECORDED = "recorded"  # while a real program ran
    DERIVED = "derived"  # from the kernel's index functions
    ASSUMED = "assumed"  # a chosen pattern


Ranges = tuple[tuple[int, int], ...]  # (first, end) each; the end is not part of it


@dataclass(frozen=True)
class Object:
    """One allocation.

    ``host``: its bytes that hold host data when the trace begins; None for all of them. Pages
    without any are unwritten.
    ``read_mostly``: the program advises so; far memory keeps a copy until a page is written.

    >>> Object("activations", 1 << 20, first_page=0, pages=16, host=()).host
    ()
    """

    name: str
    bytes: int
    first_page: int
    pages: int
    host: Ranges | None = None
    read_mostly: bool = False

    def __post_init__(self) -> None:
        for first, end in self.host or ():
            if not 0 <= first < end <= self.bytes:
                raise TidegateError(
                    f"host data of object {self.name} must be ranges within its {self.bytes} "
                    f"bytes, got {first} to {end}"
                )


_TYPES = (np.int64, np.int32, np.uint8, np.int32, np.int16)  # of a segment's columns


def as_column(name: str, given: Any, kind: Any) -> NDArray[Any]:
    """Return numbers as an array of this type; refuse what would wrap or be cut off.

    Fractions of bytes are rounded up.

    >>> as_column("bytes", [1.5, 2], np.int32)
    array([2, 2], dtype=int32)
    """
    try:
        found = np.asarray(given)
    except ValueError:
        raise TidegateError(f"{name} must be one row of numbers, got {given!r:.80}") from None
    if found.dtype == kind:
        return found
    if found.dtype.kind not in "iubf" and found.size:
        raise TidegateError(f"{name} must be whole numbers, got {given!r:.80}")
    if found.dtype.kind == "f":
        whole = np.ceil(found) if name == "bytes" else np.floor(found)
        if not (np.isfinite(found).all() and (name == "bytes" or (whole == found).all())):
            raise TidegateError(f"{name} must be whole numbers, got {given!r:.80}")
        found = whole
    bounds = np.iinfo(kind)
    if found.size and not (found.min() >= bounds.min and found.max() <= bounds.max):
        wrong = found.min() if found.min() < bounds.min else found.max()
        raise TidegateError(f"{name} must be from {bounds.min} to {bounds.max}, got {wrong}")
    return found.astype(kind)


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
        for column, kind in zip(fields(self), _TYPES, strict=True):
            made = as_column(column.name, getattr(self, column.name), kind)
            object.__setattr__(self, column.name, np.ascontiguousarray(made))
        starts, n = self.starts, len(self.page)
        lengths = [len(column) for column in (self.page, self.write, self.bytes, self.reference)]
        if len(set(lengths)) > 1:
            raise TidegateError(
                "page, write, bytes and reference must have one entry per touch each, "
                f"got {', '.join(map(str, lengths))}"
            )
        if not len(starts) or starts[0] != 0 or starts[-1] != n or (np.diff(starts) < 0).any():
            raise TidegateError(
                f"starts must rise from 0 to the number of touches, {n}, "
                f"got {np.array2string(starts, threshold=8)}"
            )

    @property
    def blocks(self) -> int:
        return len(self.starts) - 1

    @property
    def touches(self) -> int:
        return len(self.page)


@dataclass(frozen=True)
class Copy:
    """A copy that the program asks for before a launch, such as cudaMemPrefetchAsync.

    ``to``: near or far. Far evicts the regions that lie whole in the range. ``wait``: the launch
    begins when the copy has ended; otherwise it runs beside the launch. A page that is there or on
    its way is not copied again, so a copy with ``wait`` may also wait for an earlier one.
    """

    first_page: int
    pages: int
    to: str = "near"
    wait: bool = False

    def __post_init__(self) -> None:
        if self.to not in ("near", "far"):
            raise TidegateError(f"a copy must go to near or far, got {self.to!r}")


@dataclass(frozen=True)
class Launch:
    """One kernel.

    ``width``: how many thread blocks one block of this launch represents. Thread blocks in step
    touch the same pages at the same time; merged into one, they take ``width`` slots.
    ``intensity``: floating-point operations per byte touched, at the rate the kernel reaches. With
    the bandwidth it gives the usual roofline.
    ``duration``: ns that the launch takes when all it touches is near; 0: as its touches take.
    ``flops``: floating-point operations in all, at the machine's rate for ``dtype``. With the
    bandwidth they give a duration.
    ``place``: where the program launches it; plans refer to places. Several launches of one kernel
    may have different places. Without one, its name.
    ``sharing``: by access site, how many thread blocks use each byte of a touch, on average; 1
    without it. It says what crosses the link when the page is far, because that is not cached.
    ``copies``: asked for before it begins. ``frees``: ranges of pages whose data die when it has
    ended.
    """

    name: str
    segments: Iterable[Segment]
    width: int = 1
    intensity: float = 0.0
    duration: float = 0.0
    flops: float = 0.0
    dtype: str = "fp32"
    place: str = ""
    sharing: tuple[float, ...] = ()
    copies: tuple[Copy, ...] = ()
    frees: Ranges = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "place", self.place or self.name)
        if self.width < 1:
            raise TidegateError(f"width of launch {self.name} must be at least 1, got {self.width}")
        paces = ("intensity", "duration", "flops")
        for pace in paces:
            if not 0 <= getattr(self, pace) < math.inf:
                raise TidegateError(
                    f"{pace} of launch {self.name} must be at least 0, got {getattr(self, pace)}"
                )
        given = [pace for pace in paces if getattr(self, pace)]
        if len(given) > 1:
            raise TidegateError(
                f"launch {self.name} has {' and '.join(given)}; each says how long it computes, "
                "so give one"
            )
        object.__setattr__(self, "sharing", tuple(self.sharing))
        for shared in self.sharing:
            if not 0 < shared < math.inf:
                raise TidegateError(
                    f"sharing of launch {self.name} must be positive numbers, got {shared}"
                )
        if self.dtype not in DTYPES:
            raise UnknownName(f"dtype of launch {self.name}", self.dtype, DTYPES)


class Trace(ABC):
    """A stream of launches over some objects. Every iteration gives the same stream.

    Runs of a class that is not shipped are stored only if it says ``keep = True`` (see
    ``Configurable``).
    """

    keep: ClassVar[bool] = False
    depends: ClassVar[Sequence[str | Path]] = ()
    name: str
    geometry: Geometry
    objects: tuple[Object, ...]
    provenance: Provenance
    notes: tuple[str, ...] = ()  # what was assumed, or is not known
    plan: Plan | None = None  # a compiler's, for placement policies
    # an unwritten page is born near; False: it is transferred like any other, but not unmapped
    first_touch: bool = True

    @abstractmethod
    def launches(self) -> Iterator[Launch]:
        """Yield the launches in order.

        A launch's segments must be read before the next launch.
        """

    @abstractmethod
    def identity(self) -> dict[str, Any]:
        """Return the identity of this trace: equal identities stream equal touches."""

    def code_dependencies(self) -> tuple[object, ...]:
        """Return the objects and classes whose code makes this trace; they also name its runs."""
        return (type(self),)

    @property
    def pages(self) -> int:
        """The bound of page numbers. Some are unused: objects begin at region boundaries."""
        return self.regions * self.geometry.pages_per_region

    @property
    def regions(self) -> int:
        last = self.objects[-1]
        return -(-(last.first_page + last.pages) // self.geometry.pages_per_region)

    @property
    def footprint(self) -> int:
        """Bytes allocated, in whole pages."""
        return sum(o.pages for o in self.objects) * self.geometry.page

    def unwritten(self) -> NDArray[np.bool_]:
        """Return for each page whether it is unwritten at the start."""
        found, page = np.zeros(self.pages, np.bool_), self.geometry.page
        for o in self.objects:
            if o.host is not None:
                found[o.first_page : o.first_page + o.pages] = True
                for first, end in o.host:
                    found[o.first_page + first // page : o.first_page - (-end // page)] = False
        return found


def lay_out(
    sizes: dict[str, int], geometry: Geometry, unwritten: Collection[str] = ()
) -> tuple[Object, ...]:
    """Place objects one after another, each at a region boundary.

    ``unwritten`` ones hold no host data.

    >>> [o.first_page for o in lay_out({"a": 100_000, "b": 5_000_000}, Geometry())]
    [0, 32]
    """
    objects, page = [], 0
    for name, size in sizes.items():
        host = () if name in unwritten else None
        objects.append(Object(name, size, page, geometry.pages(size), host))
        page += geometry.regions(size) * geometry.pages_per_region
    return tuple(objects)


def check_trace(given: Any) -> None:
    """Raise an error unless this is a trace."""
    if not isinstance(given, Trace):
        raise TidegateError(
            f"trace must be a Trace, such as tidegate.RunSpec('matmul').trace(), got {given!r}"
        )


def check_launch(launch: Launch, trace: Trace) -> None:
    """Raise an error if a launch copies or frees pages that the trace does not have."""
    copied = ((c.first_page, c.first_page + c.pages) for c in launch.copies)
    for verb, ranges in (("copies", copied), ("frees", launch.frees)):
        for first, end in ranges:
            if not 0 <= first < end <= trace.pages:
                raise TidegateError(
                    f"launch {launch.name} of trace {trace.name} {verb} pages {first} to "
                    f"{end - 1}, but its pages run from 0 to {trace.pages - 1}"
                )


def check_segment(segment: Segment, trace: Trace) -> None:
    """Raise an error if a page or size is out of range: the compiled loop does not check them."""
    if segment.touches == 0:
        return
    # a negative number is a very large one without its sign
    if np.maximum.reduce(segment.page.view(np.uint32)) >= trace.pages:
        wrong = segment.page[segment.page.view(np.uint32).argmax()]
        raise TidegateError(
            f"trace {trace.name} touches page {wrong}, but its pages run from 0 to "
            f"{trace.pages - 1}"
        )
    if np.maximum.reduce(segment.bytes.view(np.uint32)) > trace.geometry.page:
        least, most = segment.bytes.min(), segment.bytes.max()
        bound = "at least 0" if least < 0 else f"at most a page, {trace.geometry.page}"
        raise TidegateError(
            f"bytes of a touch in trace {trace.name} must be {bound}, "
            f"got {least if least < 0 else most}"
        )
    if np.maximum.reduce(segment.write) > 1:
        raise TidegateError(
            f"write of a touch in trace {trace.name} must be 0 or 1, got {segment.write.max()}"
        )
