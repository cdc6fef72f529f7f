"""Backprop: a layer of a neural network, forward and back, epoch after epoch."""

from __future__ import annotations

from collections.abc import Iterator

from tidegate import units
from tidegate.options import Option
from tidegate.trace.trace import Launch, Provenance
from tidegate.workloads.cppe.backprop import HIDDEN, TILE, sizes_of
from tidegate.workloads.cppe.kernel import fitted
from tidegate.workloads.gmt.visits import lockstep, whole, width
from tidegate.workloads.program import Space, Workload, workload
from tidegate.workloads.suites import published_bytes

_THREAD_BLOCK = TILE * (HIDDEN + 1) * 4  # bytes of the weights


@workload("gmt-Backprop")
class Backprop(Workload):
    """Back-propagation through a layer of 16 hidden units: backprop of Rodinia, thread blocks of 16
    × 16, by = 0, 1, …

        layerforward     input_hidden[16 by …] *= input[16 by …];  hidden_partial_sum[16 by …] = Σ
        adjust_weights   w[16 by …] += f(delta, input[16 by …], oldw[16 by …]);  oldw is written

    Operands: the weights and their last change, the input units, and small vectors. Grid order: by.
    References: the arrays as they are allocated. What the host does between launches is left out,
    and so is ``output_hidden``, which nobody uses.

    Table 2: reuse 93.54 %, I/O 6823 GB. An epoch visits the weights twice and their last change
    once, so ten epochs make 93.3 %. Table 2's footprint would be 441 GB, far more than twice the
    tiers' 80 GB, and distances of half of it or more would be Tier-3's; 3.3 says Tier-2's. A page
    comes back after half to all of the footprint W, so its remaining distance is W/2 - 16 to W - 16
    GB; that is Tier-2's (16 to 80) for W from 64 to 96, and 80 lies in the middle.
    """

    provenance = Provenance.DERIVED
    bytes = Option(
        published_bytes("gmt", "gmt-Backprop"),
        "size of the six arrays (a choice: Tier-1 + Tier-2, which puts the remaining distances in Tier-2)",
        parse=units.size,
        least=1,
    )
    iterations = Option(10, "epochs (a choice: 10, from Table 2's 93.54 %)", least=1)

    def sizes(self) -> dict[str, int]:
        return sizes_of(fitted(self.bytes, sizes_of))

    def launches(self, space: Space) -> Iterator[Launch]:
        merged = width(space, _THREAD_BLOCK)
        for _ in range(self.iterations):
            forward = whole(space, ["input"], ["input_hidden", "hidden_partial_sum"])
            yield Launch("bpnn_layerforward_CUDA", lockstep(space, forward), merged)
            adjust = whole(space, ["hidden_delta", "input"], ["input_prev_weights", "input_hidden"])
            yield Launch("bpnn_adjust_weights_cuda", lockstep(space, adjust), merged)
