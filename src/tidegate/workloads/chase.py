"""chase: chains of pointers; each touch must return before the next can be made."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tidegate.options import Option
from tidegate.trace.build import SEGMENT_TOUCHES, blocks_of
from tidegate.trace.trace import Launch, Segment
from tidegate.workloads.program import Launches, Space, Workload, bytes_within, footprint, workload
from tidegate.workloads.random_pages import Zipf, generator

_NODE = 64  # bytes used of a page: a node that fills a cache line of the host
# a longer chain is followed in several launches: blocks must be short to be streamed
_LAUNCH_STEPS = 4096


@workload("chase")
class Chase(Workload):
    """Independent chains of pointers through one array of nodes, a block each: bound by latency.

    A pointer's target is drawn by Zipf's law over the pages, so some nodes (a tree's root, a hub)
    are hot.
    """

    bytes = footprint("512MiB", "size of the array of nodes")
    steps = Option(512, "length of each chain", least=1)
    skew = Option(0.8, "exponent of Zipf's law: 0 is uniform, more is hotter", least=0)
    chains = Option(2048, "chains that are followed at the same time", least=1)
    seed = Option(1, "seed of the random numbers", least=0)

    def about_touches(self, pages: int) -> int:
        return self.chains * self.steps

    def sizes(self) -> dict[str, int]:
        return {"nodes": self.bytes}

    def launches(self, space: Space) -> Launches:
        law = Zipf(space["nodes"].pages, self.skew, self.seed)
        for number, first in enumerate(range(0, self.steps, _LAUNCH_STEPS)):
            steps = min(_LAUNCH_STEPS, self.steps - first)
            yield Launch("chase", self._touches(space, law, number, steps))

    def _touches(self, space: Space, law: Zipf, launch: int, steps: int) -> Iterator[Segment]:
        """Follow each chain for ``steps`` steps."""
        nodes = space["nodes"]
        together = max(1, SEGMENT_TOUCHES // steps)
        for first in range(0, self.chains, together):
            chains = min(together, self.chains - first)
            index = law.draw(generator(self.seed, 1 + launch, first), chains * steps)
            used = np.minimum(_NODE, bytes_within(nodes, index, space.geometry))
            yield blocks_of(steps, nodes.first_page + index, bytes=used)
