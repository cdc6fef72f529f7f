"""Regional locality: how often one iteration of a kernel region accesses each of its parameters
(SC'19, 4.1).

An access counts as often as its block runs. Each iteration of the shared loop is one thread's, so
frequencies are divided by that loop's. The result is per iteration; access density uses it, too
(4.2).
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass

from tidegate.compiler.analysis.flow import Flow
from tidegate.compiler.analysis.points_to import Location, Origin, PointsTo
from tidegate.compiler.analysis.worksharing import device_calls, shared_loop, takes_bounds
from tidegate.compiler.ir.layout import POINTER_BYTES, size_and_alignment
from tidegate.compiler.ir.loops import Loop
from tidegate.compiler.ir.module import Body, Instruction, Module, Printed, Value
from tidegate.compiler.ir.probabilities import Edges, branch_probabilities

_DEEPEST = 16  # calls within calls; device code that goes deeper is recursive

ParameterPath = tuple[int, ...]
"""A kernel's parameter, the offset of the pointer that is read from it, and so on; -1: unknown."""


@dataclass(frozen=True)
class Accesses:
    """Accesses to one parameter by one iteration of a region."""

    accesses: float = 0.0
    bytes: float = 0.0

    def __add__(self, other: Accesses) -> Accesses:
        return Accesses(self.accesses + other.accesses, self.bytes + other.bytes)


@dataclass(frozen=True)
class _Call:
    """A call of a function whose accesses are to be added up."""

    function: str
    given: dict[str, set[Location]]  # where its parameters point
    caller: PointsTo | None
    times: float  # runs per iteration of the region
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

    def of(self, kernel: str, count: int) -> dict[ParameterPath, Accesses] | None:
        """Return the accesses of an iteration to each of the program's own `count` parameters, and
        through them; None if the kernel is absent.
        """
        body = self._bodies.get(kernel)
        if body is None:
            return None
        own = _without_dyn_ptr(body, count)
        given: dict[str, set[Location]] = {p.name: {(Origin("parameter", p.name), 0)} for p in own}
        touched: dict[Origin, Accesses] = defaultdict(Accesses)
        self._visit(_Call(kernel, given, None, 1.0, False, _DEEPEST), touched)
        number = {p.name: n for n, p in enumerate(own)}
        names = {_plain(origin.name) for origin in touched if origin.kind == "global"}
        self._globals[kernel] = sorted(names - {""})
        return {_path(o.name, number): t for o, t in touched.items() if o.kind == "parameter"}

    def globals_of(self, kernel: str) -> list[str]:
        """Return the globals that a kernel accesses by name, not as parameters (declare target).
        Call `of` first.
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
        flow, known = self._flow(call.function), set(self._bodies)
        points = PointsTo(flow.body, call.given, call.caller)
        loop = None if call.shared else shared_loop(flow)
        onward = [c for c in device_calls(flow.body, points, known) if c.callee in known]
        # `distribute parallel for`: the outer half only splits the iterations; the inner half has
        # the shared loop
        inside = [c for c in onward if loop is not None and c.instruction.block in loop.blocks]
        halves = any(self._is_inner_half(c.callee) for c in inside)
        times = call.times if loop is None else call.times / _turns(flow, loop)
        for i in flow.body:
            for origin, width in _accesses(i, points):
                often = times * flow.frequency[i.block]
                touched[origin] += Accesses(often, often * width)
        for c in onward if call.deeper else ():
            names = (p.name for p in self._bodies[c.callee].parameters)
            given = dict(zip(names, c.arguments, strict=False))  # a variadic callee has fewer names
            often = 1.0 if halves else times * flow.frequency[c.instruction.block]
            shared = call.shared or (loop is not None and not halves)
            self._visit(_Call(c.callee, given, points, often, shared, call.deeper - 1), touched)

    def _is_inner_half(self, function: str) -> bool:
        body = self._bodies.get(function)
        return body is not None and takes_bounds(body, PointsTo(body, {}))


def _without_dyn_ptr(body: Body, count: int) -> list[Value]:
    """Return the parameters without the one that clang 19 and newer add: dyn_ptr, or the first if
    names are lost.
    """
    named = [p for p in body.parameters if p.name != "dyn_ptr"]
    return named if len(named) == count else list(body.parameters[-count:] if count else ())


def _path(name: str, number: dict[str, int]) -> ParameterPath:
    """Return the path of a parameter's name: x → (number,); x+8, read from x at byte 8, →
    (number, 8).
    """
    parameter, *offsets = name.split("+")
    return (number[parameter], *(int(o) if o.isdigit() else -1 for o in offsets))


def _turns(flow: Flow, loop: Loop) -> float:
    return sum(flow.frequency[latch] for latch in loop.latches) or 1.0


def _plain(symbol: str) -> str:
    """Return a global's name in the program; "" for one of the compiler's own."""
    own = symbol.startswith((".", "_", "llvm."))
    return "" if own else symbol.removesuffix("_decl_tgt_ref_ptr")


def _accesses(i: Instruction, points: PointsTo) -> list[tuple[Origin, int]]:
    """Return (parameter or global, bytes) of what an instruction reads or writes."""
    pointer: Value
    if i.opcode in ("load", "atomicrmw", "cmpxchg"):
        pointer, width = i.operands[0], _width(i.ref if i.opcode == "load" else i.operands[1])
    elif i.opcode == "store":
        pointer, width = i.operands[1], _width(i.operands[0])
    else:
        return []
    origins = {o for o, _ in points.of(pointer)}
    return [(o, width) for o in origins if o.kind in ("parameter", "global")]


def _width(value: Value) -> int:
    """Return a value's size in bytes, from its type."""
    text = str(value.type).strip()
    if bits := re.fullmatch(r"i(\d+)", text):
        return max(1, int(bits[1]) // 8)
    return size_and_alignment(text, {})[0] or POINTER_BYTES
