"""Some weights stay, the others pass through."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tidegate.options import Option
from tidegate.policies.interface.forecast import Forecast
from tidegate.policies.placement.plans.copy_plan import CopyPlan, Leaves
from tidegate.policies.registries import placement
from tidegate.units import size


@placement("pin-and-stream")
class PinAndStream(CopyPlan):
    """Keep as many pieces with host data as fit, and stream the others through what is left, as
    inference engines do with weights (FlexGen, DeepSpeed-Inference, llama.cpp).

    Streamed pieces are spread evenly over the program and leave after each use, so that the link
    is never idle. What else the program needs at its peak has room of its own.
    """

    buffer = Option(256 << 20, "room for pieces that pass through", parse=size, least=0)

    def leaving(self, f: Forecast) -> Leaves:
        streamed = self._streamed(f)
        leaves: Leaves = {}
        for use in np.flatnonzero(streamed[f.piece]).tolist():
            leaves.setdefault(self.launch[use], []).append(self.piece[use])
        return leaves

    def _streamed(self, f: Forecast) -> NDArray[np.bool_]:
        """Return which pieces are streamed: an even share, in the order of their first uses."""
        found = np.zeros(len(f.first), np.bool_)
        order = list(dict.fromkeys(f.piece[f.host[f.piece]].tolist()))
        weights = sum(self.size[piece] for piece in order)
        others = int(f.live().max(initial=0)) - weights
        buffer = max(self.buffer // f.region_bytes, *(2 * self.size[p] for p in order), 0)
        room = self.memory.frames - max(0, others)
        if weights <= room:
            return found
        share = 1 - max(0, room - buffer) / weights
        due = streamed = 0.0
        for piece in order:
            due += self.size[piece] * share
            if streamed + self.size[piece] <= due + self.size[piece] / 2:
                found[piece] = True
                streamed += self.size[piece]
        return found
