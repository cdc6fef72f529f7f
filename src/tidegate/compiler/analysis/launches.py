"""The launches in `main`: each region's arguments decoded from the arrays handed to libomptarget."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from tidegate.compiler.analysis.points_to import Origin, Place, PointsTo
from tidegate.compiler.ir.entry_points import (
    BASES_AT,
    ENTRY_POINTS,
    LITERAL,
    MAP_TYPES_AT,
    POINTER_AND_OBJECT,
    POINTERS_AT,
    TARGET_PARAMETER,
    TRIP_COUNT_AT,
)
from tidegate.compiler.ir.module import Body, Instruction, Module, Value, constant_array

POINTER_BYTES = 8
_KERNEL = re.compile(
    r"__omp_offloading_[0-9a-f]+_[0-9a-f]+_(?P<function>.+)_l(?P<line>\d+)(?P<more>_\d+)?$"
)


@dataclass(frozen=True)
class Entry:
    """One mapped entry of a launch, not yet by the names of objects."""

    origins: frozenset[Origin]
    parameter: int | None
    map_type: int
    # (parameter, offset): read by the kernel from a structure it is passed
    through: tuple[int, int] | None = None

    @property
    def is_value(self) -> bool:
        """A scalar handed over as itself: no object, unless it turns out to be a pointer
        (is_device_ptr).
        """
        return bool(self.map_type & LITERAL) and not self.origins


@dataclass(frozen=True)
class DecodedLaunch:
    """One launching call."""

    call: Instruction
    kernel: str
    index: int
    entries: tuple[Entry, ...]
    trip_count: tuple[Value, ...]  # what is stored as the trip count; empty when nothing is


def region_name(kernel: str) -> str:
    """function:line of a kernel's symbol, which otherwise holds numbers of the file system.

    >>> region_name("__omp_offloading_fe00_22a077_main_l7")
    'main:7'
    """
    parts = _KERNEL.search(kernel)
    return f"{_plain(parts['function'])}:{parts['line']}{parts['more'] or ''}" if parts else kernel


def _plain(symbol: str) -> str:
    """A C++ function's name without its parameters, which the line makes unnecessary.

    >>> _plain("_Z4stepPfi"), _plain("_ZN4Grid5sweepEv"), _plain("main")
    ('step', 'Grid::sweep', 'main')
    >>> _plain("_ZL4stepPfi"), _plain("_ZN12_GLOBAL__N_14stepEPfi")  # static, and in a namespace without a name
    ('step', 'step')
    """
    mangled = re.match(r"_Z(?:L|NK?)?(?=\d)", symbol)
    rest, names = (symbol[mangled.end() :], []) if mangled else ("", [symbol])
    while length := re.match(r"\d+", rest):
        end = length.end() + int(length[0])
        names.append(rest[length.end() : end])
        rest = rest[end:] if symbol.startswith("_ZN") else ""
    return "::".join(name for name in names if name != "_GLOBAL__N_1")


def launches(
    body: Body, blocks: Sequence[str], module: Module, points: PointsTo
) -> Iterator[DecodedLaunch]:
    """Every launch in these blocks of a function, block by block."""
    for block in blocks:
        calls = [i for i in body.blocks[block] if i.callee in ENTRY_POINTS]
        for index, call in enumerate(calls):
            kernel = _kernel(call)
            bases, pointers, types, trips = _arrays(call, module, points)
            entries = _through_structures(_entries(pointers, types, points), bases, points)
            yield DecodedLaunch(call, kernel, index, entries, trips)


def _kernel(call: Instruction) -> str:
    region_id: str = call.arguments[ENTRY_POINTS[call.callee].region_id].name
    return region_id.removeprefix(".").removesuffix(".region_id")


def _arrays(
    call: Instruction, module: Module, points: PointsTo
) -> tuple[set[Place], set[Place], tuple[int, ...], tuple[Value, ...]]:
    """The arrays of base pointers and of pointers, the map types and the trip count of a launch."""
    entry = ENTRY_POINTS[call.callee]
    if entry.kernel_args is not None:
        bundle = {origin for origin, _ in points.of(call.arguments[entry.kernel_args])}
        bases = {p for origin in bundle for p in points.at((origin, BASES_AT))}
        pointers = {p for origin in bundle for p in points.at((origin, POINTERS_AT))}
        types = {p[0] for origin in bundle for p in points.at((origin, MAP_TYPES_AT))}
        trips = tuple(v for origin in bundle for v in points.written((origin, TRIP_COUNT_AT)))
    else:
        at = entry.arrays or 0
        bases = points.of(call.arguments[at])
        pointers = points.of(call.arguments[at + 1])
        types = {p[0] for p in points.of(call.arguments[at + 3])}
        trips = ()
    arrays = [constant_array(module, origin.name) for origin in sorted(types, key=lambda o: o.name)]
    return bases, pointers, next((a for a in arrays if a is not None), ()), trips


def _entries(arrays: set[Place], types: tuple[int, ...], points: PointsTo) -> tuple[Entry, ...]:
    """Entries in their order; those with the parameter bit are the kernel's parameters, in the same
    order.
    """
    entries = []
    parameter = 0
    for n, map_type in enumerate(types):
        held = {origin for origin, _ in _held(arrays, n, points)}
        passed = bool(map_type & TARGET_PARAMETER)
        entries.append(Entry(frozenset(held), parameter if passed else None, map_type))
        parameter += passed
    return tuple(entries)


def _held(arrays: set[Place], n: int, points: PointsTo) -> set[Place]:
    """What the n-th element of an array may be."""
    at = n * POINTER_BYTES
    return {
        p
        for holder, begin in arrays
        for p in points.at((holder, None if begin is None else begin + at))
    }


def _through_structures(
    entries: tuple[Entry, ...], bases: set[Place], points: PointsTo
) -> tuple[Entry, ...]:
    """The entries, where those kept in a structure know by which parameter and offset the kernel
    comes to them.
    """
    starts: dict[Origin, tuple[int, int]] = {}
    found = []
    for n, entry in enumerate(entries):
        kept = _held(bases, n, points)
        origin, offset = next(iter(kept)) if len(kept) == 1 else (None, None)
        if origin is not None and offset is not None:
            if entry.parameter is not None:
                starts.setdefault(origin, (entry.parameter, offset))
            elif entry.map_type & POINTER_AND_OBJECT and origin in starts:
                parameter, start = starts[origin]
                entry = replace(entry, through=(parameter, offset - start))
        found.append(entry)
    return tuple(found)
