"""From IR to a ProgramModel: read, inline, trace pointers, decode launches, name what was found."""

from __future__ import annotations

import re
from collections.abc import Collection, Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tidegate.compiler.analysis.allocated import allocated_bytes, turns_to_keep
from tidegate.compiler.analysis.allocations import (
    Precedence,
    alternatives,
    one_at_a_time,
    with_alternatives,
)
from tidegate.compiler.analysis.copies import differing_copies
from tidegate.compiler.analysis.debug_names import DebugNames
from tidegate.compiler.analysis.device_globals import with_globals
from tidegate.compiler.analysis.flow import Flow, branch_probabilities
from tidegate.compiler.analysis.host import ASSUMED_TURNS, endless, host_flow
from tidegate.compiler.analysis.launches import (
    DecodedLaunch,
    MapEntry,
    kernels_launched,
    launches,
    plain_name,
    plain_or_structure,
    region_name,
    run_tasks_at_once,
)
from tidegate.compiler.analysis.locality import RegionalLocality
from tidegate.compiler.analysis.measures import measure
from tidegate.compiler.analysis.memory import Memory
from tidegate.compiler.analysis.object_names import ObjectNames
from tidegate.compiler.analysis.points_to import Origin, PointsTo
from tidegate.compiler.analysis.sizes import Formula, LaunchGrid, formula
from tidegate.compiler.ir.calls import ALLOCATORS, LAUNCHING, UNMANAGED, Allocator
from tidegate.compiler.ir.clang import TARGET, compile_ir
from tidegate.compiler.ir.direct_calls import with_direct_calls
from tidegate.compiler.ir.endings import with_returns
from tidegate.compiler.ir.inline import inline_into_main, leave_out_large, simplify
from tidegate.compiler.ir.layout import global_sizes
from tidegate.compiler.ir.module import Body, Instruction, Module, Printed, parse
from tidegate.compiler.model import (
    Argument,
    DataObject,
    KernelRegion,
    LaunchSite,
    Note,
    ProgramModel,
)
from tidegate.errors import TidegateError

FALLBACK = "omp_offload.failed"
"""clang's name of the block that runs a region on the host when there is no device."""


def model_of_source(source: str | Path, options: Sequence[str] = ()) -> ProgramModel:
    """Return the model of a C or C++ file, compiled by the installed clang with `options`."""
    host, device = compile_ir(source, options)
    return model_of_ir([host], [device], str(source))


def model_of_ir(
    host: Sequence[str | bytes], device: Sequence[str | bytes] = (), name: str = "the program"
) -> ProgramModel:
    """Return the model of a program's IR: modules of host and device, one for each translation
    unit, as text or bitcode.
    """
    if not host:
        only = "is the device's IR only" if device else "has no IR"
        raise TidegateError(
            f"'{name}' {only}; give the host's too, which holds main (clang --offload-host-only)"
        )
    module = _linked(host, name)
    if "main" not in {f.name for f in module.functions if not f.is_declaration}:
        raise TidegateError(f"'{name}' has no main; give all files of a program, as source or IR")
    module, notes = run_tasks_at_once(module, name)
    module, threads = with_direct_calls(module, name)
    text = "runs in a thread of its own; it is taken to run where the thread is started"
    notes += [Note(plain_name(function), text) for function in threads]
    module, large = leave_out_large(module, name)
    recursion = inline_into_main(module)
    notes += large + recursion
    module, printed, body = with_returns(module, name)
    points = PointsTo(body)
    memory = Memory(body, points)
    memory.follow()
    flow = Flow(body, branch_probabilities(printed.text).get("main", {}))
    locality = _device(device, name) if device else None
    found = [
        plain_or_structure(launch, locality.structures(launch.kernel) if locality else set())
        for launch in launches(body, flow.in_order(), module, points)
    ]
    arrays = global_sizes(module, body.structs)
    if locality is not None:
        arrays |= locality.arrays
        found = [with_globals(launch, locality, points, arrays) for launch in found]
    precedence = Precedence(flow)
    found = [precedence.without_later(launch) for launch in found]
    debug, holders = DebugNames(printed), _holders(body, points)

    def kind(call: Instruction) -> Hashable:
        """Return the variable that a call sets, and the size."""
        size = allocated_bytes(call, ALLOCATORS[call.callee], body, memory, debug.variable)
        variable = debug.site(holders.get(call.ref.name, call.ref.name)).name
        return (variable, str(size)) if variable else None

    stands = alternatives(found, flow) | one_at_a_time(found, flow, points, kind)
    found = [with_alternatives(launch, stands) for launch in found]
    notes += _hidden(printed, found, {note.about for note in recursion})
    left_out = list(dict.fromkeys(_not_followed(body, printed)))
    if not found and not notes:
        raise TidegateError(_nothing_launched(name, printed, left_out))
    notes += left_out
    names = ObjectNames(debug, found, locality, holders, memory)
    program = _Program(name, flow, names, found, memory, locality, frozenset(stands.values()))
    model = _assemble(program, arrays, notes)
    measured = measure(model, locality, [_passed(launch, body, names) for launch in found])
    copies = differing_copies(measured, names.given, flow, module, points)
    unused = tuple(_unused(program, stands.keys()))
    return replace(measured, two_copies=tuple(copies), unused=unused)


def _linked(given: Sequence[str | bytes], name: str) -> Module:
    first, *others = [parse(each, name) for each in given]
    for other in others:
        try:
            first.link_in(other)
        except RuntimeError as error:
            what = "give each file of one program once"
            if "'main'" in str(error):
                what = "it is several programs; give the Makefile and the sources of one"
            raise TidegateError(
                f"'{name}' cannot be linked: {str(error).strip()}; {what}"
            ) from None
    return first


def _device(given: Sequence[str | bytes], name: str) -> RegionalLocality:
    module = _linked(given, name)
    simplify(module)
    return RegionalLocality(module)


def _hidden(printed: Printed, found: list[DecodedLaunch], recursive: set[str]) -> list[Note]:
    """Note the launches that inlining did not bring into main: in tasks (nowait), behind pointers,
    in recursion.
    """
    seen = {launch.kernel for launch in found}
    notes = {}
    for function, text in printed.functions.items():
        for kernel in kernels_launched(text) if function != "main" else ():
            if kernel not in seen:
                why = f"is launched in {_why_hidden(function, recursive)}; it is left out"
                notes[kernel] = Note(region_name(kernel), why)
    return list(notes.values())


_NOT_FOLLOWED = {
    "cudaGraphLaunch": "runs a graph; kernels captured for it count once, added nodes not at all",
    "hipGraphLaunch": "runs a graph; kernels captured for it count once, added nodes not at all",
    "cuLaunchKernel": "launches a kernel by the driver's interface; it is left out",
    "cudaLaunchKernelExC": "launches a kernel with attributes; it is left out",
}
_LIBRARY = re.compile(r"(cublas|cufft|curand|cusparse|cusolver|cudnn|nvjpeg|npp[is])(?=[A-Z])")
_NO_WORK = re.compile(r"Create|Destroy|Set|Get|Plan|Alloc|Free|bufferSize|Version", re.I)


def _not_followed(main: Body, printed: Printed) -> Iterator[Note]:
    """Yield the calls that launch kernels and are not read."""
    called = {i.callee for i in main} | {
        name for text in printed.functions.values() for name in _NOT_FOLLOWED if f"@{name}(" in text
    }
    for callee in sorted(called - LAUNCHING):
        if callee in _NOT_FOLLOWED:
            yield Note(callee, _NOT_FOLLOWED[callee])
        elif _LIBRARY.match(callee) and not _NO_WORK.search(callee):
            yield Note(callee, "may launch kernels of a library; what it uses is left out")


def _nothing_launched(name: str, printed: Printed, left_out: Sequence[Note]) -> str:
    """Return what to say about a program without a launch that could be read."""
    if left_out:
        notes = "; ".join(map(str, left_out))
        return f"no launch of '{name}' can be followed ({notes}); give one with <<<…>>> launches"
    if re.search(r"@(cuda|hip)[A-Z]\w*\(", printed.text):
        return (
            f"'{name}' has no kernel launch that main reaches by calls; "
            "give all files of the program, and one whose launches are <<<…>>>"
        )
    return (
        f"'{name}' launches no target region; give a program with them, "
        f"compiled with {' '.join(TARGET)}, or a CUDA source (.cu)"
    )


def _why_hidden(function: str, recursive: set[str]) -> str:
    if "omp_task" in function:
        return "a task (nowait)"
    why = "calls itself" if function in recursive else "no direct call leads to"
    return f"{function}, which {why}"


@dataclass(frozen=True)
class _Program:
    """What was found out about a program."""

    name: str
    flow: Flow
    names: ObjectNames
    found: list[DecodedLaunch]
    memory: Memory
    device: RegionalLocality | None
    either: frozenset[Origin]  # allocations that stand for others, of which a run makes only one


def _holders(body: Body, points: PointsTo) -> dict[str, str]:
    """Return, for each allocation that sets a pointer, the variable on the stack that it sets."""
    holders = {}
    for i in body:
        allocator = ALLOCATORS.get(i.callee)
        if allocator is not None and allocator.result is not None:
            set_ = points.targets(i.arguments[allocator.result])
            if len(set_) == 1 and (origin := next(iter(set_))[0]).kind in ("stack", "global"):
                holders[i.ref.name] = origin.name
    return holders


def _assemble(program: _Program, global_sizes: dict[str, int], notes: list[Note]) -> ProgramModel:
    name, flow, names, found = program.name, program.flow, program.names, program.found
    origins = {o for launch in found for entry in launch.entries for o in entry.origins}
    used = {o for o in origins if o.kind not in ("unknown", "task", "function")}
    objects = _objects(program, used, notes) | _globals(names, used, global_sizes, notes)
    called = _region_names(found)
    made = [
        replace(
            _launch(x, called[x.kernel], objects, notes),
            trip_count=_trips(x, program),
            calls=_calls(x, flow, names),
        )
        for x in found
    ]
    for variable, count in names.of_several_values().items():
        text = f"{count} values that sizes depend on are called so; they are taken to be equal"
        notes.append(Note(variable, text))
    for each in found:
        if each.one_of > 1:
            text = f"is one of {each.one_of} kernels that a pointer may be; all are taken to run"
            notes.append(Note(called[each.kernel], text))
    for blocks in endless(flow, [x.call.block for x in found], names.variable):
        about = next(called[x.kernel] for x in found if x.call.block in blocks)
        text = "no end of a loop around it was found; it is taken to turn"
        notes.append(Note(about, f"{text} {ASSUMED_TURNS:.0f} times"))
    regions: dict[str, KernelRegion] = {}
    for launch, decoded in zip(made, found, strict=True):
        if launch.trip_count is None:
            text = "how often it loops is not known; its objects are taken as densely used"
            notes.append(Note(launch.region, text))
        before = regions[launch.region].objects if launch.region in regions else ()
        together = tuple(dict.fromkeys(before + launch.objects))
        count = decoded.parameters
        regions[launch.region] = KernelRegion(launch.region, decoded.kernel, count, together)
    return ProgramModel(
        name,
        tuple(objects.values()),
        tuple(regions.values()),
        tuple(made),
        host_flow(flow, [x.call.block for x in found], names.variable, _allocations(flow, objects)),
        tuple(dict.fromkeys(notes)),
    )


def _objects(program: _Program, used: set[Origin], notes: list[Note]) -> dict[Origin, DataObject]:
    """Return the objects that the program allocates and regions use, in the order of allocation."""
    flow, names = program.flow, program.names
    places = {launch.call.block for launch in program.found}
    objects: dict[Origin, DataObject] = {}
    for i in flow.body:
        allocator = ALLOCATORS.get(i.callee)
        origin = Origin("heap" if allocator else "stack", i.ref.name, flow.body.name)
        if origin not in used:
            continue
        size = _size(i, allocator, program) if allocator else None
        name = names.name_object(origin, i.callee)
        way = names.way_to(origin.name)
        objects[origin] = DataObject(name, origin.kind, i.callee, names.line(origin), size, way)
        if origin in program.either:
            text = "is allocated in one of several places; they are taken as one object"
            notes.append(Note(name, text))
        if i.callee in UNMANAGED:
            text = f"comes from {i.callee}; it is placed as if {UNMANAGED[i.callee]} had made it"
            notes.append(Note(name, text))
        loops = [loop.blocks for loop in flow.loops if i.block in loop.blocks]
        if allocator and loops:
            text = "is allocated in a loop; all that are made there are taken as one object"
            if any(places & blocks for blocks in loops):
                text = "is allocated in a loop with launches; one at a time is taken to live"
            elif size is not None and (times := turns_to_keep(i, flow, names.variable)) is not None:
                size = size * times
                objects[origin] = replace(objects[origin], bytes=size)
                text = f"is allocated {times} times in a loop; all together are taken as one object"
            notes.append(Note(name, text))
    return objects


def _size(call: Instruction, allocator: Allocator, program: _Program) -> Formula:
    name = program.names.variable
    return allocated_bytes(call, allocator, program.flow.body, program.memory, name)


def _unused(program: _Program, others: Collection[Origin]) -> Iterator[tuple[int, DataObject]]:
    """Yield CUDA's allocations that are no objects, each with the number of objects before it.

    ``others``: allocations of which a run makes one only; an object stands for them.
    """
    flow, names = program.flow, program.names
    known = {origin.name for origin in names.given if origin.kind != "global"}
    before = 0
    for i in flow.body:
        origin = Origin("heap", i.ref.name, flow.body.name)
        if origin.name in known:
            before += 1
        elif i.callee.startswith("cuda") and i.callee in ALLOCATORS and origin not in others:
            line, size = names.line(origin), _size(i, ALLOCATORS[i.callee], program)
            yield before, DataObject(f"{i.callee}:{line}", "heap", i.callee, line, size)


def _allocations(flow: Flow, objects: dict[Origin, DataObject]) -> dict[str, Instruction]:
    """Return the allocating call of each object on the heap, by the object's name."""
    heap = {origin.name: made.name for origin, made in objects.items() if origin.kind == "heap"}
    return {heap[i.ref.name]: i for i in flow.body if i.callee in ALLOCATORS and i.ref.name in heap}


def _globals(
    names: ObjectNames, used: set[Origin], sizes: dict[str, int], notes: list[Note]
) -> dict[Origin, DataObject]:
    """Return the globals that regions use, sorted by name."""
    objects: dict[Origin, DataObject] = {}
    for origin in sorted((o for o in used if o.kind == "global"), key=lambda o: o.name):
        size = Formula.number(sizes[origin.name]) if origin.name in sizes else None
        objects[origin] = made = DataObject(names.name_object(origin, ""), "global", "", None, size)
        if size is not None:
            text = "is a global array; it is placed as if it were managed memory (__managed__)"
            notes.append(Note(made.name, text))
    return objects


def _region_names(found: list[DecodedLaunch]) -> dict[str, str]:
    """Return a name for every kernel. Those of one function and line, as with a template or two
    files, become name, name.2, …
    """
    kernels: dict[str, list[str]] = {}
    for kernel in dict.fromkeys(launch.kernel for launch in found):
        kernels.setdefault(region_name(kernel), []).append(kernel)
    return {
        kernel: name if n == 1 else f"{name}.{n}"
        for name, alike in kernels.items()
        for n, kernel in enumerate(alike, 1)
    }


def _launch(
    launch: DecodedLaunch, region: str, objects: dict[Origin, DataObject], notes: list[Note]
) -> LaunchSite:
    order = {origin: n for n, origin in enumerate(objects)}
    arguments = []
    for n, entry in enumerate(launch.entries):
        known = sorted((o for o in entry.origins if o in order), key=order.__getitem__)
        names = tuple(objects[o].name for o in known)
        notes += _doubts(region, n, entry, names)
        if not entry.is_value:
            arguments.append(Argument(names, entry.parameter, entry.map_type, entry.through))
    return LaunchSite(region, launch.call.block, launch.index, tuple(arguments), trip_count=None)


def _calls(launch: DecodedLaunch, flow: Flow, names: ObjectNames) -> tuple[str, ...]:
    """Return the calls from main to a launch. For OpenMP, by the debug location of the host's
    fallback: clang gives the launch itself none.
    """
    if launch.of_cuda:
        return names.calls_to(launch.call.ref.name)
    following = flow.successors[launch.call.block]
    fallback = next((block for block in following if FALLBACK in block), "")
    return names.calls(fallback, region_name(launch.kernel).rpartition("::")[2])


def _trips(launch: DecodedLaunch, program: _Program) -> Formula | None:
    """Return the iterations of a launch: what is stored as their number, if that is one formula;
    else those of the loop that the kernel divides; else one for each thread.
    """
    body, name, device = program.flow.body, program.names.variable, program.device
    if launch.of_cuda and device is not None and device.divides(launch.kernel, launch.parameters):
        loop = device.iterations(launch.kernel, launch.parameters)
        return loop and loop.with_formulas(_passed(launch, body, program.names))
    if launch.of_cuda:
        return LaunchGrid(body, program.memory, name).threads(launch.grid)
    formulas = {formula(value, body, name) for value in launch.trip_count}
    formulas -= {Formula.number(0)}
    if len(formulas) == 1:
        return formulas.pop()
    if device is None or launch.teams is None or launch.threads is None:
        return None
    count = launch.parameters
    teams, threads = (formula(v, body, name) for v in (launch.teams, launch.threads))
    if not device.divides(launch.kernel, count):
        each: Formula | None = threads
    else:
        loop = device.iterations(launch.kernel, count)
        each = loop and loop.with_formulas(_passed(launch, body, program.names))
    return teams * each if teams.terms and each is not None and each.terms else None


def _passed(launch: DecodedLaunch, body: Body, names: ObjectNames) -> dict[str, Formula]:
    """Return the values that a launch passes its kernel, by the kernel's parameters: #0, #1, …"""
    return {
        f"#{entry.parameter}": formula(entry.values[0], body, names.variable)
        for entry in launch.entries
        if entry.parameter is not None and entry.is_value and len(set(entry.values)) == 1
    }


def _doubts(region: str, n: int, entry: MapEntry, names: tuple[str, ...]) -> Iterator[Note]:
    """Yield what is not certain about the n-th argument of a launch."""
    for origin in sorted((o for o in entry.origins if o.kind == "unknown"), key=lambda o: o.name):
        text = f"argument {n} may be {origin.name}, which is not traced; it is left out"
        yield Note(region, text)
    if names and entry.parameter is None and entry.through is None:
        text = f"is reached by {region} through a structure; its locality there is taken as 0"
        yield Note(names[0], text)
    if not entry.origins and not entry.is_value:
        yield Note(region, f"argument {n} could not be traced to an allocation; it is left out")
    if len(names) > 1:
        yield Note(region, f"argument {n} may be {' or '.join(names)}; each is taken as used")
