"""Control flow of one function: its blocks, loops, and the probability of each step."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

from tidegate.compiler.analysis.chain import Chain
from tidegate.compiler.analysis.trip_counts import counted_exits
from tidegate.compiler.ir.loops import Loop, natural_loops, reverse_postorder
from tidegate.compiler.ir.module import Body
from tidegate.compiler.ir.probabilities import Edges


class Flow:
    """Blocks, the probability of each step between them, and how often each runs per run of the
    function.
    """

    def __init__(self, body: Body, edges: Edges):
        self.body = body
        self.blocks: list[str] = list(body.blocks)
        self.successors: dict[str, tuple[str, ...]] = {
            name: tuple(dict.fromkeys(block[-1].successors() if block else ()))
            for name, block in body.blocks.items()
        }
        self.loops: list[Loop] = natural_loops(self.successors)
        self.number = {name: n for n, name in enumerate(self.blocks)}
        self.counted: set[Loop] = set()
        """The loops that count to a constant."""
        self.edges = self._corrected(edges)

    def _corrected(self, edges: Edges) -> Edges:
        """Return the probabilities with trip counts of loops that count to a constant. LLVM assumes
        about 32 for every loop.
        """
        corrected = {
            (a, b): edges.get((a, b), 1 / len(following))
            for a, following in self.successors.items()
            for b in following
        }
        for loop in self.loops:
            for count in counted_exits(self.body, loop, self.successors):
                if count.times is None:
                    continue
                self.counted.add(loop)
                block, out, times = count.block, count.out, count.times
                others = {b: corrected[block, b] for b in self.successors[block] if b != out}
                corrected[block, out] = 1 / times
                scale = (1 - 1 / times) / (sum(others.values()) or 1)
                corrected.update({(block, b): p * scale for b, p in others.items()})
        return corrected

    def in_order(self) -> list[str]:
        """Return the reachable blocks in the order of a run: a loop's before those after it."""
        around: dict[str, set[int]] = {block: set() for block in self.successors}
        for n, loop in enumerate(self.loops):
            for block in loop.blocks:
                around[block].add(n)
        stay_last = {}
        for block, following in self.successors.items():
            shared = {b: len(around[block] & around[b]) for b in following}
            stay_last[block] = tuple(sorted(following, key=shared.__getitem__))
        return reverse_postorder(stay_last)

    @cached_property
    def frequency(self) -> Mapping[str, float]:
        """How often each block runs per run of the function."""
        return self.frequency_with(self.edges)

    def frequency_with(self, edges: Edges) -> Mapping[str, float]:
        """Return how often each block runs if its steps have these probabilities."""
        steps = {(self.number[a], self.number[b]): p for (a, b), p in edges.items()}
        visits = Chain(len(self.blocks), steps).visits()
        return dict(zip(self.blocks, visits, strict=True))
