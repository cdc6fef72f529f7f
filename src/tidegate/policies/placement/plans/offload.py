"""What idles is copied to the host."""

from __future__ import annotations

import numpy as np

from tidegate.options import Option
from tidegate.policies.interface.forecast import Forecast
from tidegate.policies.placement.plans.copy_plan import CopyPlan, Leaves
from tidegate.policies.registries import placement


@placement("offload")
class Offload(CopyPlan):
    """Copy out all data that were made near and idle for longer than their copies take:
    activations that wait for their backward pass (vDNN, MICRO'16; PyTorch's save_on_cpu, without
    waiting for the copies). Data stay if all that is needed before their next use has found room.
    """

    idle = Option(2.0, "times the copies out and back that data must idle", least=1)

    def leaving(self, f: Forecast) -> Leaves:
        gap = f.start[np.minimum(f.next, f.never - 1)] - f.start[f.launch + 1]
        copies = f.bytes[f.piece] * (1 / f.outward + 1 / f.inward)
        chosen = (f.next < f.never) & ~f.host[f.piece] & (gap > self.idle * copies)
        leaves: Leaves = {}
        for use in np.flatnonzero(chosen).tolist():
            leaves.setdefault(self.launch[use], []).append(self.piece[use])
        return leaves
