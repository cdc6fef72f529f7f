"""Regional locality: how often one iteration of a target region touches each of its parameters
(SC'19, 4.1).

An access counts as often as its block is run. The shared loop's iterations are one thread's each,
so frequencies are divided by that loop's: what remains is per iteration, which is also what access
density is made of (4.2).
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass

from tidegate.compiler.analysis.flow import Flow
from tidegate.compiler.analysis.points_to import Origin, Place, PointsTo
from tidegate.compiler.analysis.worksharing import device_calls, shared_loop, takes_bounds
from tidegate.compiler.ir.loops import Loop
from tidegate.compiler.ir.module import Body, Instruction, Module, Value
from tidegate.compiler.ir.probabilities import Edges, branch_probabilities

POINTER_BYTES = 8
_DEEPEST = 16  # calls within calls; device code that goes deeper is recursive
_WIDTHS = {
    "half": 2,
    "bfloat": 2,
    "float": 4,
    "double": 8,
    "ptr": POINTER_BYTES,
    "x86_fp80": 16,
    "fp128": 16,
}
_VECTOR = re.compile(r"<(?:vscale x )?(\d+) x (\w+)>")


Path = tuple[int, ...]
"""A kernel's parameter, then the offset of the pointer that is read from it, and so on; -1 for an
offset not known.
"""


@dataclass(frozen=True)
class Touched:
    """What one iteration of a region does to one parameter."""

    accesses: float = 0.0
    bytes: float = 0.0

    def __add__(self, other: Touched) -> Touched:
        return Touched(self.accesses + other.accesses, self.bytes + other.bytes)


@dataclass(frozen=True)
class _Call:
    """A function to be gone through."""

    function: str
    given: dict[str, set[Place]]  # where its parameters point
    caller: PointsTo | None
    times: float  # how often it is run for one iteration of the region
    shared: bool  # whether the shared loop has been met on the way
    deeper: int  # how many calls may still be followed


class RegionalLocality:
    """The localities of all kernels of a device module."""

    def __init__(self, module: Module):
        self._bodies: dict[str, Body] = {
            f.name: Body(f) for f in module.functions if not f.is_declaration
        }
        self._edges: dict[str, Edges] = branch_probabilities(module)
        self._flows: dict[str, Flow] = {}
        self._globals: dict[str, list[str]] = {}

    def of(self, kernel: str, count: int) -> dict[Path, Touched] | None:
        """What an iteration does to each of the program's own `count` parameters, and through them;
        None if it is absent.
        """
        body = self._bodies.get(kernel)
        if body is None:
            return None
        own = _without_dyn_ptr(body, count)
        given: dict[str, set[Place]] = {p.name: {(Origin("parameter", p.name), 0)} for p in own}
        touched: dict[Origin, Touched] = defaultdict(Touched)
        self._visit(_Call(kernel, given, None, 1.0, False, _DEEPEST), touched)
        number = {p.name: n for n, p in enumerate(own)}
        self._globals[kernel] = sorted(
            {_plain(origin.name) for origin in touched if origin.kind == "global"} - {""}
        )
        return {
            _path(origin.name, number): t
            for origin, t in touched.items()
            if origin.kind == "parameter"
        }

    def globals_of(self, kernel: str) -> list[str]:
        """The globals that a kernel accesses by their names and not as parameters (declare target);
        after `of`.
        """
        return self._globals.get(kernel, [])

    def parameter_names(self, kernel: str, count: int) -> list[str]:
        """What the source calls a kernel's parameters, where the IR has kept it; an empty list
        without the kernel.
        """
        body = self._bodies.get(kernel)
        return [p.name for p in _without_dyn_ptr(body, count)] if body is not None else []

    def _flow(self, function: str) -> Flow:
        if function not in self._flows:
            self._flows[function] = Flow(self._bodies[function], self._edges.get(function, {}))
        return self._flows[function]

    def _visit(self, call: _Call, touched: dict[Origin, Touched]) -> None:
        """Add up the accesses of a function and of those it calls."""
        flow = self._flow(call.function)
        points = PointsTo(flow.body, call.given, call.caller)
        loop = None if call.shared else shared_loop(flow)
        onward = [
            c
            for c in device_calls(flow.body, points, set(self._bodies))
            if c.callee in self._bodies
        ]
        # `distribute parallel for`: the outer half only cuts the iterations up, the inner half's
        # loop is the shared one
        inside = [c for c in onward if loop is not None and c.instruction.block in loop.blocks]
        halves = any(self._is_inner_half(c.callee) for c in inside)
        times = call.times if loop is None else call.times / _turns(flow, loop)
        for i in flow.body:
            for origin, width in _accesses(i, points):
                often = times * flow.frequency[i.block]
                touched[origin] += Touched(often, often * width)
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
    """The parameters without the one that clang 19 and newer add, which is the first unless its
    name says otherwise.
    """
    named = [p for p in body.parameters if p.name != "dyn_ptr"]
    return named if len(named) == count else list(body.parameters[-count:] if count else ())


def _path(name: str, number: dict[str, int]) -> Path:
    """x → its number; x+8, what is read from x at byte 8, → (number, 8)."""
    parameter, *offsets = name.split("+")
    return (number[parameter], *(int(o) if o.isdigit() else -1 for o in offsets))


def _turns(flow: Flow, loop: Loop) -> float:
    return sum(flow.frequency[latch] for latch in loop.latches) or 1.0


def _plain(symbol: str) -> str:
    """A global as the program calls it; "" for one that is the compiler's own."""
    return (
        "" if symbol.startswith((".", "_", "llvm.")) else symbol.removesuffix("_decl_tgt_ref_ptr")
    )


def _accesses(i: Instruction, points: PointsTo) -> list[tuple[Origin, int]]:
    """(parameter or global, bytes) of what an instruction reads or writes."""
    pointer: Value
    if i.opcode in ("load", "atomicrmw", "cmpxchg"):
        pointer, width = i.operands[0], _width(i.ref if i.opcode == "load" else i.operands[1])
    elif i.opcode == "store":
        pointer, width = i.operands[1], _width(i.operands[0])
    else:
        return []
    return [
        (origin, width)
        for origin in {o for o, _ in points.of(pointer)}
        if origin.kind in ("parameter", "global")
    ]


def _width(value: Value) -> int:
    """A value's size in bytes, from its type."""
    text = str(value.type).strip()
    vector = _VECTOR.match(text)
    if vector:
        return int(vector[1]) * _scalar(vector[2])
    return _scalar(text)


def _scalar(text: str) -> int:
    if text in _WIDTHS:
        return _WIDTHS[text]
    return max(1, int(text[1:]) // 8) if re.fullmatch(r"i\d+", text) else POINTER_BYTES
