"""The loop that a target region shares out among its threads, found in the device's IR by its
structure.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import llvmlite.binding as llvm

from tidegate.compiler.analysis.flow import Flow
from tidegate.compiler.analysis.points_to import Place, PointsTo
from tidegate.compiler.ir.loops import Loop
from tidegate.compiler.ir.module import Body, Instruction, Value, key

_INITS = (
    "__kmpc_for_static_init",
    "__kmpc_distribute_static_init",
    "__kmpc_dist_for_static_init",
    "__kmpc_dispatch_init",
)
_LOWER_BOUND = 4  # which argument of a static init is the address of the lower bound
_OUTLINED_OWN = 2  # an outlined function's own first parameters: the thread's and the team's number


@dataclass(frozen=True)
class DeviceCall:
    """A call of a function whose body is at hand, direct or through the OpenMP runtime."""

    instruction: Instruction
    callee: str
    arguments: tuple[set[Place], ...]  # where each of the callee's parameters points, in order


def device_calls(body: Body, points: PointsTo, defined: set[str]) -> Iterator[DeviceCall]:
    """The calls of a function that lead on to the region's code."""
    for i in body:
        # ident, count, function, arguments...
        if i.callee in ("__kmpc_fork_call", "__kmpc_fork_teams"):
            given = [points.of(a) for a in i.arguments[3:]]
            yield DeviceCall(i, i.arguments[2].name, (*([set()] * _OUTLINED_OWN), *given))
        elif i.callee.startswith(
            "__kmpc_parallel_"
        ):  # on GPUs: ..., function (5), wrapper, array of arguments (7), count
            array = points.of(i.arguments[7])
            count = int(i.arguments[8].get_constant_value()) if i.arguments[8].is_constant else 0
            given = [
                {p for origin, _ in array for p in points.at((origin, 8 * n))} for n in range(count)
            ]
            yield DeviceCall(i, i.arguments[5].name, (*([set()] * _OUTLINED_OWN), *given))
        elif i.callee in defined:
            yield DeviceCall(i, i.callee, tuple(points.of(a) for a in i.arguments))


def shared_loop(flow: Flow) -> Loop | None:
    """The outermost loop that comes after the call which deals out the iterations; None without
    such a call.
    """
    init = next((i for i in flow.body if i.callee.startswith(_INITS)), None)
    if init is None:
        return None
    after = _reachable(flow, init.block)
    inside = {b for loop in flow.loops if init.block in loop.blocks for b in loop.blocks}
    return next(
        (loop for loop in flow.loops if loop.header in after and not inside & {loop.header}), None
    )


def takes_bounds(body: Body, points: PointsTo) -> bool:
    """Whether the function shares out a part of the iterations that its caller hands it:
    `distribute parallel for`.
    """
    for i in body:
        if i.callee.startswith(_INITS) and "dispatch" not in i.callee:
            bounds = points.of(i.arguments[_LOWER_BOUND])
            return any(
                _is_parameter(value, body) for place in bounds for value in points.written(place)
            )
    return False


def _is_parameter(value: Value, body: Body) -> bool:
    while (i := body.by_key.get(key(value))) is not None and i.opcode in ("trunc", "zext", "sext"):
        value = i.operands[0]
    return bool(value.value_kind == llvm.ValueKind.argument)


def _reachable(flow: Flow, block: str) -> set[str]:
    seen: set[str] = set()
    ahead = [block]
    while ahead:
        for after in flow.successors[ahead.pop()]:
            if after not in seen:
                seen.add(after)
                ahead.append(after)
    return seen
