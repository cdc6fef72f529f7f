"""Regional locality: how often one iteration of a kernel region accesses each of its parameters
(SC'19, 4.1).

An access counts as often as its block runs. Each iteration of the shared loop is one thread's, so
frequencies are divided by that loop's. The result is per iteration; access density uses it, too
(4.2).
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from tidegate.compiler.analysis.flow import Edges, Flow, branch_probabilities
from tidegate.compiler.analysis.points_to import Location, Origin, PointsTo
from tidegate.compiler.analysis.sizes import Formula, formula
from tidegate.compiler.analysis.variance import Variance, with_guards
from tidegate.compiler.analysis.walks import (
    UNKNOWN,
    AddressPattern,
    Reach,
    Strides,
    Walks,
    known_turns,
)
from tidegate.compiler.analysis.worksharing import (
    DeviceCall,
    device_calls,
    shared_count,
    shared_loop,
    takes_bounds,
)
from tidegate.compiler.ir.layout import POINTER_BYTES, global_sizes, size_and_alignment, split
from tidegate.compiler.ir.loops import Loop
from tidegate.compiler.ir.module import Body, Instruction, Module, Printed, Value, constant_int, key
from tidegate.compiler.model import Walk

_BLOCKS = ("llvm.memset", "llvm.memcpy", "llvm.memmove", "memset", "memcpy", "memmove")
_WORD = 8  # bytes that one access of a block copy moves
_ESTIMATE = 32 * _WORD  # bytes of a copy whose length is not known: LLVM's 32 turns of a loop
_ALWAYS = 0.99  # of the iterations: behind a guard that nearly all pass, or behind none
_SPACES = {
    "ptr addrspace(1)": "device",
    "ptr addrspace(3)": "shared",
    "ptr addrspace(4)": "constant",
}
_TEXTURE = re.compile(r'asm (?:sideeffect )?"(tex|tld4|suld|sust|sured)\b')
_SURFACE = "tidegate_surface_"
_TEXEL = 4  # bytes of a texel: a float's or an int's; wider ones are not told apart
_DEEPEST = 16  # calls within calls; device code that goes deeper is recursive

ParameterPath = tuple[int | str, ...]
"""A kernel's parameter, the offset of the pointer that is read from it, and so on; -1: unknown. Or
the symbol of a global of the device instead of a parameter; "" as the offset is the global itself.
"""


@dataclass(frozen=True)
class Accesses:
    """Accesses to one parameter by one iteration of a region."""

    accesses: float = 0.0
    bytes: float = 0.0  # at addresses that are the iteration's own
    common_bytes: float = 0.0  # at addresses that are the same for all iterations
    writes: float = 0.0  # accesses that write
    # parts of the bytes, in formulas of the kernel's parameters; each with its pattern's place
    walks: tuple[tuple[str, Walk], ...] = ()

    def __add__(self, other: Accesses) -> Accesses:
        return Accesses(
            self.accesses + other.accesses,
            self.bytes + other.bytes,
            self.common_bytes + other.common_bytes,
            self.writes + other.writes,
            self.walks + other.walks,
        )

    def times(self, factor: float) -> Accesses:
        """Return as many of them."""
        walks = (
            (place, replace(w, each=factor * w.each, bytes=factor * w.bytes))
            for place, w in self.walks
        )
        return Accesses(
            factor * self.accesses,
            factor * self.bytes,
            factor * self.common_bytes,
            factor * self.writes,
            tuple(walks),
        )


@dataclass(frozen=True)
class _Cell:
    """A variable that a function hands on by its address and that is set once."""

    value: Formula | None  # in the kernel's parameters
    position: bool  # computed from the iteration's number alone


@dataclass(frozen=True)
class _Call:
    """A call of a function whose accesses are to be added up."""

    function: str
    given: dict[str, set[Location]]  # where its parameters point
    varying: set[str]  # the parameters that differ between iterations
    positions: set[str]  # the parameters that are computed from the iteration's number alone
    known: dict[str, Formula]  # the parameters' values, in those of the kernel
    cells: Mapping[Location, _Cell]  # variables of its callers
    caller: PointsTo | None
    reach: Reach  # runs per iteration of the region
    shared: bool  # whether a caller has the shared loop
    deeper: int  # how many nested calls may still be followed


class RegionalLocality:
    """The localities of all kernels of a device module."""

    def __init__(self, module: Module):
        printed = Printed(module)
        self._bodies: dict[str, Body] = {
            f.name: Body(f, printed) for f in module.functions if not f.is_declaration
        }
        self._edges: dict[str, Edges] = branch_probabilities(printed.text)
        self._flows: dict[str, Flow] = {}
        self._globals: dict[str, list[str]] = {}
        self._of_device = {
            g.name: _SPACES.get(str(g.type).strip(), "") for g in module.global_variables
        }
        self.arrays = global_sizes(module, printed.structs)
        """The bytes of the device's global arrays, by their symbols."""
        self._found: dict[tuple[str, int], dict[ParameterPath, Accesses] | None] = {}
        self._shared: dict[str, Formula | None] = {}

    def accesses(self, kernel: str, count: int) -> dict[ParameterPath, Accesses] | None:
        """Return the accesses of an iteration to each of the program's own `count` parameters, and
        through them; None if the kernel is absent.
        """
        if (kernel, count) not in self._found:
            self._found[kernel, count] = self._accesses_of(kernel, count)
        return self._found[kernel, count]

    def divides(self, kernel: str, count: int) -> bool:
        """Return whether a kernel divides a loop among its threads; otherwise each thread's run is
        an iteration.
        """
        self.accesses(kernel, count)
        return kernel in self._shared

    def iterations(self, kernel: str, count: int) -> Formula | None:
        """Return the iterations of the loop that a kernel divides, in its parameters (#0, #1, …);
        None if they are not computed from them.
        """
        self.accesses(kernel, count)
        return self._shared.get(kernel)

    def _accesses_of(self, kernel: str, count: int) -> dict[ParameterPath, Accesses] | None:
        body = self._bodies.get(kernel)
        if body is None:
            return None
        own = _without_dyn_ptr(body, count)
        given: dict[str, set[Location]] = {p.name: {(Origin("parameter", p.name), 0)} for p in own}
        known = {p.name: Formula.variable(f"#{n}") for n, p in enumerate(own)}
        touched: dict[Origin, Accesses] = defaultdict(Accesses)
        self._kernel = kernel
        self._visit(
            _Call(
                kernel, given, set(), set(), known, {}, None, Reach(1.0, each=1.0), False, _DEEPEST
            ),
            touched,
        )
        number = {p.name: n for n, p in enumerate(own)}
        named = sorted(o.name for o in touched if o.kind == "global")
        self._globals[kernel] = [
            name
            for name in named
            if (_plain(name) if not self.space(name) else self.space(name) == "constant")
        ]
        found = {_path(o.name, number): t for o, t in touched.items() if o.kind == "parameter"}
        return found | {(o.name, ""): t for o, t in touched.items() if o.kind == "global"}

    def space(self, name: str) -> str:
        """Return where CUDA keeps a global: device, constant or shared; "" for OpenMP's."""
        return self._of_device.get(name, "")

    def structures(self, kernel: str) -> set[int]:
        """Return which parameters of a kernel are structures passed by value."""
        body = self._bodies.get(kernel)
        head = body.printed.functions[kernel].split("\n", 1)[0] if body is not None else ""
        parameters = split(head[head.index("(") + 1 : head.rindex(")")]) if head else []
        return {n for n, text in enumerate(parameters) if "byval(" in text or "byref(" in text}

    def globals_of(self, kernel: str) -> list[str]:
        """Return the globals that a kernel accesses by name, not as parameters, and that are no
        operands: `declare target`, and CUDA's constant memory. Call `accesses` first.
        """
        return self._globals.get(kernel, [])

    def parameter_names(self, kernel: str, count: int) -> list[str]:
        """Return the names of a kernel's parameters, as far as the IR has kept them; an empty list
        if the kernel is absent.
        """
        body = self._bodies.get(kernel)
        return [p.name for p in _without_dyn_ptr(body, count)] if body is not None else []

    def _flow(self, function: str) -> Flow:
        if function not in self._flows:
            self._flows[function] = Flow(self._bodies[function], self._edges.get(function, {}))
        return self._flows[function]

    def _visit(self, call: _Call, touched: dict[Origin, Accesses]) -> None:
        """Add up the accesses of a function and of those it calls."""
        flow, defined = self._flow(call.function), set(self._bodies)
        points = PointsTo(flow.body, call.given, call.caller)
        divided = shared_loop(flow)
        loop = None if call.shared else divided
        onward = [c for c in device_calls(flow.body, points, defined) if c.callee in defined]
        # `distribute parallel for`: the outer half only splits the iterations; the inner half has
        # the shared loop
        inside = [c for c in onward if loop is not None and c.instruction.block in loop.blocks]
        halves = any(self._is_inner_half(c.callee) for c in inside)
        read = _read_cells(flow.body, points, call.cells)
        known = call.known | {f"%{i.ref.name}": c.value for i, c in read if c.value is not None}
        turns = known_turns(flow, divided, known)
        positions = {key(p) for p in flow.body.parameters if p.name in call.positions}
        positions |= {i.key for i, cell in read if cell.position}
        uniform = {i.key for i, cell in read if cell.value is not None}
        variance = Variance(flow, points, divided, call.varying, positions, uniform, turns)
        edges = with_guards(flow, variance)
        frequency = flow.frequency_with(edges)
        if divided is not None and not halves:
            count = shared_count(flow, points, known)
            if loop is not None:
                self._shared[self._kernel] = count
            elif count is not None and count.variables():
                turns[divided] = count
            elif count is not None and count.terms:
                edges = _with_turns(edges, flow, divided, count.at({}))
                frequency = flow.frequency_with(edges)
        share = 1.0 if loop is None else 1 / _turns(frequency, loop)
        once = Reach(share, each=share).within(call.reach)
        walks = Walks(flow, edges, frequency, loop, turns, {i.key for i, _ in read})
        strides = Strides(flow, points, variance, known, divided, turns)
        for i in flow.body:
            for access in _accesses(i, points):
                own = any(map(variance.varies, access.position))
                found = access.within(own, strides.pattern(access.pointer), walks, i.block, once)
                for origin in access.origins:
                    touched[origin] += found
        here = replace(call, known=known, cells=_cells(flow.body, points, known, variance, call))
        for c in onward if call.deeper else ():
            often = walks.reach(c.instruction.block).within(once)
            shared = call.shared or (loop is not None and not halves)
            often = Reach(1.0, each=1.0) if halves else often
            self._visit(self._onward(c, here, flow, points, variance, often, shared), touched)

    def _onward(
        self,
        c: DeviceCall,
        call: _Call,
        flow: Flow,
        points: PointsTo,
        variance: Variance,
        often: Reach,
        shared: bool,
    ) -> _Call:
        """Return the call of a function by another one that is visited."""
        names = [p.name for p in self._bodies[c.callee].parameters]
        passed = list(zip(names, c.values, strict=False))  # a variadic callee has fewer names
        formulas = {n: formula(v, flow.body, _nameless) for n, v in passed if v is not None}
        return _Call(
            c.callee,
            given=dict(zip(names, c.arguments, strict=False)),
            varying={n for n, value in passed if value is None or variance.varies(value)},
            positions={
                n for n, value in passed if value is not None and variance.is_position(value)
            },
            known={n: found for n, f in formulas.items() if (found := f.with_formulas(call.known))},
            cells=call.cells,
            caller=points,
            reach=often,
            shared=shared,
            deeper=call.deeper - 1,
        )

    def _is_inner_half(self, function: str) -> bool:
        body = self._bodies.get(function)
        return body is not None and takes_bounds(body, PointsTo(body, {}))


def _read_cells(
    body: Body, points: PointsTo, cells: Mapping[Location, _Cell]
) -> list[tuple[Instruction, _Cell]]:
    """Return the loads of variables of callers that the function itself does not set."""
    found = []
    for i in body if cells else ():
        places = points.targets(i.operands[0]) if i.opcode == "load" else set()
        if len(places) == 1 and not points.written(place := next(iter(places))) and place in cells:
            found.append((i, cells[place]))
    return found


def _cells(
    body: Body, points: PointsTo, known: dict[str, Formula], variance: Variance, call: _Call
) -> dict[Location, _Cell]:
    """Return the variables of a function and of its callers that are set once."""
    found = dict(call.cells)
    for i in body:
        place: Location = (Origin("stack", i.ref.name, body.name), 0)
        values = points.written(place) if i.opcode == "alloca" else []
        if len(values) == 1:
            value = formula(values[0], body, _nameless).with_formulas(known)
            found[place] = _Cell(value, variance.is_position(values[0]))
    return found


def _without_dyn_ptr(body: Body, count: int) -> list[Value]:
    """Return the parameters without the one that clang 19 and newer add: dyn_ptr, or the first if
    names are lost.
    """
    named = [p for p in body.parameters if p.name != "dyn_ptr"]
    return named if len(named) == count else list(body.parameters[-count:] if count else ())


def _path(name: str, number: dict[str, int]) -> ParameterPath:
    """Return the path of a parameter's name: x → (number,); x+8, read from x at byte 8, →
    (number, 8); @g+8, from the global g, → (g, 8).
    """
    parameter, *offsets = name.split("+")
    first = parameter[1:] if parameter.startswith("@") else number[parameter]
    return (first, *(int(o) if o.isdigit() else -1 for o in offsets))


def _turns(frequency: Mapping[str, float], loop: Loop) -> float:
    return sum(frequency[latch] for latch in loop.latches) or 1.0


def _with_turns(edges: Edges, flow: Flow, loop: Loop, count: int) -> Edges:
    """Return the steps' probabilities with a loop that turns so often, as one does that a team's
    threads divide among them within the shared one.
    """
    for block in (*loop.latches, loop.header):
        following = flow.successors[block]
        out = [b for b in following if b not in loop.blocks]
        if len(following) == 2 and len(out) == 1:
            stay = next(b for b in following if b in loop.blocks)
            leaves = 1 / max(1, count + (block not in loop.latches))
            return edges | {(block, out[0]): leaves, (block, stay): 1 - leaves}
    return edges


def _nameless(value: str) -> None:
    """Return no name: values of device functions are known by their parameters only."""


def _plain(symbol: str) -> str:
    """Return a global's name in the program; "" for one of the compiler's own."""
    own = symbol.startswith((".", "_", "llvm."))
    return "" if own else symbol.removesuffix("_decl_tgt_ref_ptr")


@dataclass(frozen=True)
class _Access:
    """What an instruction reads or writes at one address."""

    pointer: Value
    bytes: int
    writes: bool
    origins: tuple[Origin, ...]
    position: tuple[Value, ...]  # what the address is computed from: itself, or a texture's indices
    count: int = 1

    def within(
        self, own: bool, pattern: AddressPattern, walks: Walks, block: str, once: Reach
    ) -> Accesses:
        """Return it as accesses of an iteration in which its function runs `once`; `own`: whether
        its address is the iteration's own.
        """
        size, count = float(self.bytes), self.count * walks.reach(block).times * once.times
        reach = walks.reach(block, self.pointer).within(once)
        walked = size * reach.times
        turns = reach.turns * UNKNOWN if pattern.endless else reach.turns
        apart = pattern.apart_of(self.bytes)
        walk = Walk(turns, size * reach.each, walked, not own, size, apart)
        always = reach.each >= _ALWAYS or not own
        plain = not turns.variables() and apart is None and always
        return Accesses(
            count,
            walked if own else 0.0,
            0.0 if own else walked,
            count if self.writes else 0.0,
            () if plain else ((pattern.place, walk),),
        )


def _accesses(i: Instruction, points: PointsTo) -> Iterator[_Access]:
    """Yield what an instruction reads or writes of parameters and globals."""
    for pointer, width, writes in _addressed(i):
        origins = {o for o, _ in points.targets(pointer)}
        known = tuple(o for o in origins if o.kind in ("parameter", "global"))
        if known:
            count = max(1, -(-width // _WORD)) if i.callee.startswith(_BLOCKS) else 1
            position = i.arguments if _texture(i) else (pointer,)
            yield _Access(pointer, width, writes, known, position, count)


def _addressed(i: Instruction) -> Iterator[tuple[Value, int, bool]]:
    """Yield (pointer, bytes, whether it is written) of an instruction."""
    if i.opcode in ("load", "atomicrmw", "cmpxchg"):
        width = _width(i.ref if i.opcode == "load" else i.operands[1])
        yield i.operands[0], width, i.opcode != "load"
    elif i.opcode == "store":
        yield i.operands[1], _width(i.operands[0]), True
    elif i.callee.startswith(_BLOCKS):
        length = constant_int(i.arguments[2])
        width = _ESTIMATE if length is None else length
        yield i.arguments[0], width, True
        if "memset" not in i.callee:
            yield i.arguments[1], width, False
    elif texture := _texture(i):
        yield i.arguments[0], _TEXEL, texture in ("sust", "sured")


def _texture(i: Instruction) -> str:
    """Return the instruction that a call of CUDA's headers reads a texture or a surface with, or
    writes one; "" for all else. Its first argument is the texture.
    """
    if i.opcode != "call":
        return ""
    if i.callee.startswith(_SURFACE):
        return "sust" if "write" in i.callee else "suld"
    found = _TEXTURE.search(str(i.operands[-1])) if not i.callee else None
    return found[1] if found is not None else ""


def _width(value: Value) -> int:
    """Return a value's size in bytes, from its type."""
    text = str(value.type).strip()
    if bits := re.fullmatch(r"i(\d+)", text):
        return max(1, int(bits[1]) // 8)
    return size_and_alignment(text, {})[0] or POINTER_BYTES
