"""Random policies: a script answers every event with requests; it drives both simulators."""

from __future__ import annotations

import random
from typing import Any

from tidegate.policy import PlacementPolicy, Policy, PrefetchPolicy


class Script:
    """Answers events with random requests. A script gets quieter with time, so that runs end."""

    verbs = ("prefetch", "prefetch", "evict", "advise", "threshold")
    advice: tuple[str | None, ...] = ("far", None)

    def __init__(self, seed: int, pages: int, regions: int):
        self.random, self.pages, self.regions, self.heard = random.Random(seed), pages, regions, 0
        self.said: list[tuple[str, int]] = []

    def __call__(self, event: str, number: int, resident: set[int]) -> list[tuple[Any, ...]]:
        self.heard += 1
        self.said.append((event, number))
        draw = self.random
        requests: list[tuple[Any, ...]] = []
        for _ in range(draw.choice((0, 0, 0, 1, 2)) if self.heard < 60 else 0):
            first = draw.randrange(self.pages)
            count = draw.randint(1, min(self.pages - first, 12))
            region = draw.randrange(self.regions)
            verb = draw.choice(self.verbs)
            if verb in ("prefetch", "prefetch_async"):
                requests.append((verb, first, count))
            elif verb == "advise":
                requests.append((verb, first, count, draw.choice(self.advice)))
            elif verb == "threshold":
                requests.append((verb, draw.choice((0, 25, 51, 75, 101))))
            elif region in resident:
                requests.append((verb, region))
        return requests


class AsynchronousScript(Script):
    """The same, with requests of the copy streams."""

    verbs = (*Script.verbs, "prefetch_async", "prefetch_async", "evict_async", "evict_async")
    advice = ("far", None, "read-mostly", "read-write")


class AdvisingScript(Script):
    """The same, with advice only."""

    verbs = ("advise",)


class Scripted(Policy):
    """Passes events to its script and requests to memory."""

    script: Script
    threshold = 101

    def start(self) -> None:
        self.memory.set_prefetch_threshold(self.threshold)

    def on_fault(self, region: int) -> None:
        self._ask("fault", region)

    def on_prefetch(self, region: int) -> None:
        self._ask("prefetch", region)

    def on_eviction(self, region: int) -> None:
        self._ask("eviction", region)

    def on_free(self, region: int) -> None:
        self._ask("free", region)

    def on_launch(self, launch: int) -> None:
        self._ask("launch", launch)

    def _ask(self, event: str, number: int) -> None:
        verbs = {
            "prefetch": self.memory.prefetch,
            "evict": self.memory.evict,
            "prefetch_async": self.memory.prefetch_async,
            "evict_async": self.memory.evict_async,
            "advise": self.memory.advise,
            "threshold": self.memory.set_prefetch_threshold,
        }
        for verb, *rest in self.script(event, number, self.memory.resident):
            verbs[verb](*rest)


class ScriptedPrefetch(Scripted, PrefetchPolicy): ...


class ScriptedPlacement(Scripted, PlacementPolicy):
    def start(self) -> None: ...
