"""BKP: a layer of a neural network, forward and back."""

from __future__ import annotations

from typing import Any

from tidegate.compiled.jit import jit
from tidegate.workloads.program import Derived, Launches, Space, largest_fit, workload
from tidegate.workloads.suites import published_footprint
from tidegate.workloads.thread_blocks import FLOAT, blocks, launch_of, use_floats

TILE = 16  # HEIGHT, WIDTH and the hidden units
HIDDEN = 16
_PITCH = HIDDEN + 1  # a row of weights; the first is the threshold's
_INPUT, _OUTPUT, _WEIGHTS, _SUMS, _DELTA, _OLD = range(6)


@workload("cppe-BKP")
class Backprop(Derived):
    """Back-propagation through a layer of 16 hidden units: backprop of Rodinia.

    Thread blocks have 16 × 16 threads, by = 0, 1, …

        index, index_in = 17 (16 by + ty + 1) + tx + 1, 16 by + ty + 1
        layerforward     input_hidden[index] *= input[index_in]
                         hidden_partial_sum[16 by + ty] = Σ over ty
        adjust_weights   w[index] += f(delta[tx + 1], input[index_in], oldw[index])
                         oldw[index] is written;  by = 0:  w[tx + 1], oldw[tx + 1] as well

    Operands: the weights and their last change, the input units, and small vectors. Grid order: by.
    Access sites: the arrays as they are allocated. Table II: backprop, 9 MB, Type II; 65,536 input
    units make 9.0 MiB.
    """

    bytes = published_footprint("cppe-BKP", "size of the six arrays")

    @property
    def blocks(self) -> int:
        """Thread blocks, each 16 input units."""
        return largest_fit(self.bytes, sizes_of)

    def sizes(self) -> dict[str, int]:
        return sizes_of(self.blocks)

    def launches(self, space: Space) -> Launches:
        count = self.blocks
        yield launch_of(space, "bpnn_layerforward_CUDA", _forward, count, ())
        yield launch_of(space, "bpnn_adjust_weights_cuda", _adjust, count, ())


def sizes_of(blocks: int) -> dict[str, int]:
    """Return the six arrays of a network with 16 input units for each thread block."""
    units, hidden = FLOAT * (TILE * blocks + 1), FLOAT * (HIDDEN + 1)
    sizes = {"input": units, "output_hidden": hidden, "input_hidden": _PITCH * units}
    sizes |= {"hidden_partial_sum": FLOAT * HIDDEN * blocks, "hidden_delta": hidden}
    return sizes | {"input_prev_weights": _PITCH * units}


@jit
def _weights(log: Any, array: int, by: int) -> None:
    """Read and write a thread block's 16 × 16 weights."""
    for ty in range(TILE):
        at = _PITCH * (TILE * by + ty + 1) + 1
        use_floats(log, array, at, at + TILE, True)


@jit
def _forward(log: Any, count: int, shape: Any) -> None:
    for block in blocks(log, count):
        use_floats(log, _INPUT, TILE * block + 1, TILE * block + TILE + 1, False)
        _weights(log, _WEIGHTS, block)
        use_floats(log, _SUMS, HIDDEN * block, HIDDEN * (block + 1), True)


@jit
def _adjust(log: Any, count: int, shape: Any) -> None:
    for block in blocks(log, count):
        use_floats(log, _DELTA, 1, TILE + 1, False)
        use_floats(log, _INPUT, TILE * block + 1, TILE * block + TILE + 1, False)
        _weights(log, _OLD, block)
        _weights(log, _WEIGHTS, block)
        if block == 0:
            use_floats(log, _WEIGHTS, 1, TILE + 1, True)
            use_floats(log, _OLD, 1, TILE + 1, True)
