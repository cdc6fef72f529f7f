"""Ways of the control flow that are taken, or not, whatever LLVM estimates for code as a whole."""

from __future__ import annotations

from collections.abc import Sequence

from tidegate.compiler.analysis.flow import Flow
from tidegate.compiler.ir.loops import Loop
from tidegate.compiler.ir.probabilities import Edges

NEVER = 1e-9
"""The probability of a way that is not taken: not 0, or nothing behind it would count."""


def take_others(edges: Edges, flow: Flow, block: str, dead: Sequence[str]) -> None:
    """Take none of the ways `dead` on from a block, but the others in their proportion."""
    others = [b for b in flow.successors[block] if b not in dead]
    if not dead or not others:
        return
    total = sum(edges[block, b] for b in others)
    for b in others:
        share = edges[block, b] / total if total else 1 / len(others)
        edges[block, b] = share * (1 - NEVER)
    for b in dead:
        edges[block, b] = NEVER / len(dead)


def enter(edges: Edges, flow: Flow, loop: Loop) -> None:
    """Let the branch before a loop, which passes it by if its condition fails at once, enter it."""
    exits = {b for block in loop.blocks for b in flow.successors[block] if b not in loop.blocks}
    past = {after for b in exits for after in _straight_on(b, flow)}
    for block, following in flow.successors.items():
        if block in loop.blocks or len(following) != 2:
            continue
        enters = [b for b in following if loop.header in _straight_on(b, flow)]
        passes = [b for b in following if past & _straight_on(b, flow)]
        if len(enters) == 1 and passes and enters != passes:
            take_others(edges, flow, block, passes)


def _straight_on(block: str, flow: Flow) -> set[str]:
    """Return a block and those that certainly follow it, up to a branch."""
    seen = {block}
    while len(following := flow.successors[block]) == 1 and following[0] not in seen:
        block = following[0]
        seen.add(block)
    return seen
