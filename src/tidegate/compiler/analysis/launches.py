"""The launches in `main`, their arguments decoded from the arrays handed to libomptarget or to
CUDA.

A region launched with `nowait` is put into a task by clang, which the runtime calls later; the body
of the task is called where the task is made (`run_tasks_at_once`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from tidegate.compiler.analysis.points_to import Location, Origin, PointsTo
from tidegate.compiler.ir.calls import (
    ALLOCATES_TASK,
    BASES_AT,
    CONFIGURES,
    ENTRY_POINTS,
    LITERAL,
    MAP_TYPES_AT,
    POINTER_AND_OBJECT,
    POINTERS_AT,
    TAKES_CONFIGURATION,
    TARGET_PARAMETER,
    TRIP_COUNT_AT,
)
from tidegate.compiler.ir.clang import STUB, kernel_of_stub
from tidegate.compiler.ir.layout import POINTER_BYTES
from tidegate.compiler.ir.libraries import LIBRARY_CALLS
from tidegate.compiler.ir.module import (
    Body,
    Instruction,
    Module,
    Value,
    constant_array,
    is_null,
    parse,
)
from tidegate.compiler.model import FROM, TO, Note

_KERNEL = re.compile(
    r"__omp_offloading_[0-9a-f]+_[0-9a-f]+_(?P<function>.+)_l(?P<line>\d+)(?P<more>_\d+)?$"
)
_DATA_POINTERS = 4  # the argument of __tgt_target_data_* that is the array of pointers
_LAUNCH = re.compile(rf"^.*@(?:{'|'.join(ENTRY_POINTS)})\(.*$", re.M)
_STUB_CALL = re.compile(r'(?:call|invoke) [^\n]*?@"?([\w.$]*__device_stub__[\w.$]*)"?\(')
_REGION_ID = re.compile(r'@"?\.?([^\s",]+)\.region_id')


@dataclass(frozen=True)
class MapEntry:
    """One mapped entry of a launch, by the origins of its memory."""

    origins: frozenset[Origin]
    parameter: int | None
    map_type: int
    # (parameter or global, offset): where the kernel reads the pointer; (global, ""): itself
    through: tuple[int | str, int | str] | None = None
    values: tuple[Value, ...] = ()  # stored as the entry

    @property
    def is_value(self) -> bool:
        """Whether a scalar is passed by value, or no object (a null pointer). A pointer passed so
        (is_device_ptr) is an object.
        """
        null = bool(self.values) and all(map(is_null, self.values))
        return (null or bool(self.map_type & LITERAL)) and not self.origins


@dataclass(frozen=True)
class DecodedLaunch:
    """One launching call."""

    call: Instruction
    kernel: str
    index: int
    entries: tuple[MapEntry, ...]
    trip_count: tuple[Value, ...]  # values stored as the trip count
    teams: Value | None = None
    threads: Value | None = None  # of each team, at most
    grid: tuple[Value, ...] = ()  # CUDA: blocks in x and y, in z, threads in x and y, in z
    of_cuda: bool = False  # a kernel of CUDA or HIP, or a call of one of their libraries
    one_of: int = 1  # how many kernels a pointer may be that is called here

    @property
    def parameters(self) -> int:
        """The number of the kernel's parameters, values and pointers."""
        return sum(entry.parameter is not None for entry in self.entries)


def region_name(kernel: str) -> str:
    """Return function:line of a kernel's symbol, which also holds numbers of the file system; of
    one of CUDA its function.

    >>> region_name("__omp_offloading_fe00_22a077_main_l7"), region_name("_Z3addPfi")
    ('main:7', 'add')
    """
    parts = _KERNEL.search(kernel)
    if parts is None:
        return plain_name(kernel)
    return f"{plain_name(parts['function'])}:{parts['line']}{parts['more'] or ''}"


def plain_name(symbol: str) -> str:
    """Return a C++ function's name without its parameters, which the line makes unnecessary.

    >>> plain_name("_Z4stepPfi"), plain_name("_ZN4Grid5sweepEv"), plain_name("main")
    ('step', 'Grid::sweep', 'main')
    >>> plain_name("_ZL4stepPfi")  # static
    'step'
    >>> plain_name("_ZN12_GLOBAL__N_14stepEPfi")  # of an unnamed namespace
    'step'
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
        found = [
            launch for i in body.blocks[block] for launch in _launches_of(i, body, module, points)
        ]
        for index, launch in enumerate(found):
            yield replace(launch, index=index)


def _launches_of(
    call: Instruction, body: Body, module: Module, points: PointsTo
) -> Iterator[DecodedLaunch]:
    """Yield what an instruction launches."""
    if call.callee in LIBRARY_CALLS:
        yield _library_launch(call, points)
    elif call.opcode in ("call", "invoke") and not call.callee:
        yield from _pointed_launches(call, body, points)
    elif call.callee in ENTRY_POINTS and ENTRY_POINTS[call.callee].parameters is not None:
        yield cuda_launch(call, body, points)
    elif call.callee in ENTRY_POINTS:
        bases, pointers, types, trips = _arrays(call, module, points)
        entries = _through_structures(_entries(pointers, types, points), bases, points)
        at = ENTRY_POINTS[call.callee].teams
        grid = (None, None) if at is None else (call.arguments[at], call.arguments[at + 1])
        yield DecodedLaunch(call, launched_kernel(call), 0, entries, trips, *grid)


def _pointed_launches(call: Instruction, body: Body, points: PointsTo) -> Iterator[DecodedLaunch]:
    """Yield the launches of the kernels that a pointer may be. The call's arguments are theirs."""
    called = {o.name for o, _ in points.targets(call.operands[-1]) if o.kind == "function"}
    stubs = sorted(name for name in called if STUB in name)
    grid = configuration(call, body) if stubs else ()
    for stub in stubs:
        entries = tuple(_operand(n, a, points) for n, a in enumerate(call.arguments))
        kernel = kernel_of_stub(stub)
        yield DecodedLaunch(
            call, kernel, 0, entries, (), grid=grid, of_cuda=True, one_of=len(stubs)
        )


def _library_launch(call: Instruction, points: PointsTo) -> DecodedLaunch:
    known = LIBRARY_CALLS[call.callee]
    entries = tuple(
        replace(
            _operand(n, call.arguments[at], points),
            map_type=TARGET_PARAMETER | TO * (at in known.reads) | FROM * (at in known.writes),
        )
        for n, at in enumerate(known.operands)
    )
    return DecodedLaunch(call, call.callee.removesuffix("_v2"), 0, entries, (), of_cuda=True)


def _operand(n: int, value: Value, points: PointsTo) -> MapEntry:
    """Return the n-th parameter, of which the value itself is known."""
    held = frozenset(o for o, _ in points.targets(value) if o.kind != "function")
    kind = TARGET_PARAMETER if held else TARGET_PARAMETER | LITERAL
    return MapEntry(held, n, kind, values=(value,))


def launched_kernel(call: Instruction) -> str:
    """Return the symbol of the kernel that a launching call names by its region's id."""
    if call.callee in LIBRARY_CALLS:
        return call.callee
    region_id: str = call.arguments[ENTRY_POINTS[call.callee].region_id].name
    if ENTRY_POINTS[call.callee].parameters is not None:
        return kernel_of_stub(region_id)
    return region_id.removeprefix(".").removesuffix(".region_id")


def kernels_launched(text: str) -> list[str]:
    """Return the kernels that a function launches, from its text; CUDA's by their stubs."""
    named = [found for line in _LAUNCH.findall(text) for found in _REGION_ID.findall(line)]
    return named + [kernel_of_stub(stub) for stub in _STUB_CALL.findall(text)]


def cuda_launch(call: Instruction, body: Body, points: PointsTo) -> DecodedLaunch:
    """Return a launch of CUDA or HIP. Each parameter lies in memory of its own, and an array has
    their addresses.
    """
    at = ENTRY_POINTS[call.callee].parameters or 0
    arrays = {origin for origin, _ in points.targets(call.arguments[at])}
    offsets = [n for origin in arrays for n in points.offsets_held(origin)]
    entries: list[MapEntry] = []
    for n in range(max(offsets, default=-POINTER_BYTES) // POINTER_BYTES + 1):
        places = {p for o in arrays for p in points.at((o, n * POINTER_BYTES))}
        entries += _cuda_entries(n, places, points)
    grid = configuration(call, body)
    kernel = launched_kernel(call)
    return DecodedLaunch(call, kernel, 0, tuple(entries), (), grid=grid, of_cuda=True)


def _cuda_entries(n: int, places: set[Location], points: PointsTo) -> Iterator[MapEntry]:
    """Yield the n-th parameter and, if it is a structure, the pointers in it."""
    held = {o for place in places for o, _ in points.at(place) if o.kind != "function"}
    values = tuple(v for place in places for v in points.written(place))
    kind = TARGET_PARAMETER if held else TARGET_PARAMETER | LITERAL
    yield MapEntry(frozenset(held), n, kind, values=values)
    for memory, start in places:
        for offset in points.offsets_held(memory):
            inside = {origin for origin, _ in points.at((memory, offset))}
            if start is not None and inside:
                yield MapEntry(frozenset(inside), None, 0, (n, offset - start))


def plain_or_structure(launch: DecodedLaunch, structures: set[int]) -> DecodedLaunch:
    """Return a launch of CUDA in which a parameter is either a pointer or one of the `structures`,
    whose pointers count one by one.
    """
    if not launch.of_cuda:
        return launch
    entries = []
    for entry in launch.entries:
        if entry.through is not None and entry.through[0] not in structures:
            continue
        if entry.parameter in structures:
            entry = MapEntry(frozenset(), entry.parameter, TARGET_PARAMETER | LITERAL)
        entries.append(entry)
    return replace(launch, entries=tuple(entries))


def configuration(call: Instruction, body: Body) -> tuple[Value, ...]:
    """Return (grid x and y, grid z, block x and y, block z) of a launch; x and y are the halves of
    a 64-bit word. A stub takes them from the call that leads to it, others are given them.
    """
    if call.callee and not any(i.callee in TAKES_CONFIGURATION for i in body.blocks[call.block]):
        return tuple(call.arguments[1:5])
    before: dict[str, list[str]] = {}
    for name, instructions in body.blocks.items():
        for after in instructions[-1].successors() if instructions else ():
            before.setdefault(after, []).append(name)
    pending, seen = [call.block], {call.block}
    while pending:
        block = pending.pop(0)
        found = [i for i in body.blocks[block] if i.callee in CONFIGURES]
        if found:
            return tuple(found[-1].arguments[:4])
        new = [b for b in before.get(block, ()) if b not in seen]
        seen.update(new)
        pending += new
    return ()


def _arrays(
    call: Instruction, module: Module, points: PointsTo
) -> tuple[set[Location], set[Location], tuple[int, ...], tuple[Value, ...]]:
    """Return a launch's arrays of base pointers and pointers, its map types and its trip count."""
    entry = ENTRY_POINTS[call.callee]
    if entry.kernel_args is not None:
        bundle = {origin for origin, _ in points.targets(call.arguments[entry.kernel_args])}
        bases = {p for origin in bundle for p in points.at((origin, BASES_AT))}
        pointers = {p for origin in bundle for p in points.at((origin, POINTERS_AT))}
        types = {p[0] for origin in bundle for p in points.at((origin, MAP_TYPES_AT))}
        trips = tuple(v for origin in bundle for v in points.written((origin, TRIP_COUNT_AT)))
    else:
        at = entry.arrays or 0
        bases = points.targets(call.arguments[at])
        pointers = points.targets(call.arguments[at + 1])
        types = {p[0] for p in points.targets(call.arguments[at + 3])}
        trips = ()
    arrays = [constant_array(module, origin.name) for origin in sorted(types, key=lambda o: o.name)]
    return bases, pointers, next((a for a in arrays if a is not None), ()), trips


def mapped(call: Instruction, module: Module, points: PointsTo) -> dict[Origin, int]:
    """Return the map types of the objects that a call of libomptarget maps or updates."""
    arrays = points.targets(call.arguments[_DATA_POINTERS])
    types = points.targets(call.arguments[_DATA_POINTERS + 2])
    found = [constant_array(module, o.name) for o, _ in sorted(types, key=lambda p: p[0].name)]
    entries = _entries(arrays, next((a for a in found if a is not None), ()), points)
    maps: dict[Origin, int] = {}
    for entry in entries:
        for origin in entry.origins:
            maps[origin] = maps.get(origin, 0) | entry.map_type
    return maps


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
        places = [(o, at + n * POINTER_BYTES) for o, at in arrays if at is not None]
        values = tuple(v for place in places for v in points.written(place))
        number = parameter if passed else None
        entries.append(MapEntry(frozenset(held), number, map_type, values=values))
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


_FUNCTION = re.compile(r"^define .*?^}", re.M | re.S)
_MADE = re.compile(
    r"%([\w.$-]+) = [^\n]*@__kmpc_omp_(?:target_)?task_alloc\([^\n]*ptr[^,\n]* @([\w.$]+)[,)]"
)
_GIVEN = re.compile(
    r"call i32 @__kmpc_omp_task(?:_with_deps)?"
    r"\(ptr [^,]+, i32 ([^,]+), ptr (?:[a-z]+ )*%([\w.$-]+)[^\n]*?\)"
)
_REGION = re.compile(r"@\.?(__omp_offloading_\w+?)\.region_id")


def run_tasks_at_once(module: Module, name: str) -> tuple[Module, list[Note]]:
    """Return the module with every task's body called where the task is passed to the runtime, and
    a note for each.
    """
    text = str(module)
    if not any(alloc in text for alloc in ALLOCATES_TASK):
        return module, []
    notes: list[Note] = []

    def rewritten(function: re.Match[str]) -> str:
        bodies = dict(_MADE.findall(function[0]))

        def call(given: re.Match[str]) -> str:
            if given[2] not in bodies:
                return given[0]
            body = bodies[given[2]]
            why = "is launched in a task (nowait); it is taken to run where the task is made"
            notes.append(Note(_region(body, text), why))
            return f"call i32 @{body}(i32 {given[1]}, ptr %{given[2]})"

        return _GIVEN.sub(call, function[0])

    return parse(_FUNCTION.sub(rewritten, text), name), notes


def _region(function: str, text: str) -> str:
    """Return the region that a task's body launches, or the body's own name if it shows none."""
    bodies = (found[0] for found in _FUNCTION.finditer(text))
    body = next((b for b in bodies if f"@{function}(" in b.split("\n", 1)[0]), "")
    region = _REGION.search(body)
    return region_name(region[1]) if region else function
