"""KMN: points assigned to clusters, from a table that was transposed first."""

from __future__ import annotations

from typing import Any

from tidegate.compiled.jit import jit
from tidegate.options import Option
from tidegate.workloads.program import Derived, Launches, Space, workload
from tidegate.workloads.suites import published_footprint
from tidegate.workloads.thread_blocks import FLOAT, across, blocks, launch_of, step, use_floats

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
