"""Dominators, natural loops and reachability of a control-flow graph, which llvmlite lacks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeVar

Successors = Mapping[str, tuple[str, ...]]
_Node = TypeVar("_Node", str, int)


def reachable(start: str, successors: Mapping[str, Iterable[str]]) -> set[str]:
    """Return the nodes reachable from ``start``; itself only if a path leads back to it."""
    seen: set[str] = set()
    pending = [start]
    while pending:
        new = set(successors.get(pending.pop(), ())) - seen
        seen |= new
        pending.extend(new)
    return seen


def in_cycles(successors: Mapping[str, Iterable[str]]) -> set[str]:
    """Return the nodes from which a path leads back to themselves."""
    return {
        node
        for component in components(successors)
        if len(component) > 1 or component[0] in successors[component[0]]
        for node in component
    }


def components(successors: Mapping[_Node, Iterable[_Node]]) -> Iterator[list[_Node]]:
    """Yield the sets of nodes that reach each other, each after those that it leads to (Tarjan).

    Successors that are no nodes themselves are passed over.
    """
    number: dict[_Node, int] = {}
    low: dict[_Node, int] = {}  # of nodes that are in no component yet
    waiting: list[_Node] = []
    for root in successors:
        stack: list[tuple[_Node, Iterator[_Node]]] = []
        after: _Node | None = None if root in number else root
        while after is not None or stack:
            if after is not None:
                number[after] = low[after] = len(number)
                waiting.append(after)
                stack.append((after, iter(successors[after])))
            node, following = stack[-1]
            after = next((s for s in following if s in successors and s not in number), None)
            if after is not None:
                continue
            stack.pop()
            low[node] = min([low[node], *(low[s] for s in successors[node] if s in low)])
            if low[node] == number[node]:
                component = [waiting.pop()]
                while component[-1] != node:
                    component.append(waiting.pop())
                for done in component:
                    del low[done]
                yield component


@dataclass(frozen=True)
class Loop:
    """A natural loop: a header, the blocks that jump back to it (latches), and those between."""

    header: str
    latches: tuple[str, ...]
    blocks: frozenset[str]


def natural_loops(successors: Successors) -> list[Loop]:
    """Return the loops of a function whose first block is its entry, outer loops first."""
    order = reverse_postorder(successors)
    dominator = _immediate_dominators(successors, order)
    position = {block: n for n, block in enumerate(order)}
    latches: dict[str, list[str]] = {}
    for block in order:
        for header in successors[block]:
            if position[header] <= position[block] and _dominates(
                header, block, dominator, position
            ):
                latches.setdefault(header, []).append(block)
    before = _predecessors(successors)
    loops = [Loop(h, tuple(back), _between(h, back, before)) for h, back in latches.items()]
    return sorted(loops, key=lambda loop: -len(loop.blocks))


def _predecessors(successors: Successors) -> dict[str, list[str]]:
    before: dict[str, list[str]] = {block: [] for block in successors}
    for block, following in successors.items():
        for after in following:
            before[after].append(block)
    return before


def _between(header: str, latches: list[str], before: dict[str, list[str]]) -> frozenset[str]:
    inside = {header}
    pending = list(latches)
    while pending:
        block = pending.pop()
        if block not in inside:
            inside.add(block)
            pending.extend(before[block])
    return frozenset(inside)


def _immediate_dominators(successors: Successors, order: list[str]) -> dict[str, str]:
    """Return the last block that all paths to a block pass before it, for every reachable block
    (Cooper, Harvey and Kennedy); the entry has itself.
    """
    position = {block: n for n, block in enumerate(order)}
    before = _predecessors(successors)
    found = {order[0]: order[0]}

    def common(a: str, b: str) -> str:
        while a != b:
            if position[a] > position[b]:
                a = found[a]
            else:
                b = found[b]
        return a

    changed = True
    while changed:
        changed = False
        for block in order[1:]:
            known = [p for p in before[block] if p in found]
            new = known[0]
            for other in known[1:]:
                new = common(new, other)
            if found.get(block) != new:
                found[block] = new
                changed = True
    return found


def _dominates(a: str, b: str, dominator: dict[str, str], position: dict[str, int]) -> bool:
    while position[b] > position[a]:
        b = dominator[b]
    return a == b


def reverse_postorder(successors: Successors) -> list[str]:
    """Return the reachable blocks, each before its successors, except along back edges; of two
    successors, the last comes first.
    """
    entry = next(iter(successors))
    done: list[str] = []
    seen = {entry}
    stack = [(entry, iter(successors[entry]))]
    while stack:
        block, following = stack[-1]
        after = next((s for s in following if s not in seen), None)
        if after is None:
            done.append(block)
            stack.pop()
        else:
            seen.add(after)
            stack.append((after, iter(successors[after])))
    return done[::-1]
