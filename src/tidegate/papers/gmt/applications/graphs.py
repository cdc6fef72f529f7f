"""x."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tidegate.compiled.jit import jit
from tidegate.options import Option
from tidegate.trace.trace import Launch
from tidegate.workloads.graph import Graph, kronecker, random_below, start_node
from tidegate.workloads.program import Derived, Launches, Space, footprint, workload
from tidegate.workloads.suites import published_footprint
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


@workload("gmt-BFS")
class BFS(EdgeListWorkload):
    """Breadth-first search of a Kronecker graph as in BaM, executed: a launch per level.

    With a warp per node:

        if level[v] == now:
            for i in list of v:  if level[edges[i]] is unknown:  level[edges[i]] = now + 1

    Operands: the edge list; the rest is outside the tiers (see the module). Grid order: nodes.
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


_FAR = np.int64(1) << 60


@workload("gmt-SSSP")
class SSSP(EdgeListWorkload):
    """Single-source shortest paths in a Kronecker graph as in BaM, executed: a launch per round.

    With a warp per node:

        if label[v]:   for i in list of v:  new[edges[i]] = min(that, new[v] + weights[i])
                       label[v] = false
        then, over all nodes:  if new[v] < cost[v]:  cost[v] = new[v];  label[v] = true

    Operands: the edge list and the weights; the rest is outside the tiers (see the module).
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


@workload("gmt-PageRank")
class PageRank(EdgeListWorkload):
    """PageRank of a Kronecker graph as in BaM, executed: a warp per node, a launch per round.

        if label[v]:   for i in list of v:  residual[edges[i]] += delta[v];  label[v] = false
        then, over all nodes:
            if residual[v] > tolerance:  delta[v] = α residual[v] / length of v's list
                                         residual[v] = 0;  label[v] = true

    It begins with all nodes and delta[v] = (1 - α) α / length of v's list. Operands: the edge list;
    the rest is outside the tiers (see the module). Grid order: nodes. Access site: 0 = edges.

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
