"""Which values of a device function differ from one iteration of the region to another.

An address that is the same for every iteration is one place that all read: however many iterations
there are, it is touched once.
"""

from __future__ import annotations

from collections.abc import Collection, Set

from tidegate.compiler.analysis.flow import Flow
from tidegate.compiler.analysis.points_to import PointsTo
from tidegate.compiler.ir.loops import Loop
from tidegate.compiler.ir.module import Instruction, Value, key

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
            kinds = {origin.kind for origin, _ in self._points.of(i.operands[0])}
            return "stack" in kinds
        if i.opcode in ("atomicrmw", "cmpxchg"):
            return True  # each gets another ticket
        if i.callee.startswith("llvm.nvvm.read.ptx.sreg"):
            return any(name in i.callee for name in _OWN_SREGS)
        return i.callee.startswith(_OWN_TO_THREAD)
