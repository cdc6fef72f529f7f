"""kmeans: features turned about once, then points and centres until few change sides."""

from __future__ import annotations

from collections.abc import Iterator

from tidegate import units
from tidegate.options import Option
from tidegate.trace.trace import Launch
from tidegate.workloads.openmp.offloaded import Offloaded, Stream, region
from tidegate.workloads.program import Space, workload


@workload("openmp-kmeans")
class KMeans(Offloaded):
    """K-means clustering: examples/openmp/kmeans.c.

        invert_mapping  feature_turned[f * points + p] = feature[p * features + f]
        find_nearest    membership[p] = nearest of centres to feature_turned[f * points + p], for all f

    The features of a point are ``features`` streams, a plane apart. Every cluster reads them anew,
    from caches.
    """

    program = "kmeans"
    fresh = frozenset(("feature_turned",))
    bytes = Option(
        units.size("512MiB"), "size of the four arrays together", parse=units.size, least=1
    )
    features = Option(8, "of a point (the program's own default)", least=1)
    clusters = Option(5, "centres (the program's own default)", least=1)
    rounds = Option(
        34, "launches of find_nearest (what the program makes of its default input)", least=1
    )

    def variables(self) -> dict[str, int]:
        points = max(0, self.bytes - 4 * self.clusters * self.features) // (8 * self.features + 4)
        return {"points": points, "features": self.features, "clusters": self.clusters}

    def launches(self, space: Space) -> Iterator[Launch]:
        points = self.variables()["points"]
        planes = [4 * points * f for f in range(self.features)]
        turned = [Stream("feature_turned", 4, at, write=True) for at in planes]
        yield region(
            space, "invert_mapping", points, (Stream("feature", 4 * self.features), *turned)
        )
        read = [Stream("feature_turned", 4, at) for at in planes]
        nearest = (
            *read,
            Stream("centres", 4 * self.clusters * self.features / points),
            Stream("membership", 4, write=True),
        )
        again = region(space, "find_nearest", points, nearest)
        for _ in range(self.rounds):
            yield again
