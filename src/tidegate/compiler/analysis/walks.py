"""How far an iteration walks through memory: the loops within it, and the addresses that change in
them.

An address that a loop does not change is accessed once, however often the loop turns. Where the
kernel's arguments say how often it turns, the walk is a formula; the estimate is LLVM's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass

from tidegate.compiler.analysis.flow import Flow
from tidegate.compiler.analysis.sizes import Formula, formula
from tidegate.compiler.analysis.trip_counts import Count, counted_exits
from tidegate.compiler.ir.loops import Loop
from tidegate.compiler.ir.module import Value, key
from tidegate.compiler.ir.probabilities import Edges

ONCE = Formula.number(1)
_CHANGING = ("phi", "load", "call", "invoke", "atomicrmw", "cmpxchg", "alloca")


@dataclass(frozen=True)
class Reach:
    """How often something is done in a run of a function."""

    times: float  # estimated
    turns: Formula = ONCE  # of the loops around it whose turns are known, multiplied
    each: float = 0.0  # times in one of those turns

    def within(self, outer: Reach) -> Reach:
        """Return it for a function that is itself called so often."""
        product = self.turns * outer.turns
        return Reach(self.times * outer.times, product, self.each * outer.each)


def known_turns(
    flow: Flow, shared: Loop | None, known: Mapping[str, Formula]
) -> dict[Loop, Formula]:
    """Return the turns of the loops whose bound follows from the kernel's arguments (#0, #1, …)."""
    found = {}
    for loop in flow.loops:
        if loop is shared or loop in flow.counted:
            continue
        for count in counted_exits(flow.body, loop, flow.successors):
            covered = covered_by(count, flow, lambda name: None).with_formulas(known)
            if covered is not None and covered.variables() and abs(count.step) == 1:
                found[loop] = covered
                break
    return found


def covered_by(count: Count, flow: Flow, name: Callable[[str], str | None]) -> Formula:
    """Return what a loop's counter covers, in steps of its own."""
    covered = formula(count.bound, flow.body, name)
    start = count.start
    first = Formula.number(start) if isinstance(start, int) else formula(start, flow.body, name)
    covered += first * Formula.number(-1)
    if count.step < 0:
        covered *= Formula.number(-1)
    return covered + Formula.number(count.beyond)


class Walks:
    """The loops of one function within the shared loop.

    `turns`: of the loops whose turns are known by a formula. `fixed`: keys of loads of variables
    that the function does not set.
    """

    def __init__(
        self,
        flow: Flow,
        edges: Edges,
        frequency: Mapping[str, float],
        shared: Loop | None,
        turns: Mapping[Loop, Formula],
        fixed: Set[int] = frozenset(),
    ):
        self._body, self._frequency, self._turns = flow.body, frequency, turns
        self._fixed = fixed
        around = shared.blocks if shared is not None else frozenset[str]()
        inner = [loop for loop in flow.loops if not loop.blocks >= around or not around]
        self._loops = [(loop, _turns_per_entry(loop, edges, frequency)) for loop in inner]
        self._changes: dict[tuple[int, str], bool] = {}

    def of(self, block: str, address: Value | None = None) -> Reach:
        """Return how often a block runs; with an address, at how many addresses."""
        times, each, product = self._frequency[block], 1.0, ONCE
        for loop, turns in self._loops:
            if block not in loop.blocks:
                continue
            if address is not None and not self._changed(address, loop):
                times /= turns
            elif loop in self._turns:
                product, each = product * self._turns[loop], each / turns
        return Reach(times, product, times * each)

    def _changed(self, value: Value, loop: Loop) -> bool:
        """Return whether a value may differ from one turn of a loop to the next."""
        pending, seen = [value], set[int]()
        while pending:
            at = key(pending.pop())
            if at in seen:
                continue
            seen.add(at)
            i = self._body.by_key.get(at)
            known = self._changes.get((at, loop.header))
            if i is None or i.block not in loop.blocks or known is False or at in self._fixed:
                continue
            if i.opcode in _CHANGING or known:
                self._changes[key(value), loop.header] = True
                return True
            pending.extend(i.operands)
        self._changes.update(dict.fromkeys(((at, loop.header) for at in seen), False))
        return False


def _turns_per_entry(loop: Loop, edges: Edges, frequency: Mapping[str, float]) -> float:
    back = sum(frequency[latch] * edges.get((latch, loop.header), 0.0) for latch in loop.latches)
    entered = frequency[loop.header] - back
    return max(1.0, frequency[loop.header] / entered) if entered > 0 else 1.0
