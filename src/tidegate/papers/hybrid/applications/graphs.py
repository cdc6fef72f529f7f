"""bfs and louvain: a graph searched by levels, and its communities found in rounds."""

from __future__ import annotations

import math

from tidegate.options import Option
from tidegate.papers.hybrid.applications import Offloaded
from tidegate.workloads.offloaded import Gather, StreamedBytes, loop_launch
from tidegate.workloads.program import Launches, Space, footprint, workload


@workload("openmp-bfs")
class BFS(Offloaded):
    """Breadth-first search: examples/openmp/bfs.c, two kernel regions, launched once per level.

        visit    if frontier[v]:  frontier[v] = 0;  for e of nodes[v]:
                     to = edges[e];  if !visited[to]:  cost[to] = …, next[to] = 1
        advance  if next[v]:  frontier[v] = visited[v] = 1, next[v] = 0

    The graph is random: a level holds the share of vertices that a random graph of this degree
    reaches at that level, spread evenly, and a neighbour may be anywhere. So touches of ``nodes``
    and ``edges`` are drawn, loads of ``frontier`` and ``next`` are not, as every vertex loads its
    own. ``connected`` below 1 makes a graph of which the search reaches the first vertices only,
    and only their edges.
    """

    program = "bfs"
    bytes = footprint("512MiB", "size of the six arrays together")
    degree = Option(6, "neighbours of a vertex on average (the program's own default)", least=2)
    connected = Option(
        1.0, "share of the vertices, from the first, that the search can reach", least=0.0, most=1.0
    )
    seed = Option(1, "seed of the random numbers", least=0)

    def variables(self) -> dict[str, int]:
        n = self.bytes // (15 + 4 * self.degree)
        return {"n": n, "edge_count": n * self.degree}

    def levels(self) -> list[float]:
        """Return the share of the connected vertices in each level's frontier, until one is empty.

        Shares are those of a random graph.
        """
        n = max(1, round(self.variables()["n"] * self.connected))
        level, seen, shares = 1 / n, 1 / n, list[float]()
        while level * n >= 0.5:  # less than half a vertex is none
            shares.append(level)
            level = (1 - seen) * -math.expm1(-self.degree * level)
            seen += level
        return shares

    def launches(self, space: Space) -> Launches:
        n, shares, seen, part = self.variables()["n"], self.levels(), 0.0, self.connected
        for i, share in enumerate(shares):
            seen += share
            after = shares[i + 1] if i + 1 < len(shares) else 0.0
            met = self.degree * share
            visit = (
                StreamedBytes("frontier", 1),
                StreamedBytes("frontier", 1, write=True, share=share, part=part),
                StreamedBytes("nodes", 8, share=share, part=part),
                StreamedBytes("cost", 4, share=share, part=part),
                StreamedBytes("edges", 4 * self.degree, share=share, together=2, part=part),
                Gather("visited", met * part, part=part),
                Gather("cost", met * part * (1 - seen), True, part),
                Gather("next", met * part * (1 - seen), True, part),
            )
            yield loop_launch(space, "visit", n, *visit, seed=self.seed + 2 * i)
            advance = [StreamedBytes("next", 1)]
            for name in ("frontier", "visited", "next"):
                advance.append(StreamedBytes(name, 1, write=True, share=after, part=part))
            yield loop_launch(space, "advance", n, *advance, seed=self.seed + 2 * i + 1)


@workload("openmp-louvain")
class Louvain(Offloaded):
    """One phase of the Louvain method: examples/openmp/louvain.c, four regions, once per round.

        clean               cluster_weight[v] = update[v] = 0
        move_vertices       target[v] = f(edges of v, current[edges[e].to],
                                          communities[current[…]], degree[v]);  update
        modularity          sums over cluster_weight[v], communities[v]
        update_communities  communities[v] += update[v]

    Edges end anywhere: ids of miniVite's generator are random. With ``elsewhere=0.1``, as
    the example makes its graph, nine in ten end within 32 vertices of v, beside v's own data.
    Past, current and target communities change places after each round. Between two rounds the
    host of miniVite looks through all current communities for those of other processes
    (``fillRemoteCommunities``).
    """

    program = "louvain"
    unwritten = frozenset(("update", "cluster_weight"))
    bytes = footprint("512MiB", "size of the nine arrays together")
    per_vertex = Option(
        4, "edges made for a vertex, each held both ways (the program's own default)", least=1
    )
    rounds = Option(26, "rounds of moves (as many as the program's default input takes)", least=1)
    elsewhere = Option(1.0, "share of edges that end anywhere, not near", least=0.0, most=1.0)
    seed = Option(1, "seed of the random numbers", least=0)

    def variables(self) -> dict[str, int]:
        n = max(0, self.bytes - 4) // (64 + 16 * self.per_vertex)
        return {"n": n, "per_vertex": self.per_vertex}

    def launches(self, space: Space) -> Launches:
        n = self.variables()["n"]
        past, current, target = "past", "current", "target"
        weight, communities = StreamedBytes("cluster_weight", 8), StreamedBytes("communities", 16)
        clean = (
            StreamedBytes("cluster_weight", 8, write=True),
            StreamedBytes("update", 16, write=True),
        )
        update = (
            communities,
            StreamedBytes("update", 16),
            StreamedBytes("communities", 16, write=True),
        )
        for r in range(self.rounds):
            yield loop_launch(space, "clean", n, *clean)
            move = self._move(current, target)
            moves = loop_launch(space, "move_vertices", n, *move, seed=self.seed + r)
            yield moves if r == 0 else self.after_host(space, moves, current)
            yield loop_launch(space, "modularity", n, weight, communities)
            if r + 1 < self.rounds:  # the last round gains nothing and stops there
                yield loop_launch(space, "update_communities", n, *update)
            past, current, target = current, target, past

    def _move(self, current: str, target: str) -> tuple[StreamedBytes | Gather, ...]:
        far = 2 * self.per_vertex * self.elsewhere
        return (
            StreamedBytes("first", 4),
            StreamedBytes("edges", 16 * self.per_vertex),
            StreamedBytes("degree", 8),
            StreamedBytes(current, 4),
            StreamedBytes("communities", 16),
            StreamedBytes(target, 4, write=True),
            StreamedBytes("update", 16, write=True),
            StreamedBytes("cluster_weight", 8, write=True),
            Gather(current, far),
            Gather("communities", far),
        )
