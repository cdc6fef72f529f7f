"""How many bytes a call allocates, as a formula."""

from __future__ import annotations

from collections.abc import Iterator

from tidegate.compiler.analysis.flow import Flow
from tidegate.compiler.analysis.memory import Memory
from tidegate.compiler.analysis.sizes import Formula, Named, formula
from tidegate.compiler.analysis.trip_counts import counted_exits
from tidegate.compiler.analysis.walks import covered_by
from tidegate.compiler.ir.calls import CHANNEL, FREES, Allocator
from tidegate.compiler.ir.layout import POINTER_BYTES
from tidegate.compiler.ir.module import Body, Instruction, Value, constant_int

_TEXEL = 4  # bytes of an array's element if nothing describes it: a float's or an int's
_ONE = Formula.number(1)


def allocated_bytes(
    call: Instruction, allocator: Allocator, body: Body, memory: Memory, name: Named
) -> Formula:
    """Return the bytes that a call allocates. The padding of rows is not counted."""
    lengths: list[Formula | None] = [
        formula(call.arguments[at], body, name) for at in allocator.sizes
    ]
    if allocator.extent is not None:
        lengths += _extent(call.arguments[allocator.extent], body, memory, name)
    size = _ONE
    for n, length in enumerate(lengths):
        unknown = Formula.variable(f"%{call.ref.name}.{n}")
        length = unknown if length is None else length
        flat = allocator.element is not None and not length.terms  # an array without that dimension
        size = size * (_ONE if flat else length)
    if allocator.element is not None:
        size = size * Formula.number(_element(call.arguments[allocator.element], body, memory))
    return size


def turns_to_keep(call: Instruction, flow: Flow, name: Named) -> Formula | None:
    """Return how often the loops around an allocation make it, if all their turns are known and
    none of them frees memory.
    """
    times = _ONE
    for loop in (loop for loop in flow.loops if call.block in loop.blocks):
        if any(i.callee in FREES for block in loop.blocks for i in flow.body.blocks[block]):
            return None
        counts = list(counted_exits(flow.body, loop, flow.successors))
        known = next((count.times for count in counts if count.times), None)
        covered = covered_by(counts[0], flow, name) if counts and known is None else None
        if known is not None:
            times = times * Formula.number(known)
        elif covered is not None and abs(counts[0].step) == 1 and _is_named(covered):
            times = times * covered
        else:
            return None
    return times


def _is_named(length: Formula) -> bool:
    return not any(variable.startswith("%") for variable in length.variables())


def _extent(pointer: Value, body: Body, memory: Memory, name: Named) -> Iterator[Formula | None]:
    """Yield width, height and depth, as far as one value is stored as each."""
    places = memory.points.targets(pointer)
    origin, start = next(iter(places)) if len(places) == 1 else (None, None)
    for n in range(3):
        if origin is None or start is None:
            yield None
            continue
        stored = memory.points.written((origin, start + n * POINTER_BYTES))
        yield formula(stored[0], body, name) if len(stored) == 1 else None


def _element(channel: Value, body: Body, memory: Memory) -> int:
    """Return the bytes of an array's element, from the call that describes its channel; where that
    is not found but all channels of the program are alike, from any.
    """
    described = {}
    for i in body:
        if i.callee in CHANNEL and len(i.arguments) >= 5:
            bits = [constant_int(argument) for argument in i.arguments[-5:-1]]
            described[i.key] = sum(n or 0 for n in bits) // 8, i.arguments[0]
    places = memory.points.targets(channel)
    own = {n for n, to in described.values() if memory.points.targets(to) & places}
    sizes = own or {n for n, _ in described.values()}
    return sizes.pop() if len(sizes) == 1 else _TEXEL
