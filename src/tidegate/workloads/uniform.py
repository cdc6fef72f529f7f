"""uniform: pages at random, all with the same probability; no policy can beat another."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tidegate.options import Option
from tidegate.trace.trace import Launch
from tidegate.workloads.program import Launches, Space, Workload, footprint, workload
from tidegate.workloads.random_pages import random_touches


@workload("uniform")
class Uniform(Workload):
    """Reads of whole pages of one array, each drawn with the same probability."""

    bytes = footprint("1GiB", "size of the array")
    touches = Option(1_000_000, "how many pages are drawn", least=1)
    seed = Option(1, "seed of the random numbers", least=0)

    def about_touches(self, pages: int) -> int:
        return self.touches

    def sizes(self) -> dict[str, int]:
        return {"array": self.bytes}

    def launches(self, space: Space) -> Launches:
        array = space["array"]

        def draw(random: np.random.Generator, touches: int) -> NDArray[Any]:
            return random.integers(array.pages, size=touches, dtype=np.int32)

        yield Launch("draws", random_touches(array, space.geometry, self.touches, self.seed, draw))
