"""Loops that count to a constant: how often the branch that leaves them runs.

LLVM's scalar evolution finds this and more, but llvmlite does not show it. After -O1 the loops that
it could count have one shape: a phi that starts at a constant, a constant step, and a comparison
with a constant. Such a loop is counted by running it.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator

from tidegate.compiler.ir.loops import Loop, Successors
from tidegate.compiler.ir.module import (
    Body,
    Instruction,
    Value,
    constant_int,
    in_bits,
    int_bits,
    key,
)

MOST_TRIPS = 1_000_000
"""A loop that runs longer keeps LLVM's estimate: the difference would change no decision."""

_COMPARE: dict[str, Callable[[int, int], bool]] = {
    "eq": operator.eq,
    "ne": operator.ne,
    **{sign + name: getattr(operator, name) for sign in "su" for name in ("lt", "le", "gt", "ge")},
}


def counted_exits(body: Body, loop: Loop, successors: Successors) -> Iterator[tuple[str, str, int]]:
    """Yield (block, block outside, times) of branches that leave the loop at their times-th run, if
    nothing leaves it before.
    """
    for block in (loop.header, *loop.latches):  # blocks of every iteration
        branch = body.blocks[block][-1]
        if branch.opcode != "br" or len(branch.operands) != 3:
            continue
        true, false = branch.successors()
        if (true in loop.blocks) == (false in loop.blocks):
            continue
        times = _times(body, loop, branch, leaves_on=true not in loop.blocks)
        if times is not None:
            yield block, true if true not in loop.blocks else false, times


def _times(body: Body, loop: Loop, branch: Instruction, leaves_on: bool) -> int | None:
    condition = body.by_key.get(key(branch.operands[0]))
    if condition is None or condition.opcode != "icmp":
        return None
    words = condition.text.split(" icmp ", 1)[1].split()
    predicate = next((word for word in words if word in _COMPARE), "")
    bound = constant_int(condition.operands[1])
    counter = _counter(body, loop, condition.operands[0])
    if not predicate or bound is None or counter is None:
        return None
    bits, signed = int_bits(condition.operands[1]), not predicate.startswith("u")
    value, step = counter
    bound = in_bits(bound, bits, signed)
    for times in range(1, MOST_TRIPS + 1):
        if _COMPARE[predicate](in_bits(value, bits, signed), bound) == leaves_on:
            return times
        value += step
    return None


def _counter(body: Body, loop: Loop, value: Value) -> tuple[int, int] | None:
    """Return (first value compared, step) of a counter, compared before or after its step."""
    i = body.by_key.get(key(value))
    if i is None:
        return None
    if i.opcode == "phi":
        return _start_and_step(body, loop, i)
    phi = body.by_key.get(key(i.operands[0])) if i.opcode == "add" else None
    found = _start_and_step(body, loop, phi) if phi is not None and phi.opcode == "phi" else None
    by = constant_int(i.operands[1]) if i.opcode == "add" else None
    return (found[0] + by, found[1]) if found is not None and by is not None else None


def _start_and_step(body: Body, loop: Loop, phi: Instruction) -> tuple[int, int] | None:
    if phi.block != loop.header:
        return None
    start: set[int | None] = set()
    step: set[int | None] = set()
    for value, block in zip(phi.operands, phi.ref.incoming_blocks, strict=True):
        if block.name in loop.blocks:
            step.add(_step(body, phi, value))
        else:
            start.add(constant_int(value))
    if len(start) != 1 or len(step) != 1:
        return None
    first, by = start.pop(), step.pop()
    return None if first is None or not by else (first, by)


def _step(body: Body, phi: Instruction, value: Value) -> int | None:
    """Return the constant that a value adds to a phi."""
    i = body.by_key.get(key(value))
    if i is None or i.opcode != "add" or key(i.operands[0]) != phi.key:
        return None
    return constant_int(i.operands[1])
