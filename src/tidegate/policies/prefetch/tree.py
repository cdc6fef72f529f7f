"""Tree prefetch: the prefetcher of NVIDIA's driver."""

from __future__ import annotations

from tidegate.options import Option
from tidegate.policies.interface.policy import PrefetchPolicy
from tidegate.policies.registries import prefetch


@prefetch("tree")
class Tree(PrefetchPolicy):
    """Fetch the largest aligned subtree of the region that is more than ``threshold`` % near or
    faulted.

    The rule is the mechanism's (simulation/gpu/tree.py), as in the driver; this policy sets its
    threshold once (NVIDIA open-gpu-kernel-modules, uvm_perf_prefetch.c; ObservUVM, II-C).
    """

    threshold = Option(
        51, "per cent; lower is more aggressive, 1 takes the whole region", least=1, most=100
    )

    def start(self) -> None:
        self.memory.set_prefetch_threshold(self.threshold)
