"""Dominators and natural loops, which llvmlite does not give."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

Successors = Mapping[str, tuple[str, ...]]


@dataclass(frozen=True)
class Loop:
    """A natural loop: a header, the blocks that jump back to it, and all blocks between."""

    header: str
    latches: tuple[str, ...]
    blocks: frozenset[str]


def natural_loops(successors: Successors) -> list[Loop]:
    """Every loop of a function whose first block is its entry, outer loops before the loops in
    them.
    """
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
    ahead = list(latches)
    while ahead:
        block = ahead.pop()
        if block not in inside:
            inside.add(block)
            ahead.extend(before[block])
    return frozenset(inside)


def _dominators(successors: Successors) -> dict[str, set[str]]:
    """For every reachable block the blocks that all ways to it pass, itself among them."""
    order = reverse_postorder(successors)
    reachable = set(order)
    before = _predecessors(successors)
    dominators = {block: set(order) for block in order}
    dominators[order[0]] = {order[0]}
    changed = True
    while changed:
        changed = False
        for block in order[1:]:
            new = set.intersection(*(dominators[p] for p in before[block] if p in reachable)) | {
                block
            }
            if new != dominators[block]:
                dominators[block] = new
                changed = True
    return dominators


def reverse_postorder(successors: Successors) -> list[str]:
    """Reachable blocks, each before those that follow it, but for ways back; of two ways on, the
    one named last is first.
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
