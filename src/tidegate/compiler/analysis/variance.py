"""Which values of a device function differ from one iteration of the region to another, and which
way its guards go.

An address that is the same for every iteration is one place that all read: however many iterations
there are, it is touched once.

A guard is ``if (i < n)``, where i is a thread's or an iteration's position and n is the same for
all. A grid has a few threads more than there are elements, and borders are few. LLVM's estimate for
any comparison, one half, would halve all accesses behind a guard; here nearly all threads pass it.
A value that is the same for all is compared with 0 to find out whether there is work; there is.
"""

from __future__ import annotations

from collections.abc import Collection, Set

from tidegate.compiler.analysis.flow import Edges, Flow, enter
from tidegate.compiler.analysis.points_to import PointsTo
from tidegate.compiler.ir.loops import Loop
from tidegate.compiler.ir.module import (
    MIRRORED,
    Instruction,
    Value,
    constant_int,
    key,
    predicate_of,
)

_OWN_TO_THREAD = (
    "omp_get_",
    "__kmpc_get_hardware_",
    "__kmpc_global_thread_num",
    "llvm.nvvm.read.ptx.sreg",
    "llvm.amdgcn.work",
)
_OWN_SREGS = (".tid.", ".ctaid.", ".laneid", ".warpid")


class Variance:
    """Tells the values of one function that vary.

    `varying`: names of the parameters that do. `positions` and `uniform`: keys of parameters and
    loads that are an iteration's number, or the same for all.
    `loop`: the shared loop, whose counter varies. The counters of inner loops do as well, unless
    they count to a constant or are among the `bounded` ones: otherwise it is not known how much of
    an object a single iteration walks through.
    """

    def __init__(
        self,
        flow: Flow,
        points: PointsTo,
        loop: Loop | None,
        varying: set[str],
        positions: Set[int] = frozenset(),
        uniform: Set[int] = frozenset(),
        bounded: Collection[Loop] = (),
    ):
        self._body, self._points = flow.body, points
        self._parameters = {key(p): p.name in varying for p in flow.body.parameters}
        self._positions, self._uniform = positions, uniform
        self._shared = loop.header if loop is not None else None
        known = flow.counted | set(bounded)
        self._counted = {each.header for each in known}
        self._headers = {each.header for each in flow.loops if each is loop or each not in known}
        self._known: dict[int, bool] = {}

    def varies(self, value: Value) -> bool:
        """Return whether a value differs between iterations."""
        pending, seen = [value], set[int]()
        while pending:
            at = key(pending.pop())
            if at in seen:
                continue
            seen.add(at)
            if self._known.get(at) or self._parameters.get(at):
                self._known[key(value)] = True
                return True
            i = self._body.by_key.get(at)
            if i is None or at in self._known:
                continue
            if self.is_source(i):
                self._known[key(value)] = self._known[at] = True
                return True
            pending.extend(i.arguments if i.callee else i.operands)
        self._known.update(dict.fromkeys(seen, False))
        return False

    def is_position(self, value: Value) -> bool:
        """Return whether a value is computed from the numbers of the thread and the iteration
        alone, not from data.
        """
        pending, seen, found = [value], set[int](), False
        while pending:
            at = key(pending.pop())
            i = self._body.by_key.get(at)
            found = found or at in self._positions
            if at in seen or i is None or at in self._positions or at in self._uniform:
                continue
            seen.add(at)
            if i.opcode == "phi" and i.block in (self._shared, *self._counted):
                found = found or i.block == self._shared
                continue
            if i.opcode in ("load", "phi", "atomicrmw", "cmpxchg"):
                return False
            found = found or self.is_source(i)
            pending.extend(i.arguments if i.callee else i.operands)
        return found

    def is_source(self, i: Instruction) -> bool:
        """Return whether an instruction's result differs between iterations by itself."""
        if i.key in self._uniform:
            return False
        if i.opcode == "phi":
            return i.block in self._headers
        if i.opcode == "load":
            # a thread's own variable; what other memory holds is the same for all that read it
            kinds = {origin.kind for origin, _ in self._points.targets(i.operands[0])}
            return "stack" in kinds
        if i.opcode in ("atomicrmw", "cmpxchg"):
            return True  # each gets another ticket
        if i.callee.startswith("llvm.nvvm.read.ptx.sreg"):
            return any(name in i.callee for name in _OWN_SREGS)
        return i.callee.startswith(_OWN_TO_THREAD)


_ALMOST = 1 - 1e-6
_TO_THE_SIDE = 1  # positions are compared with 0 and 1 for the sake of borders


def with_guards(flow: Flow, variance: Variance) -> Edges:
    """Return the steps' probabilities in a kernel's function. Its loops turn at least once."""
    edges = dict(flow.edges)
    for loop in flow.loops:
        enter(edges, flow, loop)
    for block, following in flow.successors.items():
        branch = flow.body.blocks[block][-1] if flow.body.blocks[block] else None
        if branch is None or branch.opcode != "br" or len(following) != 2:
            continue
        inside = [loop.blocks for loop in flow.loops if block in loop.blocks]
        if any(b not in blocks for blocks in inside for b in following):
            continue  # it leaves a loop
        expected = _expected(branch.operands[0], flow, variance)
        if expected is not None:
            true, false = branch.successors()
            likely, rare = (true, false) if expected else (false, true)
            edges[block, likely], edges[block, rare] = _ALMOST, 1 - _ALMOST
    return edges


def _expected(condition: Value, flow: Flow, variance: Variance) -> bool | None:
    """Return what nearly all threads find; None if the condition is no guard."""
    i = flow.body.by_key.get(key(condition))
    if i is None:
        return None
    if i.opcode == "icmp":
        return _compared(i, variance)
    parts = i.operands
    if i.opcode == "select":  # a && b is select a, b, false; a || b is select a, true, b
        first, true, false = i.operands
        is_and = constant_int(false) == 0
        if not is_and and constant_int(true) != 1:
            return None
        parts = (first, true if is_and else false)
    elif i.opcode in ("and", "or"):
        is_and = i.opcode == "and"
    elif i.opcode == "xor" and constant_int(i.operands[1]) in (1, -1):
        inner = _expected(i.operands[0], flow, variance)
        return None if inner is None else not inner
    else:
        return None
    found = {_expected(part, flow, variance) for part in parts}
    return is_and if found == {is_and} else None


def _compared(i: Instruction, variance: Variance) -> bool | None:
    predicate = predicate_of(i)
    if predicate is None:
        return None
    _, kind = predicate
    left, right = i.operands
    if variance.is_position(right) and not variance.varies(left):
        left, right, kind = right, left, MIRRORED[kind]
    below = {"lt": True, "le": True, "gt": False, "ge": False}.get(kind)
    bound = constant_int(right)
    if below is not None and bound is not None and not variance.varies(left):
        # a size is positive: the precondition of a loop that counts to it
        return not below if bound + (kind in ("gt", "le")) in (0, 1) else None
    if not variance.is_position(left) or variance.varies(right):
        return None
    if below is None or bound is None:
        return below
    return not below if -_TO_THE_SIDE <= bound <= _TO_THE_SIDE else None
