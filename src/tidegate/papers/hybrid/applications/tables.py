"""nn, kmeans and backprop: records, features and weights, read row after row."""

from __future__ import annotations

from tidegate.options import Option
from tidegate.papers.hybrid.applications import Offloaded
from tidegate.trace.trace import Launch
from tidegate.workloads.offloaded import StreamedBytes, loop_launch
from tidegate.workloads.program import Launches, Space, footprint, workload


@workload("openmp-nn")
class NN(Offloaded):
    """Nearest neighbours: examples/openmp/nn.c, one kernel region, launched once.

    euclid  distances[i] = f(locations[i])
    """

    program = "nn"
    unwritten = frozenset(("distances",))
    bytes = footprint("512MiB", "size of the two arrays together")

    def variables(self) -> dict[str, int]:
        return {"n": self.bytes // 12}

    def launches(self, space: Space) -> Launches:
        accesses = StreamedBytes("locations", 8), StreamedBytes("distances", 4, write=True)
        yield loop_launch(space, "euclid", self.bytes // 12, *accesses)


@workload("openmp-kmeans")
class KMeans(Offloaded):
    """K-means clustering: examples/openmp/kmeans.c.

        invert_mapping  feature_turned[f * points + p] = feature[p * features + f]
        find_nearest    nearest of centres to feature_turned[f * points + p], all f
                        if membership[p] != nearest:  changed;  membership[p] = nearest

    The features of a point are ``features`` streams, a plane apart. Every cluster reads them again,
    from caches. Between two launches of find_nearest the host moves the centres, for which it reads
    ``membership`` and its own ``feature``.
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
        nearest = (StreamedBytes("membership", 4), StreamedBytes("membership", 4, write=True))
        again = loop_launch(space, "find_nearest", points, *read, centres, *nearest)
        for n in range(self.rounds):
            yield again if n == 0 else self.after_host(space, again, "membership")


@workload("openmp-backprop")
class Backprop(Offloaded):
    """Training of a network: examples/openmp/backprop.c, two regions, launched for either layer.

        layer_forward   result[j] = f(Σ_k weights[k * (to + 1) + j] * source[k])
        adjust_weights  weights, previous [k * (to + 1) + j] += f(delta[j], source[k])

    Rows of weights are read one after another. That is what threads of all units j do that walk
    down the rows k together, and what Rodinia's own kernel does, which has a thread for each
    weight; the paper's programs are as fast as Rodinia's.
    """

    program = "backprop"
    bytes = footprint("512MiB", "size of all arrays together")
    hidden = Option(
        16, "hidden units (Rodinia's, the program's default); tiny networks have fewer", least=1
    )
    out = Option(1, "output units (the program's own default)", least=1)

    def variables(self) -> dict[str, int]:
        hidden = max(1, min(self.hidden, self.bytes // 128))
        rest = 8 * (hidden + 1) + 8 * (self.out + 1) + 8 * (hidden + 1) * (self.out + 1)
        into = max(0, (self.bytes - rest) // (8 * (hidden + 1) + 4)) - 1  # -1: too small for any
        return {"in": into, "hidden": hidden, "out": self.out}

    def launches(self, space: Space) -> Launches:
        into, hidden, out = self.variables().values()
        name = "layer_forward"
        yield _forward(space, name, into, hidden, "input_units", "hidden_units", "input_weights")
        name = "layer_forward/2"
        yield _forward(space, name, hidden, out, "hidden_units", "output_units", "hidden_weights")
        yield _adjust(space, "adjust_weights", hidden, out, "hidden", "output_delta")
        yield _adjust(space, "adjust_weights/2", into, hidden, "input", "hidden_delta")


def _forward(
    space: Space, name: str, inputs: int, units: int, source: str, result: str, weights: str
) -> Launch:
    n = (inputs + 1) * (units + 1)
    written = StreamedBytes(result, 4 * (units + 1) / n, write=True)
    return loop_launch(
        space,
        name,
        n,
        StreamedBytes(weights, 4),
        StreamedBytes(source, 4 * (inputs + 1) / n),
        written,
    )


def _adjust(space: Space, name: str, inputs: int, units: int, layer: str, delta: str) -> Launch:
    n = (inputs + 1) * (units + 1)
    changed = [
        StreamedBytes(f"{layer}_{array}", 4, write=write)
        for write in (False, True)
        for array in ("weights", "previous")
    ]
    return loop_launch(
        space,
        name,
        n,
        StreamedBytes(delta, 4 * (units + 1) / n),
        StreamedBytes(f"{layer}_units", 4 * (inputs + 1) / n),
        *changed,
    )
