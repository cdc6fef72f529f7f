"""Graphs whose lists of neighbours are too large for the GPU, as BaM keeps them: in rounds, active
nodes read their lists.

    graph_of(workload)                    GAP-Kron's kind, from the seed
    read(space, lists, active)            a round: the pages in which active nodes have lists, each once

BaM's edge lists have 8 bytes an entry and its weights 4; what belongs to nodes (where lists begin,
levels, costs, ranks) is in GPU memory and outside the tiers, so it makes no visits. Lists are in
order of nodes, so a round walks through memory once.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tidegate import units
from tidegate.compiled.jit import jit
from tidegate.options import Option
from tidegate.trace.trace import Provenance, Segment
from tidegate.workloads.cppe.kernel import closed, going, stream, use
from tidegate.workloads.graph import Graph, below, kronecker
from tidegate.workloads.program import Space, Workload

ENTRY = {"edges": 8, "weights": 4}  # bytes: EdgeT and WeightT of BaM
THREADS = 128  # to a thread block, a warp per node


class OnLists(Workload):
    """What the graph applications share: the graph and its size."""

    provenance = Provenance.DERIVED
    arrays: tuple[str, ...] = ("edges",)
    bytes = Option(units.size("512MiB"), "size of the lists", parse=units.size, least=1)
    degree = Option(
        32.0,
        "neighbours of a node on average (a choice: 32, as GAP-Kron's before repeated ones are dropped)",
        least=2,
    )
    seed = Option(1, "of the graph (a choice: GAP's file is not here)", least=0)

    @property
    def edges(self) -> int:
        """Each is in the lists of both its ends."""
        return self.bytes // (2 * sum(ENTRY[a] for a in self.arrays))

    @property
    def nodes(self) -> int:
        return max(1, int(2 * self.edges / self.degree))

    def sizes(self) -> dict[str, int]:
        return {a: 2 * ENTRY[a] * self.edges for a in self.arrays}

    def graph(self) -> Graph:
        return kronecker(self.nodes, self.edges, self.seed)


def read(space: Space, graph: Graph, active: NDArray[np.bool_]) -> Iterator[Segment]:
    """A round: the active nodes' lists, in order.

    A block is what goes with a page of the smallest array.
    """
    entries = space.geometry.page // min(ENTRY[a] for a in space)
    widths = tuple(ENTRY[a] for a in space)
    shape = (graph.offsets, active, entries, widths)
    return stream(space, _read, -(-int(graph.offsets[-1]) // entries), shape)


def merged(space: Space, degree: float) -> int:
    """Thread blocks to a block: those of the nodes whose lists share a page."""
    entries = space.geometry.page // min(ENTRY[a] for a in space)
    return max(1, round(entries / degree / (THREADS // 32)))


@jit
def source_of(graph: Any) -> Any:
    """A node drawn at random, or the next that has neighbours."""
    v = below(graph.nodes, graph.key, -3)
    for _ in range(graph.nodes):
        if graph.offsets[v + 1] > graph.offsets[v]:
            break
        v = (v + 1) % graph.nodes
    return v


@jit
def _read(log: Any, block: int, count: int, shape: Any) -> Any:
    offsets, active, entries, widths = shape
    # the node whose list the block begins in
    v = max(0, np.searchsorted(offsets, block * entries, "right") - 1)
    while block < count and going(log):
        low, high, node = block * entries, (block + 1) * entries, v
        while node < len(active) and offsets[node] < high:
            if active[node]:
                begin, end = max(low, offsets[node]), min(high, offsets[node + 1])
                for a in range(len(widths)):
                    use(log, a, widths[a] * begin, widths[a] * end, False)
            node += 1
        done = closed(log)
        if done:
            # the last one's list may go on in the next block
            block, v = block + 1, max(v, node - 1)
    return block
