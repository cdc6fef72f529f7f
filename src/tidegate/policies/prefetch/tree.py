"""Prefetch by the driver alone: none, whole regions, or the tree of NVIDIA's driver."""

from __future__ import annotations

from tidegate.options import Option
from tidegate.policies.interface.policy import PrefetchPolicy
from tidegate.policies.registries import prefetch


@prefetch("none")
class NoPrefetch(PrefetchPolicy):
    """Only pages that faulted migrate."""


@prefetch("region")
class WholeRegion(PrefetchPolicy):
    """Fetch the whole region at its first fault (ObservUVM's aggressive prefetching, VI-C).

    At a threshold of 0 % the tree's root qualifies as soon as any page has faulted, whatever the
    geometry.
    """

    def start(self) -> None:
        self.memory.set_prefetch_threshold(0)


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
