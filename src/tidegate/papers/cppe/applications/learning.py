"""BKP and KMN: a layer of a neural network trained, and points assigned to clusters."""

from __future__ import annotations

from typing import Any

from tidegate.compiled.jit import jit
from tidegate.options import Option
from tidegate.workloads.program import Derived, Launches, Space, largest_fit, workload
from tidegate.workloads.suites import published_footprint
from tidegate.workloads.thread_blocks import FLOAT, across, blocks, launch_of, step, use_floats

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
                         oldw[index] is stored;  by = 0:  w[tx + 1], oldw[tx + 1] as well

    The warps of a thread block load before the first of them stores.

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
def _weights(log: Any, array: int, by: int, write: bool) -> None:
    """Load or store a thread block's 16 × 16 weights."""
    for ty in range(TILE):
        at = _PITCH * (TILE * by + ty + 1) + 1
        use_floats(log, array, at, at + TILE, write)


@jit
def _forward(log: Any, count: int, shape: Any) -> None:
    for block in blocks(log, count):
        use_floats(log, _INPUT, TILE * block + 1, TILE * block + TILE + 1, False)
        _weights(log, _WEIGHTS, block, False)
        _weights(log, _WEIGHTS, block, True)
        use_floats(log, _SUMS, HIDDEN * block, HIDDEN * (block + 1), True)


@jit
def _adjust(log: Any, count: int, shape: Any) -> None:
    for block in blocks(log, count):
        use_floats(log, _DELTA, 1, TILE + 1, False)
        use_floats(log, _INPUT, TILE * block + 1, TILE * block + TILE + 1, False)
        _weights(log, _OLD, block, False)
        _weights(log, _WEIGHTS, block, False)
        _weights(log, _WEIGHTS, block, True)
        _weights(log, _OLD, block, True)
        if block == 0:
            for write in (False, True):
                use_floats(log, _WEIGHTS, 1, TILE + 1, write)
                use_floats(log, _OLD, 1, TILE + 1, write)


THREADS = 256
_FLIPPED, _FEATURE, _MEMBERSHIP = range(3)


@workload("cppe-KMN")
class KMeans(Derived):
    """k-means of points × features floats: kmeans of Rodinia, 256 threads, a point each (p).

        invert_mapping   feature[p + points i] = feature_flipped[features p + i],  all i < features
        kmeansPoint      for each cluster, for each i:
                             distance += (feature[p + points i] - cluster[i])²
                         membership[p] = the nearest

    Operands: the table as read (a point's features side by side), transposed (a feature's points
    side by side), and the memberships; the clusters are constants. Grid order: from the first point
    to the last. A step of kmeansPoint is one cluster. Access sites: as they are allocated. Table
    II: kmeans, 130 MB, Type II; the 494,020 points of kdd_cup make 130.0 MiB. How many iterations
    kdd_cup takes is not published, and the paper cuts long runs short.
    """

    bytes = published_footprint("cppe-KMN", "size of both tables and memberships")
    features = Option(34, "features of a point (a choice: 34, as kdd_cup)", least=1)
    clusters = Option(5, "clusters (a choice: 5, as Rodinia's default)", least=1)
    iterations = Option(
        2, "calls of kmeansPoint (a choice: 2, the fewest that Rodinia's loop makes)", least=1
    )

    @property
    def points(self) -> int:
        return max(1, self.bytes // (FLOAT * (2 * self.features + 1)))

    def sizes(self) -> dict[str, int]:
        table = FLOAT * self.points * self.features
        return {"feature_flipped": table, "feature": table, "membership": FLOAT * self.points}

    def launches(self, space: Space) -> Launches:
        count, shape = across(self.points, THREADS), (self.points, self.features, self.clusters)
        yield launch_of(space, "invert_mapping", _invert, count, shape)
        for _ in range(self.iterations):
            yield launch_of(space, "kmeansPoint", _assign, count, shape)


@jit
def _columns(log: Any, low: int, high: int, points: int, features: int, write: bool) -> None:
    for i in range(features):
        use_floats(log, _FEATURE, low + points * i, high + points * i, write)


@jit
def _invert(log: Any, count: int, shape: Any) -> None:
    points, features, _ = shape
    for block in blocks(log, count):
        low, high = THREADS * block, min(points, THREADS * (block + 1))
        use_floats(log, _FLIPPED, features * low, features * high, False)
        _columns(log, low, high, points, features, True)


@jit
def _assign(log: Any, count: int, shape: Any) -> None:
    points, features, clusters = shape
    for block in blocks(log, count):
        low, high = THREADS * block, min(points, THREADS * (block + 1))
        for _ in range(clusters):
            step(log)
            _columns(log, low, high, points, features, False)
        use_floats(log, _MEMBERSHIP, low, high, True)
