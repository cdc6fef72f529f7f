"""BFS: a graph searched level by level; each level reads the lists of the nodes it found."""

from __future__ import annotations

from typing import Any

import numpy as np

from tidegate.compiled.jit import jit
from tidegate.options import Option
from tidegate.papers.gmt.applications.edge_lists import EdgeListWorkload
from tidegate.workloads.graph import start_node
from tidegate.workloads.program import Launches, Space, workload
from tidegate.workloads.suites import published_footprint


@workload("gmt-BFS")
class BFS(EdgeListWorkload):
    """Breadth-first search of a Kronecker graph as in BaM, executed: a launch per level.

    With a warp per node:

        if level[v] == now:
            for i in list of v:  if level[edges[i]] is unknown:  level[edges[i]] = now + 1

    Operands: the edge list; the rest is outside the tiers (see ``edge_lists``). Grid order: nodes.
    Access site: 0 = edges.

    Table 2: reuse 32.86 %, I/O 87 GB, source graph GAP-Kron. The two contradict each other:
    together they make 58 GB, but GAP-Kron's 4.2 billion entries of 8 bytes are 34 GB, which is also
    what PageRank's row makes. 87 GB of those are 2.6 visits a page, a reuse of 62 %. The search
    itself, on a smaller graph of that kind, has three levels that reach nearly every page, and 67
    %: nodes of all levels share a page, unless a hub's list fills it. So it agrees with the I/O and
    not with the share. In tiers of 16 + 64 GB the 34 GB come back within Tier-1 and Tier-2, as 3.3
    says.
    """

    bytes = published_footprint("gmt-BFS", "size of the edge list")
    seed = Option(
        1, "seed of the graph and the start node (a choice: GAP's file is not here)", least=0
    )

    def launches(self, space: Space) -> Launches:
        graph = self.graph()
        level = np.full(graph.nodes, -1, np.int32)
        level[start_node(graph)] = now = 0
        while (active := level == now).any():
            yield self.round_launch(space, graph, active)
            _expand(graph, level, now)
            now += 1


@jit
def _expand(graph: Any, level: Any, now: int) -> None:
    offsets, targets = graph.offsets, graph.stored
    for v in range(graph.nodes):
        if level[v] == now:
            for i in range(offsets[v], offsets[v + 1]):
                if level[targets[i]] < 0:
                    level[targets[i]] = now + 1
