"""Cyclic protection for live memory: learn from evictions alone, keep what is used again."""

from __future__ import annotations

from tidegate.policies.eviction.cp import CyclicProtection
from tidegate.policies.registries import eviction


@eviction("loop")
class Loop(CyclicProtection):
    """Keep the regions that came first, as ``cp`` does, and those that are used again.

    Two things differ from ``cp`` (ObservUVM). Nothing is observed while frames are free, that is,
    until the first eviction, and after a region was freed until the next one: a use in that time
    does not say that the unprotected area is too small, and ``cp`` lets the area grow over all of a
    small memory before anything must leave. And a region that is used near the split goes to the
    tail, so that it is not the next victim. The policy is ours, and the default of live memory.
    """

    def start(self) -> None:
        super().start()
        self._is_full = False

    def on_notification(self, region: int) -> None:
        if region in self._mine and region in self._open:
            self._open.move_to_tail(region)
        super().on_notification(region)

    def on_eviction(self, region: int) -> None:
        self._is_full = True
        super().on_eviction(region)

    def on_free(self, region: int) -> None:
        self._is_full = False
        super().on_free(region)

    def observe(self) -> int | None:
        return super().observe() if self._is_full else None
