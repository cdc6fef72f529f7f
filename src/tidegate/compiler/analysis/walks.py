"""How far an iteration walks through memory, and how far apart the addresses of one access lie.

An address that a loop does not change is accessed once, however often the loop turns. Where the
kernel's arguments say how often it turns, the walk is a formula; the estimate is LLVM's.

Memory moves in pages. An access that goes down a column touches a page in every row, however few
bytes it reads; one whose address comes from data may touch any page each time.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Set
from dataclasses import dataclass

from tidegate.compiler.analysis.flow import Edges, Flow
from tidegate.compiler.analysis.points_to import PointsTo
from tidegate.compiler.analysis.sizes import Formula, formula
from tidegate.compiler.analysis.trip_counts import Count, counted_exits, steps_of
from tidegate.compiler.analysis.variance import Variance
from tidegate.compiler.ir.layout import gep_steps
from tidegate.compiler.ir.loops import Loop
from tidegate.compiler.ir.module import CONVERSIONS, Instruction, Value, key
from tidegate.compiler.model import PAGE

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

    def reach(self, block: str, address: Value | None = None) -> Reach:
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


UNKNOWN = Formula.variable("%")
"""A number that no variable gives."""

_SAME_ADDRESS = (*CONVERSIONS, "bitcast", "addrspacecast", "freeze", "inttoptr", "ptrtoint")


@dataclass(frozen=True)
class AddressPattern:
    """How the address of an access changes."""

    place: str  # the address but for a constant: fields of one structure have the same
    apart: Formula | None  # bytes to the nearest other; None: adjacent, or not known
    endless: bool  # whether a loop whose length is not known steps through memory

    def apart_of(self, width: int) -> Formula | None:
        """Return what lies between accesses of so many bytes; None if they are adjacent."""
        if self.apart is None or (not self.apart.variables() and self.apart.at({}) <= width):
            return None
        return self.apart


class Strides:
    """The patterns of one function's accesses.

    `known`: values of parameters and variables, in those of the kernel. `shared`: the loop that the
    region divides among its threads. `bounded`: loops whose turns are known.
    """

    def __init__(
        self,
        flow: Flow,
        points: PointsTo,
        variance: Variance,
        known: Mapping[str, Formula],
        shared: Loop | None,
        bounded: Collection[Loop],
    ):
        self._flow, self._body, self._points = flow, flow.body, points
        self._variance, self._known, self._shared = variance, known, shared
        self._bounded = flow.counted | set(bounded)
        self._loops = {loop.header: loop for loop in flow.loops}
        self._named = {f"%{i.ref.name}": i for i in flow.body}
        self._varying = {p.name for p in flow.body.parameters if variance.varies(p)}
        self._formulas: dict[int, Formula] = {}
        self._data: dict[int, bool] = {}

    def pattern(self, pointer: Value) -> AddressPattern:
        """Return how an address changes."""
        offset = self._offset(pointer)
        strides: list[Formula] = []
        opaque = scattered = endless = False
        for variable in sorted(offset.variables()):
            step = self._step(variable)
            if step is not None:
                by, loop = step
                strides.append(self._coefficient(offset, variable, by))
                endless |= loop is not None and loop not in self._bounded
            elif self._varies(variable):
                data = self._is_data(variable)
                scattered, opaque = scattered or data, opaque or not data
        moving = Formula(tuple((term, count) for term, count in offset.terms if term))
        apart = None if opaque else _nearest(strides, scattered)
        return AddressPattern(f"{self._body.name}: {moving}", apart, endless)

    def _offset(self, pointer: Value) -> Formula:
        """Return the bytes from the start of the object."""
        total = Formula(())
        while (i := self._body.by_key.get(key(pointer))) is not None:
            if i.opcode == "getelementptr":
                steps = gep_steps(i.text, self._body.structs) or []
                for (by, times), index in zip(steps, i.operands[1:], strict=False):
                    many = self._formula(index) if times is None else Formula.number(times)
                    total += many * Formula.number(by)
            elif i.opcode not in _SAME_ADDRESS:
                return total + Formula.variable(f"%{i.ref.name}")
            pointer = i.operands[0]
        return total + Formula.variable(pointer.name)

    def _formula(self, value: Value) -> Formula:
        return formula(value, self._body, lambda name: None, self._formulas)

    def _step(self, variable: str) -> tuple[int, Loop | None] | None:
        """Return what a counter adds in each turn, and its loop; None as the loop for the number of
        a thread or of an iteration.
        """
        i = self._named.get(variable)
        if i is None or variable in self._known:
            return None
        if i.opcode == "phi":
            loop = self._loops.get(i.block)
            if loop is not None and loop is self._shared:
                return 1, None
            by = steps_of(self._body, loop, i) if loop is not None else None
            return (by, loop) if by is not None else None
        return (1, None) if i.callee and self._variance.is_source(i) else None

    def _coefficient(self, offset: Formula, variable: str, by: int) -> Formula:
        """Return how many bytes on a counter's next turn is."""
        terms = [(list(term), count * by) for term, count in offset.terms if variable in term]
        for term, _ in terms:
            term.remove(variable)
        coefficient = Formula(())
        for term, count in terms:
            coefficient += Formula(((tuple(term), count),))
        return coefficient.with_formulas(self._known) or UNKNOWN

    def _is_data(self, variable: str) -> bool:
        """Return whether a value comes from memory that other iterations may find otherwise."""
        first = self._named.get(variable)
        pending, seen = [first], set[int]()
        while pending and first is not None:
            i = pending.pop()
            if i is None or i.key in seen or self._data.get(i.key) is False:
                continue
            seen.add(i.key)
            own = i.opcode == "load" and self._is_shared_memory(i)
            if self._data.get(i.key) or (own and self._variance.varies(i.operands[0])):
                self._data[first.key] = True
                return True
            if i.opcode != "load":
                operands = i.arguments if i.callee else i.operands
                pending.extend(self._body.by_key.get(key(value)) for value in operands)
        self._data.update(dict.fromkeys(seen, False))
        return False

    def _is_shared_memory(self, load: Instruction) -> bool:
        kinds = {origin.kind for origin, _ in self._points.targets(load.operands[0])}
        return bool(kinds) and "stack" not in kinds

    def _varies(self, variable: str) -> bool:
        if (i := self._named.get(variable)) is None:
            return variable in self._varying
        return variable not in self._known and self._variance.varies(i.ref)


def _nearest(strides: list[Formula], scattered: bool) -> Formula | None:
    """Return the least stride; of those in variables the plainest, which counts the inner index."""
    numbers = [abs(stride.at({})) for stride in strides if not stride.variables()]
    if numbers:
        return Formula.number(min(numbers))
    if strides:
        return min(strides, key=lambda stride: (len(str(stride)), str(stride)))
    return Formula.number(PAGE) if scattered else None
