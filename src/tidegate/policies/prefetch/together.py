"""Several prefetchers at once: ``fdp+rgp``."""

from __future__ import annotations

from tidegate.options import split_outside
from tidegate.policies.interface.policy import Decision, PrefetchPolicy
from tidegate.policies.registries import prefetch


class Together(PrefetchPolicy):
    """Relays all events to each of its members, in order."""

    def __init__(self, members: list[PrefetchPolicy]):
        super().__init__()
        self.members = members
        self.parts = members
        self.name = "+".join(m.name for m in members)
        # the level that shows most, so that every member sees what it declares
        self.sees = max(
            (m.sees for m in members),
            key=lambda s: ("faults", "touch bits", "samples", "everything").index(s.level),
        )
        self.in_driver = all(m.in_driver for m in members)

    def start(self) -> None:
        for m in self.members:
            m.attach(self.memory)
            m.start()

    def on_fault(self, region: int) -> None:
        for m in self.members:
            m.on_fault(region)

    def on_prefetch(self, region: int) -> None:
        for m in self.members:
            m.on_prefetch(region)

    def on_eviction(self, region: int) -> None:
        for m in self.members:
            m.on_eviction(region)

    def on_free(self, region: int) -> None:
        for m in self.members:
            m.on_free(region)

    def on_notification(self, region: int) -> None:
        for m in self.members:
            m.on_notification(region)

    def on_launch(self, launch: int) -> None:
        for m in self.members:
            m.on_launch(launch)

    def finished(self) -> None:
        for m in self.members:
            m.finished()

    def report(self) -> dict[str, object]:
        return {k: v for m in self.members for k, v in m.report().items()}

    def decisions(self) -> list[Decision]:
        return [decision for m in self.members for decision in m.decisions()]

    def settings(self) -> dict[str, object]:
        return {f"{m.name}.{k}": v for m in self.members for k, v in m.settings().items()}


def make_prefetch(spec: str) -> PrefetchPolicy:
    """Make one prefetcher, or several joined by ``+``."""
    members = [prefetch.make(part) for part in split_outside(spec, "+")]
    return members[0] if len(members) == 1 else Together(members)
