"""Graphs whose edge lists exceed GPU memory, as BaM keeps them: active nodes read their lists.

    EdgeListWorkload.graph()      a graph like GAP-Kron, from the seed
    round_launch(…, active)       a round: the pages with lists of active nodes, each once

BaM's edge lists have 8 bytes an entry and its weights 4; the data of nodes (starts of lists,
levels, costs, ranks) are in GPU memory and outside the tiers, so they make no visits. Lists are in
order of nodes, so a round walks through memory once.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tidegate.compiled.jit import jit
from tidegate.options import Option
from tidegate.trace.trace import Launch
from tidegate.workloads.graph import Graph, kronecker
from tidegate.workloads.program import Derived, Space, footprint
from tidegate.workloads.thread_blocks import blocks, segments, use

ENTRY = {"edges": 8, "weights": 4}  # bytes: EdgeT and WeightT of BaM
THREADS = 128  # to a thread block, a warp per node


class EdgeListWorkload(Derived):
    """What the graph applications share: the graph and its size."""

    arrays: tuple[str, ...] = ("edges",)
    bytes = footprint("512MiB", "size of the lists")
    degree = Option(
        32.0,
        "neighbours of a node on average (a choice: GAP-Kron's, repeated ones counted)",
        least=2,
    )
    seed = Option(1, "seed of the graph (a choice: GAP's file is not here)", least=0)

    @property
    def edges(self) -> int:
        """Edges; each is in the lists of both its ends."""
        return self.bytes // (2 * sum(ENTRY[a] for a in self.arrays))

    @property
    def nodes(self) -> int:
        return max(1, int(2 * self.edges / self.degree))

    def sizes(self) -> dict[str, int]:
        return {a: 2 * ENTRY[a] * self.edges for a in self.arrays}

    def graph(self) -> Graph:
        return kronecker(self.nodes, self.edges, self.seed)

    def round_launch(self, space: Space, graph: Graph, active: NDArray[np.bool_]) -> Launch:
        """Return a round: the active nodes' lists, in order.

        A block is what goes with a page of the smallest array; it stands for the thread blocks of
        the nodes whose lists share that page.
        """
        widths = tuple(ENTRY[a] for a in space)
        entries = space.geometry.page // min(widths)
        shape = (graph.offsets, active, entries, widths)
        touches = segments(space, _read, -(-int(graph.offsets[-1]) // entries), shape)
        width = max(1, round(entries / self.degree / (THREADS // 32)))
        return Launch("kernel_coalesce", touches, width)


@jit
def _read(log: Any, count: int, shape: Any) -> None:
    offsets, active, entries, widths = shape
    for block in blocks(log, count):
        low, high = block * entries, (block + 1) * entries
        # the node whose list the block begins in
        node = max(0, np.searchsorted(offsets, low, "right") - 1)
        while node < len(active) and offsets[node] < high:
            if active[node]:
                begin, end = max(low, offsets[node]), min(high, offsets[node + 1])
                for a in range(len(widths)):
                    use(log, a, widths[a] * begin, widths[a] * end, False)
            node += 1
