"""Dominators, natural loops and reachability of a control-flow graph, which llvmlite lacks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

Successors = Mapping[str, tuple[str, ...]]


def reachable(start: str, successors: Mapping[str, Iterable[str]]) -> set[str]:
    """Return the nodes reachable from ``start``; itself only if a path leads back to it."""
    seen: set[str] = set()
    pending = [start]
    while pending:
        new = set(successors.get(pending.pop(), ())) - seen
        seen |= new
        pending.extend(new)
    return seen


@dataclass(frozen=True)
class Loop:
    """A natural loop: a header, the blocks that jump back to it (latches), and those between."""

    header: str
    latches: tuple[str, ...]
    blocks: frozenset[str]


def natural_loops(successors: Successors) -> list[Loop]:
    """Return the loops of a function whose first block is its entry, outer loops first."""
    dominators = _dominators(successors)
    latches: dict[str, list[str]] = {}
    for block, following in successors.items():
        for header in following:
            if block in dominators and header in dominators[block]:
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


def _dominators(successors: Successors) -> dict[str, set[str]]:
    """Return for every reachable block those that all paths to it pass, itself included."""
    order = reverse_postorder(successors)
    reachable = set(order)
    before = _predecessors(successors)
    dominators = {block: set(order) for block in order}
    dominators[order[0]] = {order[0]}
    changed = True
    while changed:
        changed = False
        for block in order[1:]:
            all_before = (dominators[p] for p in before[block] if p in reachable)
            new = set.intersection(*all_before) | {block}
            if new != dominators[block]:
                dominators[block] = new
                changed = True
    return dominators


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
