"""Guards of kernels: ``if (i < n)``, where i is a thread's or an iteration's position and n is the
same for all.

A grid has a few threads more than there are elements, and borders are few. LLVM's estimate for any
comparison, one half, would halve all accesses behind it. Here the way that nearly all threads take
is taken. What is the same for all is compared with 0 to find out whether there is anything to do;
there is.
"""

from __future__ import annotations

from tidegate.compiler.analysis.flow import Flow
from tidegate.compiler.analysis.variance import Variance
from tidegate.compiler.analysis.ways import enter
from tidegate.compiler.ir.module import Instruction, Value, constant_int, key
from tidegate.compiler.ir.predicates import MIRRORED, predicate_of
from tidegate.compiler.ir.probabilities import Edges

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
