"""Loops with a counter: how often the branch that leaves them runs.

LLVM's scalar evolution finds this and more, but llvmlite does not show it. After -O1 the loops that
it could count have one shape: a phi with a constant step, and a comparison with a bound that the
loop does not change.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tidegate.compiler.ir.layout import gep_offset
from tidegate.compiler.ir.loops import Loop, Successors
from tidegate.compiler.ir.module import (
    CONVERSIONS,
    MIRRORED,
    OPPOSITE,
    Body,
    Instruction,
    Value,
    constant_int,
    in_bits,
    int_bits,
    key,
    predicate_of,
)

MOST_TRIPS = 1_000_000
"""A loop that runs longer keeps LLVM's estimate: the difference would change no decision."""


@dataclass(frozen=True)
class Count:
    """A branch that leaves a loop when a counter passes a bound, if nothing leaves it before.

    It runs ceil((bound - start + beyond) / step) times; for a counter that counts down, start and
    bound change places.
    """

    block: str
    out: str  # the block outside
    times: int | None  # how often the branch runs, if constants say so
    start: Value | int
    step: int
    bound: Value
    beyond: int


def counted_exits(body: Body, loop: Loop, successors: Successors) -> Iterator[Count]:
    """Yield the branches that leave a loop by a counter."""
    for block in dict.fromkeys((loop.header, *loop.latches)):  # blocks of every iteration
        branch = body.blocks[block][-1]
        if branch.opcode != "br" or len(branch.operands) != 3:
            continue
        true, false = branch.successors()
        if (true in loop.blocks) == (false in loop.blocks):
            continue
        leaves_on = true not in loop.blocks
        condition = body.by_key.get(key(branch.operands[0]))
        if condition is not None and condition.opcode == "icmp":
            out = true if leaves_on else false
            yield from _count(body, loop, condition, leaves_on, block, out)


def _count(
    body: Body, loop: Loop, condition: Instruction, leaves_on: bool, block: str, out: str
) -> Iterator[Count]:
    predicate = predicate_of(condition)
    if predicate is None:
        return
    sign, kind = predicate
    left, right = condition.operands
    for counted, bound, leaves in ((left, right, kind), (right, left, MIRRORED[kind])):
        counter = _counter(body, loop, counted)
        if counter is None or not _is_fixed(bound, body, loop):
            continue
        start, by, step = counter
        if not leaves_on:
            leaves = OPPOSITE[leaves]
        times = None
        first, last = start if isinstance(start, int) else None, constant_int(bound)
        if first is not None and last is not None:
            bits = int_bits(bound)
            steps = first_true(leaves, first + by, step, last, bits, sign != "u")
            times = None if steps is None or steps >= MOST_TRIPS else steps + 1
        elif leaves not in (("ge", "gt", "eq") if step > 0 else ("le", "lt", "eq")):
            continue
        beyond = abs(step) - (by if step > 0 else -by) + (leaves in ("gt", "lt"))
        yield Count(block, out, times, start, step, bound, beyond)
        return


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
        steps = (
            max(0, -((value - edge) // step)) if step > 0 else max(0, -((edge - value) // -step))
        )
        last = (most - value) // step if step > 0 else (value - least) // -step
        if low <= value + steps * step <= high and steps <= last:
            return done + steps
        done += last + 1
        value = in_bits(value + (last + 1) * step, bits, signed)
    return None


def _counter(body: Body, loop: Loop, value: Value) -> tuple[Value | int, int, int] | None:
    """Return (start, what is added before the comparison, step) of a counter."""
    i = body.by_key.get(key(value))
    while i is not None and i.opcode in ("sext", "zext", "trunc"):
        i = body.by_key.get(key(i.operands[0]))
    if i is None:
        return None
    if i.opcode == "phi":
        found = _start_and_step(body, loop, i)
        return (found[0], 0, found[1]) if found is not None else None
    phi = body.by_key.get(key(i.operands[0])) if i.opcode == "add" else None
    found = _start_and_step(body, loop, phi) if phi is not None and phi.opcode == "phi" else None
    by = constant_int(i.operands[1]) if i.opcode == "add" else None
    return (found[0], by, found[1]) if found is not None and by is not None else None


def steps_of(body: Body, loop: Loop, phi: Instruction) -> int | None:
    """Return what a number, or a pointer in bytes, gains in every turn of a loop; None if that is
    no constant.
    """
    again = [
        value
        for value, block in zip(phi.operands, phi.ref.incoming_blocks, strict=True)
        if block.name in loop.blocks
    ]
    if phi.block != loop.header or len(again) != 1:
        return None
    i = body.by_key.get(key(again[0]))
    if i is not None and i.opcode == "getelementptr" and key(i.operands[0]) == phi.key:
        return gep_offset(i.text, body.structs)
    return _step(body, phi, again[0])


def _start_and_step(body: Body, loop: Loop, phi: Instruction) -> tuple[Value | int, int] | None:
    if phi.block != loop.header:
        return None
    start: dict[int, Value] = {}
    step: set[int | None] = set()
    for value, block in zip(phi.operands, phi.ref.incoming_blocks, strict=True):
        if block.name in loop.blocks:
            step.add(_step(body, phi, value))
        else:
            start[key(value)] = value
    by = step.pop() if len(step) == 1 else None
    if len(start) != 1 or not by:
        return None
    first = next(iter(start.values()))
    constant = constant_int(first)
    return (first if constant is None else constant), by


def _step(body: Body, phi: Instruction, value: Value) -> int | None:
    """Return the constant that a value adds to a phi."""
    i = body.by_key.get(key(value))
    if i is None or i.opcode != "add" or key(i.operands[0]) != phi.key:
        return None
    return constant_int(i.operands[1])


def _is_fixed(value: Value, body: Body, loop: Loop) -> bool:
    """Return whether a value does not change in a loop, even if it is loaded in each turn."""
    i = body.by_key.get(key(value))
    while i is not None and i.block in loop.blocks and i.opcode in CONVERSIONS:
        i = body.by_key.get(key(i.operands[0]))
    if i is None or i.block not in loop.blocks:
        return True
    return i.key in body.changed_in and not body.changed_in[i.key] & loop.blocks
