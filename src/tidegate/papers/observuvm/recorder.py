"""The recorder of Figure 5: how much of a region was used before it was evicted."""

from __future__ import annotations

from typing import Any

import numpy as np

from tidegate.policies.interface.policy import PlacementPolicy
from tidegate.policies.interface.visibility import TouchBits


class Recorder(PlacementPolicy):
    """Count evicted regions by their touched pages and by their near pages. Decides nothing.

    A region that is shorter than others (at an object's end) is counted by its share of pages.
    """

    sees = TouchBits()
    name = "recorder"

    def start(self) -> None:
        pages = self.memory.geometry.pages_per_region
        self._touched = np.zeros(pages + 1, np.int64)
        self._near = np.zeros(pages + 1, np.int64)

    def on_eviction(self, region: int) -> None:
        for counted, pages in (
            (self._touched, self.memory.touched(region)),
            (self._near, self.memory.near(region)),
        ):
            counted[int(pages.sum()) * (len(counted) - 1) // len(pages)] += 1

    def report(self) -> dict[str, Any]:
        return {"touched": self._touched.tolist(), "near": self._near.tolist()}
