"""louvain: one phase of community detection, in the shape of miniVite."""

from __future__ import annotations

from collections.abc import Iterator

from tidegate import units
from tidegate.options import Option
from tidegate.trace.trace import Launch
from tidegate.workloads.openmp.offloaded import Gather, Offloaded, Stream, region
from tidegate.workloads.program import Space, workload

_ELSEWHERE = 0.1  # edges that leave their block of 32 vertices, as the program makes its graph


@workload("openmp-louvain")
class Louvain(Offloaded):
    """One phase of the Louvain method: examples/openmp/louvain.c, four regions, launched once per
    round.

        clean               cluster_weight[v] = update[v] = 0
        move_vertices       target[v] = f(edges of v, current[edges[e].to], communities[current[…]], degree[v]); update
        modularity          sums over cluster_weight[v], communities[v]
        update_communities  communities[v] += update[v]

    Nine edges in ten end within 32 vertices of v, which is where v's own data are; the tenth ends
    anywhere. Past, current and target communities change places after each round.
    """

    program = "louvain"
    fresh = frozenset(("update", "cluster_weight"))
    bytes = Option(
        units.size("512MiB"), "size of the nine arrays together", parse=units.size, least=1
    )
    per_vertex = Option(
        4, "edges made for a vertex, each held both ways (the program's own default)", least=1
    )
    rounds = Option(26, "of moves (what the program makes of its default input)", least=1)
    seed = Option(1, "of the draws", least=0)

    def variables(self) -> dict[str, int]:
        return {
            "n": max(0, self.bytes - 4) // (64 + 16 * self.per_vertex),
            "per_vertex": self.per_vertex,
        }

    def launches(self, space: Space) -> Iterator[Launch]:
        n = self.variables()["n"]
        was, current, target = "past", "current", "target"
        for r in range(self.rounds):
            yield region(
                space,
                "clean",
                n,
                (Stream("cluster_weight", 8, write=True), Stream("update", 16, write=True)),
            )
            yield region(space, "move_vertices", n, self._move(current, target), self.seed + r)
            yield region(
                space, "modularity", n, (Stream("cluster_weight", 8), Stream("communities", 16))
            )
            if r + 1 < self.rounds:  # the last round finds nothing gained and stops there
                yield region(
                    space,
                    "update_communities",
                    n,
                    (Stream("communities", 16, write=True), Stream("update", 16)),
                )
            was, current, target = current, target, was

    def _move(self, current: str, target: str) -> tuple[Stream | Gather, ...]:
        far = 2 * self.per_vertex * _ELSEWHERE
        return (
            Stream("first", 4),
            Stream("edges", 16 * self.per_vertex),
            Stream("degree", 8),
            Stream(current, 4),
            Stream("communities", 16),
            Stream(target, 4, write=True),
            Stream("update", 16, write=True),
            Stream("cluster_weight", 8, write=True),
            Gather(current, far),
            Gather("communities", far),
        )
