"""The launches in `main`, their arguments decoded from the arrays handed to libomptarget."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from tidegate.compiler.analysis.points_to import Location, Origin, PointsTo
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
from tidegate.compiler.ir.layout import POINTER_BYTES
from tidegate.compiler.ir.module import Body, Instruction, Module, Value, constant_array

_KERNEL = re.compile(
    r"__omp_offloading_[0-9a-f]+_[0-9a-f]+_(?P<function>.+)_l(?P<line>\d+)(?P<more>_\d+)?$"
)
_LAUNCH = re.compile(rf"^.*@(?:{'|'.join(ENTRY_POINTS)})\(.*$", re.M)
_REGION_ID = re.compile(r'@"?\.?([^\s",]+)\.region_id')


@dataclass(frozen=True)
class MapEntry:
    """One mapped entry of a launch, by the origins of its memory."""

    origins: frozenset[Origin]
    parameter: int | None
    map_type: int
    # (parameter, offset) of the structure that the kernel reads the pointer from
    through: tuple[int, int] | None = None

    @property
    def is_value(self) -> bool:
        """Whether a scalar is passed by value. A pointer passed so (is_device_ptr) is an object."""
        return bool(self.map_type & LITERAL) and not self.origins


@dataclass(frozen=True)
class DecodedLaunch:
    """One launching call."""

    call: Instruction
    kernel: str
    index: int
    entries: tuple[MapEntry, ...]
    trip_count: tuple[Value, ...]  # values stored as the trip count


def region_name(kernel: str) -> str:
    """Return function:line of a kernel's symbol, which also holds numbers of the file system.

    >>> region_name("__omp_offloading_fe00_22a077_main_l7")
    'main:7'
    """
    parts = _KERNEL.search(kernel)
    return f"{_plain(parts['function'])}:{parts['line']}{parts['more'] or ''}" if parts else kernel


def _plain(symbol: str) -> str:
    """Return a C++ function's name without its parameters, which the line makes unnecessary.

    >>> _plain("_Z4stepPfi"), _plain("_ZN4Grid5sweepEv"), _plain("main")
    ('step', 'Grid::sweep', 'main')
    >>> _plain("_ZL4stepPfi"), _plain("_ZN12_GLOBAL__N_14stepEPfi")  # static; unnamed namespace
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
    """Yield every launch in these blocks of a function, block by block."""
    for block in blocks:
        calls = [i for i in body.blocks[block] if i.callee in ENTRY_POINTS]
        for index, call in enumerate(calls):
            bases, pointers, types, trips = _arrays(call, module, points)
            entries = _through_structures(_entries(pointers, types, points), bases, points)
            yield DecodedLaunch(call, launched_kernel(call), index, entries, trips)


def launched_kernel(call: Instruction) -> str:
    """Return the symbol of the kernel that a launching call names by its region's id."""
    region_id: str = call.arguments[ENTRY_POINTS[call.callee].region_id].name
    return region_id.removeprefix(".").removesuffix(".region_id")


def kernels_launched(text: str) -> list[str]:
    """Return the kernels that a function launches, from its text."""
    return [found for line in _LAUNCH.findall(text) for found in _REGION_ID.findall(line)]


def _arrays(
    call: Instruction, module: Module, points: PointsTo
) -> tuple[set[Location], set[Location], tuple[int, ...], tuple[Value, ...]]:
    """Return a launch's arrays of base pointers and pointers, its map types and its trip count."""
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


def _entries(
    arrays: set[Location], types: tuple[int, ...], points: PointsTo
) -> tuple[MapEntry, ...]:
    """Return the entries in their order. Those with the parameter bit are the kernel's parameters,
    in the same order.
    """
    entries = []
    parameter = 0
    for n, map_type in enumerate(types):
        held = {origin for origin, _ in _held(arrays, n, points)}
        passed = bool(map_type & TARGET_PARAMETER)
        entries.append(MapEntry(frozenset(held), parameter if passed else None, map_type))
        parameter += passed
    return tuple(entries)


def _held(arrays: set[Location], n: int, points: PointsTo) -> set[Location]:
    """Return where the n-th element of an array may point."""
    places = {(origin, at if at is None else at + n * POINTER_BYTES) for origin, at in arrays}
    return {p for place in places for p in points.at(place)}


def _through_structures(
    entries: tuple[MapEntry, ...], bases: set[Location], points: PointsTo
) -> tuple[MapEntry, ...]:
    """Return the entries; those kept in a structure get the parameter and offset by which the
    kernel reaches them.
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
