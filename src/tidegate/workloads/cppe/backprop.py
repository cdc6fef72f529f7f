"""BKP: a layer of a neural network, forward and back."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tidegate import units
from tidegate.compiled.jit import jit
from tidegate.options import Option
from tidegate.trace.trace import Launch, Provenance
from tidegate.workloads.cppe.kernel import FLOAT, closed, fitted, going, stream, use
from tidegate.workloads.program import Space, Workload, workload
from tidegate.workloads.suites import published_bytes

TILE = 16  # HEIGHT, WIDTH and the hidden units
HIDDEN = 16
_PITCH = HIDDEN + 1  # a row of weights; the first is the threshold's
ARRAYS = (
    "input",
    "output_hidden",
    "input_hidden",
    "hidden_partial_sum",
    "hidden_delta",
    "input_prev_weights",
)
_INPUT, _OUTPUT, _WEIGHTS, _SUMS, _DELTA, _OLD = range(6)


@workload("cppe-BKP")
class Backprop(Workload):
    """Back-propagation through a layer of 16 hidden units: backprop of Rodinia, thread blocks of 16
    × 16, by = 0, 1, …

        index, index_in = 17 (16 by + ty + 1) + tx + 1, 16 by + ty + 1
        layerforward     input_hidden[index] *= input[index_in];  hidden_partial_sum[16 by + ty] = Σ over ty
        adjust_weights   w[index] += f(delta[tx + 1], input[index_in], oldw[index]);  oldw[index] is written
                         by = 0:  w[tx + 1], oldw[tx + 1] as well

    Operands: the weights and their last change, the input units, and small vectors. Grid order: by.
    References: the arrays as they are allocated. Table II: backprop, 9 MB, Type II; 65,536 input
    units make 9.0 MiB.
    """

    provenance = Provenance.DERIVED
    bytes = Option(
        published_bytes("cppe", "cppe-BKP"), "size of the six arrays", parse=units.size, least=1
    )

    @property
    def blocks(self) -> int:
        """Thread blocks, each 16 input units."""
        return fitted(self.bytes, sizes_of)

    def sizes(self) -> dict[str, int]:
        return sizes_of(self.blocks)

    def launches(self, space: Space) -> Iterator[Launch]:
        count = self.blocks
        yield Launch("bpnn_layerforward_CUDA", stream(space, _forward, count, ()))
        yield Launch("bpnn_adjust_weights_cuda", stream(space, _adjust, count, ()))


def sizes_of(blocks: int) -> dict[str, int]:
    """The six arrays of a network with 16 input units for each thread block."""
    units_in, hidden = FLOAT * (TILE * blocks + 1), FLOAT * (HIDDEN + 1)
    return dict(
        zip(
            ARRAYS,
            (
                units_in,
                hidden,
                _PITCH * units_in,
                FLOAT * HIDDEN * blocks,
                hidden,
                _PITCH * units_in,
            ),
            strict=True,
        )
    )


@jit
def _weights(log: Any, array: int, by: int) -> None:
    """A thread block's 16 × 16 weights, read and written."""
    for ty in range(TILE):
        at = FLOAT * (_PITCH * (TILE * by + ty + 1) + 1)
        use(log, array, at, at + FLOAT * TILE, True)


@jit
def _forward(log: Any, block: int, count: int, shape: Any) -> Any:
    while block < count and going(log):
        use(log, _INPUT, FLOAT * (TILE * block + 1), FLOAT * (TILE * block + TILE + 1), False)
        _weights(log, _WEIGHTS, block)
        use(log, _SUMS, FLOAT * HIDDEN * block, FLOAT * HIDDEN * (block + 1), True)
        block += closed(log)
    return block


@jit
def _adjust(log: Any, block: int, count: int, shape: Any) -> Any:
    while block < count and going(log):
        use(log, _DELTA, FLOAT, FLOAT * (TILE + 1), False)
        use(log, _INPUT, FLOAT * (TILE * block + 1), FLOAT * (TILE * block + TILE + 1), False)
        _weights(log, _OLD, block)
        _weights(log, _WEIGHTS, block)
        if block == 0:
            use(log, _WEIGHTS, FLOAT, FLOAT * (TILE + 1), True)
            use(log, _OLD, FLOAT, FLOAT * (TILE + 1), True)
        block += closed(log)
    return block
