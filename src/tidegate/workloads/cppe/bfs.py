"""BFS: a graph searched level by level, at the size CPPE runs it."""

from __future__ import annotations

from tidegate import units
from tidegate.options import Option
from tidegate.workloads.observuvm import bfs
from tidegate.workloads.program import workload
from tidegate.workloads.suites import published_bytes


@workload("cppe-BFS")
class BFS(bfs.BFS):
    """Breadth-first search: bfs of Rodinia, as ``BFS``, on a smaller graph of its own generator's
    kind.

        Kernel   if mask[tid]:  mask[tid] = false
                     for i in nodes[tid].starting … + nodes[tid].no_of_edges - 1:
                         id = edges[i];  if !visited[id]:  cost[id] = cost[tid] + 1;  updating[id] = true
        Kernel2  if updating[tid]:  mask[tid] = visited[tid] = true;  updating[tid] = false;  over = true

    With pages of 4 KiB a block of the trace is a thread block of 512 nodes, which are a page of
    ``graph_nodes``. Grid order: from the first node to the last. Table II: bfs, 37.2 MB, Type III;
    Rodinia's graph1MW_6, 1,000,000 nodes with 5,999,970 entries in their lists, makes 37.19 MiB.
    """

    bytes = Option(
        published_bytes("cppe", "cppe-BFS"),
        "size of the six arrays together",
        parse=units.size,
        least=1,
    )
    degree = Option(6.0, "neighbours of a node on average (a choice: 6, as graph1MW_6)", least=2)
    seed = Option(
        1,
        "of the graph and of the node the search begins at (a choice: the file is not public here)",
        least=0,
    )
