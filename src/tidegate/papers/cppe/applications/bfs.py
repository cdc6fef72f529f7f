"""BFS: a graph searched level by level, at the size of CPPE."""

from __future__ import annotations

from tidegate.options import Option
from tidegate.papers.observuvm.applications import bfs
from tidegate.workloads.program import workload
from tidegate.workloads.suites import published_footprint


@workload("cppe-BFS")
class BFS(bfs.BFS):
    """Breadth-first search: ``BFS`` (bfs of Rodinia), on a smaller graph of the same generator.

        Kernel   if mask[tid]:  mask[tid] = false
                     for i in nodes[tid].starting … + nodes[tid].no_of_edges - 1:
                         id = edges[i];  if !visited[id]:  cost[id] = cost[tid] + 1
                                                           updating[id] = true
        Kernel2  if updating[tid]:  mask[tid] = visited[tid] = true;  updating[tid] = false
                                    over = true

    With pages of 4 KiB a block of the trace is a thread block of 512 nodes, which are a page of
    ``graph_nodes``. Grid order: from the first node to the last. Table II: bfs, 37.2 MB, Type III;
    Rodinia's graph1MW_6, 1,000,000 nodes with 5,999,970 entries in their lists, makes 37.19 MiB.
    """

    bytes = published_footprint("cppe-BFS", "size of the six arrays together")
    degree = Option(6.0, "neighbours of a node on average (a choice: 6, as graph1MW_6)", least=2)
    seed = Option(
        1, "seed of graph and start node (a choice: Rodinia's file is not public here)", least=0
    )
