"""louvain: one phase of community detection, in the shape of miniVite."""

from __future__ import annotations

from tidegate.options import Option
from tidegate.papers.hybrid.applications.offloaded import Offloaded
from tidegate.workloads.offloaded import Gather, StreamedBytes, loop_launch
from tidegate.workloads.program import Launches, Space, footprint, workload


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
    Past, current and target communities change places after each round.
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
        update = StreamedBytes("communities", 16, write=True), StreamedBytes("update", 16)
        for r in range(self.rounds):
            yield loop_launch(space, "clean", n, *clean)
            move = self._move(current, target)
            yield loop_launch(space, "move_vertices", n, *move, seed=self.seed + r)
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
