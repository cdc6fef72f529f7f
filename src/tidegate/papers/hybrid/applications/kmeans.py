"""kmeans: features transposed once, then points assigned to centres until few change."""

from __future__ import annotations

from tidegate.options import Option
from tidegate.papers.hybrid.applications.offloaded import Offloaded
from tidegate.workloads.offloaded import StreamedBytes, loop_launch
from tidegate.workloads.program import Launches, Space, footprint, workload


@workload("openmp-kmeans")
class KMeans(Offloaded):
    """K-means clustering: examples/openmp/kmeans.c.

        invert_mapping  feature_turned[f * points + p] = feature[p * features + f]
        find_nearest    membership[p] = nearest of centres to feature_turned[f * points + p], all f

    The features of a point are ``features`` streams, a plane apart. Every cluster reads them again,
    from caches.
    """

    program = "kmeans"
    unwritten = frozenset(("feature_turned",))
    bytes = footprint("512MiB", "size of the four arrays together")
    features = Option(8, "features of a point (the program's own default)", least=1)
    clusters = Option(5, "centres (the program's own default)", least=1)
    rounds = Option(
        34, "launches of find_nearest (as many as the program's default input takes)", least=1
    )

    def variables(self) -> dict[str, int]:
        points = max(0, self.bytes - 4 * self.clusters * self.features) // (8 * self.features + 4)
        return {"points": points, "features": self.features, "clusters": self.clusters}

    def launches(self, space: Space) -> Launches:
        points = self.variables()["points"]
        planes = [4 * points * f for f in range(self.features)]
        table = StreamedBytes("feature", 4 * self.features)
        written = [StreamedBytes("feature_turned", 4, at, write=True) for at in planes]
        yield loop_launch(space, "invert_mapping", points, table, *written)
        read = [StreamedBytes("feature_turned", 4, at) for at in planes]
        centres = StreamedBytes("centres", 4 * self.clusters * self.features / points)
        nearest = StreamedBytes("membership", 4, write=True)
        again = loop_launch(space, "find_nearest", points, *read, centres, nearest)
        for _ in range(self.rounds):
            yield again
