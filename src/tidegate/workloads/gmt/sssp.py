"""SSSP: shortest ways from one node, in rounds; nodes that got nearer read their lists again."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from tidegate import units
from tidegate.compiled.jit import jit
from tidegate.options import Option
from tidegate.trace.trace import Launch
from tidegate.workloads.gmt.lists import OnLists, merged, read, source_of
from tidegate.workloads.graph import number
from tidegate.workloads.program import Space, workload
from tidegate.workloads.suites import published_bytes

_FAR = np.int64(1) << 60


@workload("gmt-SSSP")
class SSSP(OnLists):
    """Single-source shortest paths in a Kronecker graph as in BaM, a warp per node, a launch per
    round; really executed.

        if label[v]:   for i in list of v:  new[edges[i]] = min(that, new[v] + weights[i]);  label[v] = false
        then, over all nodes:  if new[v] < cost[v]:  cost[v] = new[v];  label[v] = true

    Operands: the edge list and the weights; the rest is outside the tiers (see ``lists``). Grid
    order: nodes, and a node sees what those before it in the round did. References: 0 = edges, 1 =
    weights. Both directions of an edge have weights of their own.

    Table 2: reuse 79.96 %, I/O 239 GB, so 48 GB; GAP-Kron's 4.2 billion entries of 8 + 4 bytes are
    51. With tiers of 16 + 64 GB nothing would be Tier-3's, as 97 % are in 3.3; with half the
    footprint for both it is.
    """

    arrays = ("edges", "weights")
    bytes = Option(
        published_bytes("gmt", "gmt-SSSP"),
        "size of the edge list and the weights",
        parse=units.size,
        least=1,
    )
    heaviest = Option(
        255, "weights are from 1 to here, all alike (a choice: 255, as GAP's)", least=1
    )
    seed = Option(
        1,
        "of the graph, the weights and the node to begin at (a choice: GAP's file is not here)",
        least=0,
    )

    def launches(self, space: Space) -> Iterator[Launch]:
        graph = self.graph()
        cost, new = (np.full(graph.nodes, _FAR) for _ in range(2))
        source = source_of(graph)
        cost[source] = new[source] = 0
        label = np.arange(graph.nodes) == source
        while label.any():
            yield Launch("kernel_coalesce", read(space, graph, label), merged(space, self.degree))
            _relax(graph, label, new, self.heaviest)
            label = new < cost
            cost = new.copy()


@jit
def weight(key: Any, entry: int, heaviest: int) -> Any:
    """The weight of an entry of the lists.

    Below -4, so that the graph's own random numbers are others.
    """
    return (
        np.int64((number(key, -4 - entry) >> np.uint64(32)) * np.uint64(heaviest) >> np.uint64(32))
        + 1
    )


@jit
def _relax(graph: Any, label: Any, new: Any, heaviest: int) -> None:
    offsets, targets, key = graph.offsets, graph.kept, graph.key
    for v in range(graph.nodes):
        if label[v]:
            here = new[v]
            for i in range(offsets[v], offsets[v + 1]):
                there = here + weight(key, i, heaviest)
                if there < new[targets[i]]:
                    new[targets[i]] = there
