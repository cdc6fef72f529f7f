"""AN and SN: AlexNet and SqueezeNet, each inferring a batch of images."""

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

# A kernel has a thread for each pixel of a feature map, and no thread block has more than 1024
# threads; so the 55 × 55 pixels of the first layer take four launches, of 32 × 32, 32 × 23, 23 × 32
# and 23 × 23.
_QUARTERS = [32 * 32, 32 * 23, 23 * 32, 23 * 23]
_LRN_FLOPS = 14  # per float: five squares, their sum, and (1 + a s)^b with a division

# Maps and pixels on a side of each activation of an image.
_ACTIVATIONS = (
    {"input": (3, 227), "conv1": (96, 55), "norm1": (96, 55), "pool1": (96, 27)}
    | {"conv2": (256, 27), "norm2": (256, 27), "pool2": (256, 13), "conv3": (384, 13)}
    | {"conv4": (384, 13), "conv5": (256, 13), "pool5": (256, 6)}
    | {"fc6": (4096, 1), "fc7": (4096, 1), "fc8": (1000, 1)}
)


@workload("AN")
class AlexNet(Network):
    """AlexNet (Krizhevsky et al., NeurIPS 2012), 227 × 227 × 3, for a batch of images.

    As in Tango (Karki et al., ISPASS 2019): thread block b has feature map f = b % maps of image b
    / maps, a thread for each pixel (x, y) of it; in fc, a thread block is a float:

        conv   out[image][f][x][y] = max(0, bias + Σ in[image][c][s x + i][s y + j] * w[f][c][i][j])
        norm   out[image][f][x][y] =
                   in[image][f][x][y] / (1 + α/5 Σ in[image][f - 2 … f + 2][x][y]²)^β
        pool   out[image][f][x][y] = max in[image][f][2 x + i][2 y + j],  i, j < 3
        fc     out[image][f] = max(0, bias + Σ in[image][c] * w[f][c])

    Operands: each layer's weights are read by every image; each activation is written by one layer
    and read by the next. conv2, conv4 and conv5 have two groups, each a launch: half of the maps
    from half of the input. Grid order: image by image, all of them in one launch, as Tango's
    "number of images to process in parallel" has it; or see ``batches``. Access sites: 0 = in, 1 =
    w, 2 = out. Table II: "Alexnet batched inference", 10.3 GB, some 1,910 images.
    """

    bytes = published_footprint("AN", "size of weights and activations")

    @property
    def weights(self) -> dict[str, int]:
        convolutions = {"w1": 96 * 3 * 11 * 11, "w2": 256 * 48 * 5 * 5, "w3": 384 * 256 * 3 * 3}
        convolutions |= {"w4": 384 * 192 * 3 * 3, "w5": 256 * 192 * 3 * 3}
        return convolutions | {"w6": 4096 * 9216, "w7": 4096 * 4096, "w8": 1000 * 4096}

    @property
    def activations(self) -> dict[str, int]:
        return {name: maps * side * side for name, (maps, side) in _ACTIVATIONS.items()}

    @property
    def layers(self) -> list[Layer]:
        first = [
            Layer("conv1", "input", "conv1", 96, 2.0 * 96 * pixels * 3 * 11 * 11, "w1")
            for pixels in _QUARTERS
        ]
        first += [
            Layer("norm1", "conv1", "norm1", 96, 1.0 * _LRN_FLOPS * 96 * pixels, reach=2)
            for pixels in _QUARTERS
        ]
        return [
            *first,
            Layer("pool1", "norm1", "pool1", 96, 9.0 * 96 * 27 * 27, reach=0),
            *_grouped("conv2", "pool1", "w2", 256, 27 * 27, 48 * 5 * 5),
            Layer("norm2", "conv2", "norm2", 256, 1.0 * _LRN_FLOPS * 256 * 27 * 27, reach=2),
            Layer("pool2", "norm2", "pool2", 256, 9.0 * 256 * 13 * 13, reach=0),
            Layer("conv3", "pool2", "conv3", 384, 2.0 * 384 * 13 * 13 * 256 * 3 * 3, "w3"),
            *_grouped("conv4", "conv3", "w4", 384, 13 * 13, 192 * 3 * 3),
            *_grouped("conv5", "conv4", "w5", 256, 13 * 13, 192 * 3 * 3),
            Layer("pool5", "conv5", "pool5", 256, 9.0 * 256 * 6 * 6, reach=0),
            Layer("fc6", "pool5", "fc6", 4096, 2.0 * 4096 * 9216, "w6"),
            Layer("fc7", "fc6", "fc7", 4096, 2.0 * 4096 * 4096, "w7"),
            Layer("fc8", "fc7", "fc8", 1000, 2.0 * 1000 * 4096, "w8"),
        ]


def _grouped(
    name: str, source: str, weights: str, maps: int, pixels: int, window: int
) -> list[Layer]:
    """Return a convolution in two groups, each with half of the maps, the input and the weights."""
    flops = 2.0 * maps / 2 * pixels * window
    return [
        Layer(name, source, name, maps // 2, flops, weights, reads=half, writes=half, part=half)
        for half in (FIRST_HALF, SECOND_HALF)
    ]


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
