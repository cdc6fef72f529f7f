"""The loop that a kernel divides among its threads, found by the structure of the device's IR: by a
call of OpenMP's runtime, or as CUDA programs write it, with a stride of the whole grid.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import llvmlite.binding as llvm

from tidegate.compiler.analysis.flow import Flow
from tidegate.compiler.analysis.points_to import Location, PointsTo
from tidegate.compiler.analysis.sizes import Formula, formula
from tidegate.compiler.ir.loops import Loop, reachable
from tidegate.compiler.ir.module import CONVERSIONS, Body, Instruction, Value, key

_INITS = (
    "__kmpc_for_static_init",
    "__kmpc_distribute_static_init",
    "__kmpc_dist_for_static_init",
    "__kmpc_dispatch_init",
)
_LOWER_BOUND = 4  # the argument of a static init that is the address of the lower bound
# an outlined function's own first parameters, the numbers of thread and team, point nowhere
_OUTLINED_OWN: tuple[set[Location], ...] = (set(), set())


@dataclass(frozen=True)
class DeviceCall:
    """A call of a function with a known body, direct or through the OpenMP runtime."""

    instruction: Instruction
    callee: str
    arguments: tuple[set[Location], ...]  # where each of the callee's parameters points, in order
    values: tuple[Value | None, ...]  # passed for each; None: not known, as the thread's number


def device_calls(body: Body, points: PointsTo, defined: set[str]) -> Iterator[DeviceCall]:
    """Yield the calls of a function that lead to the region's code."""
    for i in body:
        # ident, count, function, arguments...
        if i.callee in ("__kmpc_fork_call", "__kmpc_fork_teams"):
            given = [points.targets(a) for a in i.arguments[3:]]
            values = (None, None, *i.arguments[3:])
            yield DeviceCall(i, i.arguments[2].name, (*_OUTLINED_OWN, *given), values)
        # on GPUs: ..., function (5), wrapper, array of arguments (7), count
        elif i.callee.startswith("__kmpc_parallel_"):
            array = {origin for origin, _ in points.targets(i.arguments[7])}
            count = int(i.arguments[8].get_constant_value()) if i.arguments[8].is_constant else 0
            given = [{p for o in array for p in points.at((o, 8 * n))} for n in range(count)]
            stored = [[v for o in array for v in points.written((o, 8 * n))] for n in range(count)]
            values = (None, None, *(each[0] if len(each) == 1 else None for each in stored))
            yield DeviceCall(i, i.arguments[5].name, (*_OUTLINED_OWN, *given), values)
        elif i.callee in defined:
            yield DeviceCall(
                i, i.callee, tuple(points.targets(a) for a in i.arguments), i.arguments
            )


def shared_loop(flow: Flow) -> Loop | None:
    """Return the outermost loop after the call that divides the iterations, or one that all threads
    of a grid walk through together; None without either.
    """
    init = next((i for i in flow.body if i.callee.startswith(_INITS)), None)
    if init is None:
        strided = grid_stride(flow)
        return strided[0] if strided is not None else None
    inside = {b for loop in flow.loops if init.block in loop.blocks for b in loop.blocks}
    after = reachable(init.block, flow.successors) - inside
    return next((loop for loop in flow.loops if loop.header in after), None)


def grid_stride(flow: Flow) -> tuple[Loop, Value] | None:
    """Return the outermost loop whose counter steps by the number of all threads (``i +=
    gridDim.x * blockDim.x``), and the bound that it goes up to.
    """
    body = flow.body
    for loop in flow.loops:
        for block in dict.fromkeys((loop.header, *loop.latches)):
            branch = body.blocks[block][-1]
            condition = body.by_key.get(key(branch.operands[0])) if branch.operands else None
            if condition is None or condition.opcode != "icmp":
                continue
            for counter, bound in (condition.operands, condition.operands[::-1]):
                if _steps_by_grid(_unconverted(counter, body), body, loop):
                    i = body.by_key.get(key(bound))
                    if i is None or i.block not in loop.blocks:
                        return loop, bound
    return None


def _steps_by_grid(i: Instruction | None, body: Body, loop: Loop) -> bool:
    """Return whether a value is a loop's counter, before or after its step by the grid's size."""
    if i is not None and i.opcode == "phi" and i.block == loop.header:
        incoming = zip(i.operands, i.ref.incoming_blocks, strict=True)
        again = [_unconverted(v, body) for v, b in incoming if b.name in loop.blocks]
        return any(n is not None and n.opcode == "add" and _adds_grid(n, body) for n in again)
    return i is not None and i.opcode == "add" and i.block in loop.blocks and _adds_grid(i, body)


def _adds_grid(add: Instruction, body: Body) -> bool:
    found = [_unconverted(o, body) for o in add.operands]
    return any(
        i is not None and i.opcode in ("mul", "shl") and _registers(i, body) >= _GRID for i in found
    )


_GRID = {"nctaid", "ntid"}


def _registers(product: Instruction, body: Body) -> set[str]:
    """Return the sizes of grid and block that a product has as factors."""
    pending, found = list(product.operands), set[str]()
    while pending:
        i = _unconverted(pending.pop(), body)
        if i is not None and i.opcode in ("mul", "shl"):
            pending += i.operands
        elif i is not None and ".sreg." in i.callee:
            found.add(i.callee.split(".sreg.")[1].split(".")[0])
    return found


def _unconverted(value: Value, body: Body) -> Instruction | None:
    i = body.by_key.get(key(value))
    while i is not None and i.opcode in CONVERSIONS:
        i = body.by_key.get(key(i.operands[0]))
    return i


def takes_bounds(body: Body, points: PointsTo) -> bool:
    """Return whether the function divides a part of the iterations that its caller passes it:
    `distribute parallel for`.
    """
    for i in body:
        if i.callee.startswith(_INITS) and "dispatch" not in i.callee:
            bounds = points.targets(i.arguments[_LOWER_BOUND])
            return any(_is_parameter(v, body) for at in bounds for v in points.written(at))
    return False


def shared_count(flow: Flow, points: PointsTo, known: Mapping[str, Formula]) -> Formula | None:
    """Return how many iterations a function divides among the threads, from the `known` values of
    its parameters and variables; None if it is not computed from them.
    """
    body = flow.body
    init = next((i for i in body if i.callee.startswith(_INITS)), None)
    strided = grid_stride(flow) if init is None else None
    if strided is not None:
        return formula(strided[1], body, lambda name: None).with_formulas(known)
    if init is None or "dispatch" in init.callee:
        return None
    bounds = []
    for argument in (_LOWER_BOUND, _LOWER_BOUND + 1):
        stored = {v for at in points.targets(init.arguments[argument]) for v in points.written(at)}
        formulas = {
            formula(value, body, lambda name: None).with_formulas(known) for value in stored
        }
        # what is not known is stored after the call: the thread's own part
        plain = [f for f in formulas if f is not None]
        if len(plain) != 1:
            return None
        bounds.append(plain[0])
    low, high = bounds
    return high + low * Formula.number(-1) + Formula.number(1)


def _is_parameter(value: Value, body: Body) -> bool:
    while (i := body.by_key.get(key(value))) is not None and i.opcode in ("trunc", "zext", "sext"):
        value = i.operands[0]
    return bool(value.value_kind == llvm.ValueKind.argument)
