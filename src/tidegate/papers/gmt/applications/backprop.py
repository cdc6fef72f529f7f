"""Backprop: a layer of a neural network, forward and back, epoch after epoch."""

from __future__ import annotations

from tidegate.options import Option
from tidegate.papers.cppe.applications import backprop
from tidegate.papers.gmt.applications.page_visits import whole_objects
from tidegate.workloads.program import Launches, Space, workload
from tidegate.workloads.suites import published_footprint

_THREAD_BLOCK = backprop.TILE * (backprop.HIDDEN + 1) * 4  # bytes of the weights


@workload("gmt-Backprop")
class Backprop(backprop.Backprop):
    """Back-propagation through a layer: ``cppe-BKP`` (backprop of Rodinia) as page visits.

    A layer of 16 hidden units, thread blocks of 16 × 16, by = 0, 1, …

        layerforward     input_hidden[16 by …] *= input[16 by …];  hidden_partial_sum[16 by …] = Σ
        adjust_weights   w[16 by …] += f(delta, input[16 by …], oldw[16 by …]);  oldw is written

    Operands: the weights and their last change, the input units, and small vectors. Grid order: by.
    Access sites: the arrays as they are allocated. The host's work between launches is left out,
    and so is ``output_hidden``, which is not used.

    Table 2: reuse 93.54 %, I/O 6823 GB. An epoch visits the weights twice and their last change
    once, so ten epochs make 93.3 %. Table 2's footprint would be 441 GB, far more than twice the
    tiers' 80 GB, and distances of half of it or more would be Tier-3's; 3.3 says Tier-2's. A page
    comes back after half to all of the footprint W, so its remaining distance is W/2 - 16 to W - 16
    GB; that is Tier-2's (16 to 80) for W from 64 to 96, and 80 lies in the middle.
    """

    bytes = published_footprint(
        "gmt-Backprop",
        "size of the six arrays (a choice: Tier-1 + Tier-2, which puts the remaining distances in "
        "Tier-2)",
    )
    iterations = Option(10, "epochs (a choice: 10, from Table 2's 93.54 %)", least=1)

    def launches(self, space: Space) -> Launches:
        sums, weights = ("input_hidden", "hidden_partial_sum"), "bpnn_adjust_weights_cuda"
        reads, writes = ("hidden_delta", "input"), ("input_prev_weights", "input_hidden")
        for _ in range(self.iterations):
            yield whole_objects(space, "bpnn_layerforward_CUDA", ["input"], sums, _THREAD_BLOCK)
            yield whole_objects(space, weights, reads, writes, _THREAD_BLOCK)
