"""Loops that count to a constant: how often the branch that leaves them runs.

LLVM's scalar evolution finds this and more, but llvmlite does not show it. After -O1 the loops that
it could count have one shape: a phi that starts at a constant, a constant step, and a comparison
with a constant.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

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

_OPPOSITE = {"eq": "ne", "ne": "eq", "lt": "ge", "ge": "lt", "gt": "le", "le": "gt"}
_PREDICATE = re.compile(r"\bicmp (?:samesign )?([su]?)(eq|ne|lt|le|gt|ge)\b")


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
    predicate = _PREDICATE.search(condition.text)
    bound = constant_int(condition.operands[1])
    counter = _counter(body, loop, condition.operands[0])
    if predicate is None or bound is None or counter is None:
        return None
    sign, kind = predicate.groups()
    bits = int_bits(condition.operands[1])
    steps = first_true(kind if leaves_on else _OPPOSITE[kind], *counter, bound, bits, sign != "u")
    return None if steps is None or steps >= MOST_TRIPS else steps + 1


def first_true(
    kind: str, start: int, step: int, bound: int, bits: int, signed: bool = True
) -> int | None:
    """Return the least n for which ``start + n * step`` compares so with the bound, in a register
    of so many bits; None if it wraps around more than once before.

    >>> first_true("ge", 0, 3, 10, 32), first_true("ge", 9, -1, 10, 32, signed=False)
    (4, 10)
    """
    least = -(1 << bits - 1) if signed else 0
    most = least + (1 << bits) - 1
    value, bound = in_bits(start, bits, signed), in_bits(bound, bits, signed)
    if kind == "ne":
        return 0 if value != bound else 1 if step % (1 << bits) else None
    ranges = {
        "eq": (bound, bound),
        "lt": (least, bound - 1),
        "le": (least, bound),
        "gt": (bound + 1, most),
        "ge": (bound, most),
    }
    low, high = ranges[kind]
    if low > high or not step:
        return 0 if low <= value <= high else None
    done = 0
    for _ in range(2):  # before it wraps around, and after
        edge = low if step > 0 else high
        steps = max(0, -((value - edge) // step)) if step > 0 else max(0, -((edge - value) // -step))
        last = (most - value) // step if step > 0 else (value - least) // -step
        if low <= value + steps * step <= high and steps <= last:
            return done + steps
        done += last + 1
        value = in_bits(value + (last + 1) * step, bits, signed)
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
