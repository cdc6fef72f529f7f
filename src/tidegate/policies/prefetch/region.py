"""Whole-region prefetch."""

from __future__ import annotations

from tidegate.policies.interface.policy import PrefetchPolicy
from tidegate.policies.registries import prefetch


@prefetch("region")
class WholeRegion(PrefetchPolicy):
    """Fetch the whole region at its first fault (ObservUVM's aggressive prefetching, VI-C).

    At a threshold of 0 % the tree's root qualifies as soon as any page has faulted, whatever the
    geometry.
    """

    def start(self) -> None:
        self.memory.set_prefetch_threshold(0)
