"""uniform: pages at random, all alike; no policy can do better than any other."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tidegate import units
from tidegate.options import Option
from tidegate.trace.trace import Launch, Provenance
from tidegate.workloads.draw import random_touches
from tidegate.workloads.program import Space, Workload, workload


@workload("uniform")
class Uniform(Workload):
    """Reads of whole pages of one array, each drawn with the same chance."""

    provenance = Provenance.ASSUMED
    bytes = Option(units.size("1GiB"), "size of the array", parse=units.size, least=1)
    touches = Option(1_000_000, "how many pages are drawn", least=1)
    seed = Option(1, "of the random numbers", least=0)

    def sizes(self) -> dict[str, int]:
        return {"array": self.bytes}

    def launches(self, space: Space) -> Iterator[Launch]:
        array = space["array"]

        def draw(random: np.random.Generator, touches: int) -> NDArray[Any]:
            return random.integers(array.pages, size=touches, dtype=np.int32)

        yield Launch("draws", random_touches(array, space.geometry, self.touches, self.seed, draw))
