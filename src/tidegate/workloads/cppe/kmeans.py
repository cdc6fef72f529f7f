"""KMN: points assigned to clusters, from a table that was turned on its side first."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tidegate import units
from tidegate.compiled.jit import jit
from tidegate.options import Option
from tidegate.trace.trace import Launch, Provenance
from tidegate.workloads.cppe.kernel import FLOAT, across, closed, going, step, stream, use
from tidegate.workloads.program import Space, Workload, workload
from tidegate.workloads.suites import published_bytes

THREADS = 256
ARRAYS = ("feature_flipped", "feature", "membership")
_FLIPPED, _FEATURE, _MEMBERSHIP = range(3)


@workload("cppe-KMN")
class KMeans(Workload):
    """k-means of points × features floats: kmeans of Rodinia, 256 threads, a point each (p).

        invert_mapping   feature[p + points i] = feature_flipped[features p + i],   i = 0 … features - 1
        kmeansPoint      for each cluster, for each i:  distance += (feature[p + points i] - cluster[i])²
                         membership[p] = the nearest

    Operands: the table as read (a point's features side by side), turned (a feature's points side
    by side), and the memberships; the clusters are constants. Grid order: from the first point to
    the last. A step of kmeansPoint is one cluster. References: as they are allocated. Table II:
    kmeans, 130 MB, Type II; the 494,020 points of kdd_cup make 130.0 MiB. How many iterations
    kdd_cup takes is not published, and the paper cuts long runs short.
    """

    provenance = Provenance.DERIVED
    bytes = Option(
        published_bytes("cppe", "cppe-KMN"),
        "size of both tables and memberships",
        parse=units.size,
        least=1,
    )
    features = Option(34, "features of a point (a choice: 34, as kdd_cup)", least=1)
    clusters = Option(5, "clusters (a choice: 5, as Rodinia's default)", least=1)
    iterations = Option(
        2,
        "calls of kmeansPoint (a choice: 2, the fewest that Rodinia's loop takes, as all points change in the first)",
        least=1,
    )

    @property
    def points(self) -> int:
        return max(1, self.bytes // (FLOAT * (2 * self.features + 1)))

    def sizes(self) -> dict[str, int]:
        table = FLOAT * self.points * self.features
        return dict(zip(ARRAYS, (table, table, FLOAT * self.points), strict=True))

    def launches(self, space: Space) -> Iterator[Launch]:
        count, shape = across(self.points, THREADS), (self.points, self.features, self.clusters)
        yield Launch("invert_mapping", stream(space, _invert, count, shape))
        for _ in range(self.iterations):
            yield Launch("kmeansPoint", stream(space, _assign, count, shape))


@jit
def _columns(log: Any, low: int, high: int, points: int, features: int, write: bool) -> None:
    for i in range(features):
        use(log, _FEATURE, FLOAT * (low + points * i), FLOAT * (high + points * i), write)


@jit
def _invert(log: Any, block: int, count: int, shape: Any) -> Any:
    points, features, _ = shape
    while block < count and going(log):
        low, high = THREADS * block, min(points, THREADS * (block + 1))
        use(log, _FLIPPED, FLOAT * features * low, FLOAT * features * high, False)
        _columns(log, low, high, points, features, True)
        block += closed(log)
    return block


@jit
def _assign(log: Any, block: int, count: int, shape: Any) -> Any:
    points, features, clusters = shape
    while block < count and going(log):
        low, high = THREADS * block, min(points, THREADS * (block + 1))
        for _ in range(clusters):
            step(log)
            _columns(log, low, high, points, features, False)
        use(log, _MEMBERSHIP, FLOAT * low, FLOAT * high, True)
        block += closed(log)
    return block
