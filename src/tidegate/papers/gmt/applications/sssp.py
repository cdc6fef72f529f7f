"""SSSP: shortest paths from one node, in rounds; nodes that got nearer read their lists again."""

from __future__ import annotations

from typing import Any

import numpy as np

from tidegate.compiled.jit import jit
from tidegate.options import Option
from tidegate.papers.gmt.applications.edge_lists import EdgeListWorkload
from tidegate.workloads.graph import random_below, start_node
from tidegate.workloads.program import Launches, Space, workload
from tidegate.workloads.suites import published_footprint

_FAR = np.int64(1) << 60


@workload("gmt-SSSP")
class SSSP(EdgeListWorkload):
    """Single-source shortest paths in a Kronecker graph as in BaM, executed: a launch per round.

    With a warp per node:

        if label[v]:   for i in list of v:  new[edges[i]] = min(that, new[v] + weights[i])
                       label[v] = false
        then, over all nodes:  if new[v] < cost[v]:  cost[v] = new[v];  label[v] = true

    Operands: the edge list and the weights; the rest is outside the tiers (see ``edge_lists``).
    Grid order: nodes, and a node sees the updates of those before it in the round. Access sites: 0
    = edges, 1 = weights. Both directions of an edge have weights of their own.

    Table 2: reuse 79.96 %, I/O 239 GB, so 48 GB; GAP-Kron's 4.2 billion entries of 8 + 4 bytes are
    51. With tiers of 16 + 64 GB nothing would be Tier-3's, as 97 % are in 3.3; with half the
    footprint for both it is.
    """

    arrays = ("edges", "weights")
    bytes = published_footprint("gmt-SSSP", "size of the edge list and the weights")
    heaviest = Option(255, "weights are uniform from 1 to here (a choice: 255, as GAP's)", least=1)
    seed = Option(
        1, "seed of graph, weights and start node (a choice: GAP's file is not here)", least=0
    )

    def launches(self, space: Space) -> Launches:
        graph = self.graph()
        cost, new = (np.full(graph.nodes, _FAR) for _ in range(2))
        source = start_node(graph)
        cost[source] = new[source] = 0
        label = np.arange(graph.nodes) == source
        while label.any():
            yield self.round_launch(space, graph, label)
            _relax(graph, label, new, self.heaviest)
            label = new < cost
            cost = new.copy()


@jit
def weight(key: Any, entry: int, heaviest: int) -> Any:
    """Return the weight of an entry of the lists.

    Its random numbers are below -4, apart from the graph's own.
    """
    return random_below(heaviest, key, -4 - entry) + 1


@jit
def _relax(graph: Any, label: Any, new: Any, heaviest: int) -> None:
    offsets, targets, key = graph.offsets, graph.stored, graph.key
    for v in range(graph.nodes):
        if label[v]:
            here = new[v]
            for i in range(offsets[v], offsets[v + 1]):
                there = here + weight(key, i, heaviest)
                if there < new[targets[i]]:
                    new[targets[i]] = there
