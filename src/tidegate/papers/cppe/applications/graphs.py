"""BFS and SPV: a graph searched level by level, and the sparse matrix of a mesh times a vector."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tidegate.compiled.jit import jit
from tidegate.options import Option
from tidegate.papers.observuvm.applications import bfs
from tidegate.trace.trace import Launch
from tidegate.workloads.program import Derived, Launches, Space, largest_fit, workload
from tidegate.workloads.suites import published_footprint
from tidegate.workloads.thread_blocks import FLOAT, across, blocks, segments, use_floats


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


WARP, THREADS = 32, 192  # rows padded together; threads of a block, from compute_active_thread
REACH = 2  # nodes of the mesh are joined up to two apart, both ways
ARRAYS = ("data", "indices", "perm", "x", "Ax")
_DATA, _INDICES, _PERM, _X, _AX = range(5)


@workload("cppe-SPV")
class SpMV(Derived):
    """Ax = A·x, A sparse, in JDS: spmv of Parboil, a thread per row.

    Rows are in falling order of length, padded by 32.

        ix = 192 b + tx
        for k in 0 … bound[ix / 32] - 1:  j = ptr[k] + ix;  data[j], indices[j], x[indices[j]]
        Ax[perm[ix]] = sum

    ptr and bound are constants. Parboil's large matrix is Dubcova3, a finite-element mesh of
    146,689 nodes with 24.8 entries a row. Here A is the matrix of a square mesh whose nodes,
    numbered row by row, are joined to those up to two away (5 × 5, 24.8 entries a row); as many
    nodes as fit. Padded entries have index 0. Grid order: from the longest row to the shortest.
    Access sites: the arrays as they are allocated. Table II: spmv, 27.3 (no unit), Type V; Dubcova3
    would take 29.4 MiB.
    """

    bytes = published_footprint("cppe-SPV", "size of the five arrays")
    iterations = Option(
        50, "how often the product is taken (a choice: 50, as Parboil's loop)", least=1
    )

    @property
    def side(self) -> int:
        """Nodes along a side of the mesh."""
        return largest_fit(self.bytes, _sizes)

    def sizes(self) -> dict[str, int]:
        return _sizes(self.side)

    def launches(self, space: Space) -> Launches:
        side = self.side
        perm = np.argsort(-np.outer(_reach(side), _reach(side)).ravel(), kind="stable")
        shape = side, perm, _pointers(side)
        # all iterations are the same
        touches = list(segments(space, _product, across(side**2, THREADS), shape))
        for _ in range(self.iterations):
            yield Launch("spmv_jds", touches)


def _reach(side: int) -> NDArray[np.int64]:
    """Return how many nodes of a line each of its nodes is joined to, itself included."""
    at = np.arange(side)
    return np.minimum(at, REACH) + np.minimum(side - 1 - at, REACH) + 1


def _pointers(side: int) -> NDArray[np.int64]:
    """Return where the k-th entries of all rows begin, and after the last where they end.

    Rows have only a few different lengths.
    """
    lengths, lines = np.unique(_reach(side), return_counts=True)
    rows = np.zeros((2 * REACH + 1) ** 2 + 1, np.int64)  # by length
    np.add.at(rows, np.outer(lengths, lengths).ravel(), np.outer(lines, lines).ravel())
    longer = np.cumsum(rows[::-1])[::-1][1:]  # rows with more than k entries
    return np.concatenate([[0], np.cumsum(-(-longer // WARP) * WARP)])


def _sizes(side: int) -> dict[str, int]:
    entries, vector = FLOAT * int(_pointers(side)[-1]), FLOAT * side**2
    return dict(zip(ARRAYS, (entries, entries, vector, vector, vector), strict=True))


@jit
def _neighbour(side: int, row: int, k: int) -> Any:
    """Return the column of a row's k-th entry; 0 if the row is shorter."""
    y, x = row // side, row % side
    top, left = max(0, y - REACH), max(0, x - REACH)
    wide, tall = min(side, x + REACH + 1) - left, min(side, y + REACH + 1) - top
    return (top + k // wide) * side + left + k % wide if k < wide * tall else 0


@jit
def _product(log: Any, count: int, shape: Any) -> None:
    side, perm, pointers = shape
    rows = side * side
    for block in blocks(log, count):
        first, stop = THREADS * block, min(rows, THREADS * (block + 1))
        for k in range(len(pointers) - 1):
            end = min(stop, pointers[k + 1] - pointers[k])
            if end > first:
                for array in (_DATA, _INDICES):
                    use_floats(log, array, pointers[k] + first, pointers[k] + end, False)
                for ix in range(first, end):
                    at = _neighbour(side, perm[ix], k)
                    use_floats(log, _X, at, at + 1, False)
        use_floats(log, _PERM, first, stop, False)
        for ix in range(first, stop):
            use_floats(log, _AX, perm[ix], perm[ix] + 1, True)
