"""The microbenchmark of Figure 3: how many access counters are there? (ObservUVM, III-D)"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tidegate.options import Option
from tidegate.policies.interface.policy import PlacementPolicy
from tidegate.policies.interface.visibility import Samples
from tidegate.simulation.gpu.observation import ACCESS
from tidegate.trace.build import blocks_of
from tidegate.trace.trace import Launch, Provenance
from tidegate.workloads.program import Space, Workload

ACCESSES = 16  # per region, and the threshold: the paper's x, whose value does not matter


class Probe(Workload):
    """Access each of ``regions`` regions ``accesses`` times: once in each pass, which is a launch.

    A pass goes round all regions, so that no counter is free again before all regions need one. One
    more touch of the first region keeps the program running until the last notifications are
    handled.
    """

    name = "counter-probe"
    provenance = Provenance.DERIVED
    regions = Option(256, "regions (the paper's p)", least=1)
    accesses = Option(ACCESSES, "accesses of each region", least=1)
    region_bytes = Option(2 << 20, "size of a region", least=1)

    def sizes(self) -> dict[str, int]:
        return {"far": self.regions * self.region_bytes}

    def launches(self, space: Space) -> Iterator[Launch]:
        pages = space["far"].first_page + np.arange(self.regions) * space.geometry.pages_per_region
        for _ in range(self.accesses):
            yield Launch("pass", [blocks_of(1, pages, bytes=ACCESS)])
        yield Launch("end", [blocks_of(1, pages[:1], bytes=ACCESS)])


class PinnedFar(PlacementPolicy):
    """Keep everything far and mapped; counters notify after ``threshold`` accesses."""

    name = "pinned-far"
    sees = Samples()
    threshold = Option(ACCESSES, "accesses before a notification", least=1, most=65535)

    def start(self) -> None:
        self.memory.count_remote(self.threshold)
        for o in self.memory.objects:
            self.memory.advise(o.first_page, o.pages, "far")
