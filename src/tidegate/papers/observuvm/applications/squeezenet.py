"""SN: SqueezeNet, inferring a batch of images."""

from __future__ import annotations

from tidegate.papers.observuvm.applications.neural_network import (
    FIRST_HALF,
    SECOND_HALF,
    WHOLE,
    Layer,
    Network,
    Part,
)
from tidegate.workloads.program import workload
from tidegate.workloads.suites import published_footprint

# Number, pixels on a side, maps in, maps of the squeeze layer, maps of each of the two expand
# layers.
_FIRES = (
    *((2, 55, 96, 16, 64), (3, 55, 128, 16, 64), (4, 55, 128, 32, 128), (5, 27, 256, 32, 128)),
    *((6, 27, 256, 48, 192), (7, 27, 384, 48, 192), (8, 27, 384, 64, 256), (9, 13, 512, 64, 256)),
)
# after which fire module: name, pixels on a side, maps
_POOLS = {4: ("pool4", 27, 256), 8: ("pool8", 13, 512)}


@workload("SN")
class SqueezeNet(Network):
    """SqueezeNet v1.0 (Iandola et al., arXiv 1602.07360), 227 × 227 × 3, for a batch of images.

    As in Tango (Karki et al., ISPASS 2019): thread block b has column y = b % side of image b /
    side, a thread for each x, and loops over all maps f:

        conv   out[image][f][x][y] = max(0, Σ in[image][c][s x + i][s y + j] * w[f][c][i][j])
        pool   out[image][f][x][y] = max in[image][f][2 x + i][2 y + j],  i, j < 3

    where the sum is over all c, i, j; so each block uses every page of its image's input and
    output, and all weights. A fire module is a squeeze layer of 1 × 1 and two expand layers of 1 ×
    1 and 3 × 3, which write the first and the second half of the module's maps. conv10 leaves a
    margin of one pixel around its 15 × 15; the average over it is the result.

    Operands: each layer's weights are read by every image; each activation is written by one layer
    and read by the next. Grid order: image by image, as in AN (a choice: Tango's SqueezeNet has one
    image). Tango's has doubles, too; the floats here make twice as many images of the same size
    together. Access sites: 0 = in, 1 = w, 2 = out. Table II: "Squeezenet batched inference", 19.8
    GB, some 1,020 images.
    """

    bytes = published_footprint("SN", "size of weights and activations")

    @property
    def weights(self) -> dict[str, int]:
        sizes = {"w1": 96 * 3 * 7 * 7}
        for number, _, maps, squeeze, expand in _FIRES:
            sizes[f"w{number}s"] = squeeze * maps
            sizes[f"w{number}e1"] = expand * squeeze
            sizes[f"w{number}e3"] = expand * squeeze * 3 * 3
        return {**sizes, "w10": 1000 * 512}

    @property
    def activations(self) -> dict[str, int]:
        sizes = {"input": 3 * 227 * 227, "conv1": 96 * 111 * 111, "pool1": 96 * 55 * 55}
        for number, side, _, squeeze, expand in _FIRES:
            sizes[f"squeeze{number}"] = squeeze * side * side
            sizes[f"fire{number}"] = 2 * expand * side * side
            if number in _POOLS:
                name, side, maps = _POOLS[number]
                sizes[name] = maps * side * side
        return {**sizes, "conv10": 1000 * 15 * 15, "output": 1000}

    @property
    def layers(self) -> list[Layer]:
        first = _conv(("conv1", "input", "conv1", "w1"), 111, 96, 3 * 7 * 7)
        layers, before = [first, _pool("pool1", "conv1", 55, 96)], "pool1"
        for number, side, maps, squeeze, expand in _FIRES:
            inner, after, w = f"squeeze{number}", f"fire{number}", f"w{number}"
            window = 3 * 3 * squeeze
            layers += [
                _conv((inner, before, inner, f"{w}s"), side, squeeze, maps),
                _conv((f"{after}e1", inner, after, f"{w}e1"), side, expand, squeeze, FIRST_HALF),
                _conv((f"{after}e3", inner, after, f"{w}e3"), side, expand, window, SECOND_HALF),
            ]
            before = after
            if number in _POOLS:
                before, *shape = _POOLS[number]
                layers.append(_pool(before, after, *shape))
        average = Layer("pool10", "conv10", "output", 1, 1000.0 * 15 * 15)
        return [*layers, _conv(("conv10", before, "conv10", "w10"), 15, 1000, 512), average]


def _conv(
    names: tuple[str, str, str, str], side: int, maps: int, window: int, writes: Part = WHOLE
) -> Layer:
    kernel, source, target, weights = names
    flops = 2.0 * maps * side * side * window
    return Layer(kernel, source, target, side, flops, weights, spread=True, writes=writes)


def _pool(name: str, source: str, side: int, maps: int) -> Layer:
    return Layer(name, source, name, side, 9.0 * maps * side * side, spread=True)
