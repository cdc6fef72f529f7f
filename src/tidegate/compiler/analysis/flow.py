"""Control flow of one function: its blocks, loops, and the probability of each step.

Some ways are taken, or not, whatever LLVM estimates for code as a whole (`take_others`, `enter`).
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path

from tidegate.compiler.analysis.chain import MarkovChain
from tidegate.compiler.analysis.trip_counts import counted_exits
from tidegate.compiler.ir.loops import Loop, natural_loops, reverse_postorder
from tidegate.compiler.ir.module import Body
from tidegate.errors import TidegateError

Edges = dict[tuple[str, str], float]

_EDGE = re.compile(
    r'^\s*edge %"?([^"\s]+)"? -> %"?([^"\s]+)"? probability is 0x([0-9a-f]+) / 0x([0-9a-f]+)'
)
_FUNCTION = re.compile(r"^Writing '.*/cfg\.(.+)\.dot'")


def branch_probabilities(text: str) -> dict[str, Edges]:
    """Return the probability of each edge between blocks, by function.

    `text`: the module; its blocks must have names.
    """
    program = Path(__file__).with_name("print_probabilities.py")
    # -P: modules in this folder must not hide others of the same name
    command = [sys.executable, "-P", str(program)]
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        said = done.stderr.strip().split("\n")[-1]
        raise TidegateError(
            f"LLVM printed no branch probabilities ({said}); install llvmlite 0.44 or newer"
        )
    functions: dict[str, Edges] = {}
    edges: Edges = {}
    for line in done.stderr.splitlines():
        if found := _EDGE.match(line):
            edges[found[1], found[2]] = int(found[3], 16) / int(found[4], 16)
        elif named := _FUNCTION.match(line):
            functions[named[1]] = edges
            edges = {}
    return functions


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
        visits = MarkovChain(len(self.blocks), steps).visits()
        return dict(zip(self.blocks, visits, strict=True))


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
