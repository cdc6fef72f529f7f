"""Control flow of one function as a Markov chain over its blocks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

import numpy as np

from tidegate.compiler.analysis.trip_counts import counted_exits
from tidegate.compiler.ir.loops import Loop, natural_loops, reverse_postorder
from tidegate.compiler.ir.module import Body
from tidegate.compiler.ir.probabilities import Edges

# No step is certain, or an endless loop would have no solution. The difference is far below the
# precision of any estimate here.
_MOST_CERTAIN = 1 - 1e-12


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
        self._steps = self._matrix(self._corrected(edges))

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
            for block, out, times in counted_exits(self.body, loop, self.successors):
                others = {b: corrected[block, b] for b in self.successors[block] if b != out}
                corrected[block, out] = 1 / times
                scale = (1 - 1 / times) / (sum(others.values()) or 1)
                corrected.update({(block, b): p * scale for b, p in others.items()})
        return corrected

    def _matrix(self, edges: Edges) -> np.ndarray:
        steps = np.zeros((len(self.blocks), len(self.blocks)))
        for (a, b), p in edges.items():
            steps[self.number[a], self.number[b]] = p * _MOST_CERTAIN
        return steps

    def in_order(self) -> list[str]:
        """Return the reachable blocks in the order of a run: a loop's before those after it."""
        stay_last = {}
        for block, following in self.successors.items():
            around = [loop.blocks for loop in self.loops if block in loop.blocks]
            depth = {b: sum(b in blocks for blocks in around) for b in following}
            stay_last[block] = tuple(sorted(following, key=depth.__getitem__))
        return reverse_postorder(stay_last)

    @cached_property
    def frequency(self) -> Mapping[str, float]:
        """How often each block runs per run of the function."""
        entered = np.zeros(len(self.blocks))
        entered[0] = 1
        runs = np.linalg.solve(np.eye(len(self.blocks)) - self._steps.T, entered)
        return dict(zip(self.blocks, runs.tolist(), strict=True))

    def reach(self, targets: np.ndarray, through: Sequence[bool]) -> np.ndarray:
        """Return, from the end of every block, the probability that each column of `targets` (1 at
        its block) is reached first.

        A path passes the blocks of `through` and ends in the others.
        """
        passed = np.array(through, dtype=float)
        within = np.linalg.solve(np.eye(len(self.blocks)) - passed[:, None] * self._steps, targets)
        return self._steps @ within
