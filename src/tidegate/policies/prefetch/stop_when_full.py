"""Another prefetcher, until memory is full."""

from __future__ import annotations

from typing import Any

from tidegate.options import Option
from tidegate.policies.interface.events import NO_TREE
from tidegate.policies.interface.policy import PrefetchPolicy
from tidegate.policies.prefetch.together import make_prefetch
from tidegate.policies.registries import prefetch


@prefetch("stop-when-full")
class StopWhenFull(PrefetchPolicy):
    """Prefetch as another prefetcher does until the first eviction, then stop (Li et al.,
    ASPLOS'19; CPPE, III).
    """

    of = Option("sequential-local", "the prefetcher that is stopped")

    def __init__(self, **options: Any):
        super().__init__(**options)
        self._inner = make_prefetch(self.of)
        self.parts = [self._inner]
        self.sees, self.in_driver = self._inner.sees, self._inner.in_driver

    def start(self) -> None:
        self._full = False
        self._inner.attach(self.memory)
        self._inner.start()

    def on_fault(self, region: int) -> None:
        if not self._full:
            self._inner.on_fault(region)

    def on_prefetch(self, region: int) -> None:
        if not self._full:
            self._inner.on_prefetch(region)

    def on_notification(self, region: int) -> None:
        if not self._full:
            self._inner.on_notification(region)

    def on_launch(self, launch: int) -> None:
        if not self._full:
            self._inner.on_launch(launch)

    def on_eviction(self, region: int) -> None:
        if not self._full:
            self._full = True
            self.memory.set_prefetch_threshold(NO_TREE)

    def on_free(self, region: int) -> None:
        """Do nothing: a region that dies does not mean that memory is full."""

    def report(self) -> dict[str, Any]:
        return self._inner.report()
