"""PageRank: ranks pushed along the edges until little changes; active nodes read their lists."""

from __future__ import annotations

from typing import Any

import numpy as np

from tidegate.compiled.jit import jit
from tidegate.options import Option
from tidegate.papers.gmt.applications.edge_lists import EdgeListWorkload
from tidegate.workloads.program import Launches, Space, workload
from tidegate.workloads.suites import published_footprint


@workload("gmt-PageRank")
class PageRank(EdgeListWorkload):
    """PageRank of a Kronecker graph as in BaM, executed: a warp per node, a launch per round.

        if label[v]:   for i in list of v:  residual[edges[i]] += delta[v];  label[v] = false
        then, over all nodes:
            if residual[v] > tolerance:  delta[v] = α residual[v] / length of v's list
                                         residual[v] = 0;  label[v] = true

    It begins with all nodes and delta[v] = (1 - α) α / length of v's list. Operands: the edge list;
    the rest is outside the tiers (see ``edge_lists``). Grid order: nodes. Access site: 0 = edges.

    Table 2: reuse 90.42 %, I/O 349 GB, so 10.4 visits a page and 33.4 GB, which are GAP-Kron's 4.2
    billion entries of 8 bytes. Unlimited, it converges after some 60 rounds, nearly all of which
    read everything: 98 %. So rounds are limited. With tiers of 16 + 64 GB nothing would be
    Tier-3's, as 94 % are in 3.3; with half the footprint for both it is.
    """

    bytes = published_footprint("gmt-PageRank", "size of the edge list")
    alpha = Option(
        0.85, "share of its rank that a node passes on (a choice: BaM's)", least=0, most=1
    )
    tolerance = Option(0.001, "residual below which a node rests (a choice: BaM's)", least=0)
    iterations = Option(
        10, "rounds at most (a choice: 10, from Table 2's 90.42 %; BaM allows 5000)", least=1
    )

    def launches(self, space: Space) -> Launches:
        graph = self.graph()
        length = np.maximum(1, np.diff(graph.offsets)).astype(np.float32)
        alpha = np.float32(self.alpha)
        delta, residual = (1 - alpha) * alpha / length, np.zeros(graph.nodes, np.float32)
        # BaM labels the others as well, which have nothing to read
        label = np.diff(graph.offsets) > 0
        for _ in range(self.iterations):
            yield self.round_launch(space, graph, label)
            _push(graph, label, delta, residual)
            label = residual > np.float32(self.tolerance)
            if not label.any():
                return
            delta = np.where(label, residual * alpha / length, delta)
            residual[label] = 0


@jit
def _push(graph: Any, label: Any, delta: Any, residual: Any) -> None:
    offsets, targets = graph.offsets, graph.stored
    for v in range(graph.nodes):
        if label[v]:
            for i in range(offsets[v], offsets[v + 1]):
                residual[targets[i]] += delta[v]
