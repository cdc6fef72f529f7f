"""AN: AlexNet, inferring a batch of images."""

from __future__ import annotations

from tidegate import units
from tidegate.options import Option
from tidegate.workloads.observuvm.layers import FIRST_HALF, SECOND_HALF, Layer, Network
from tidegate.workloads.program import workload
from tidegate.workloads.suites import published_bytes

# A kernel has a thread for each pixel of a feature map, and no thread block has more than 1024
# threads; so the 55 × 55 pixels of the first layer take four launches, of 32 × 32, 32 × 23, 23 × 32
# and 23 × 23.
_QUARTERS = [32 * 32, 32 * 23, 23 * 32, 23 * 23]
_LRN_FLOPS = 14  # per float: five squares, their sum, and (1 + a s)^b with a division


@workload("AN")
class AlexNet(Network):
    """AlexNet (Krizhevsky et al., NeurIPS 2012), 227 × 227 × 3, as Tango (Karki et al., ISPASS
    2019), for a batch of images.

    Thread block b has feature map f = b % maps of image b / maps, a thread for each pixel (x, y) of
    it:

        conv   out[image][f][x][y] = max(0, bias + Σ in[image][c][s x + i][s y + j] * w[f][c][i][j])      all c, i, j
        norm   out[image][f][x][y] = in[image][f][x][y] / (1 + α/5 Σ in[image][f - 2 … f + 2][x][y]²)^β
        pool   out[image][f][x][y] = max in[image][f][2 x + i][2 y + j],  i, j < 3
        fc     out[image][f] = max(0, bias + Σ in[image][c] * w[f][c])                                    a thread each

    Operands: each layer's weights are read by every image; each activation is written by one layer
    and read by the next. conv2, conv4 and conv5 have two groups, each a launch: half of the maps
    from half of the input. Grid order: image by image, all of them in one launch, as Tango's
    "number of images to process in parallel" has it; or see ``batches``. References: 0 = in, 1 = w,
    2 = out. Table II: "Alexnet batched inference", 10.3 GB, some 1,910 images.
    """

    bytes = Option(
        published_bytes("observuvm", "AN"),
        "size of weights and activations",
        parse=units.size,
        least=1,
    )

    @property
    def weights(self) -> dict[str, int]:
        return {
            "w1": 96 * 3 * 11 * 11,
            "w2": 256 * 48 * 5 * 5,
            "w3": 384 * 256 * 3 * 3,
            "w4": 384 * 192 * 3 * 3,
            "w5": 256 * 192 * 3 * 3,
            "w6": 4096 * 9216,
            "w7": 4096 * 4096,
            "w8": 1000 * 4096,
        }

    @property
    def activations(self) -> dict[str, int]:
        return {
            "input": 3 * 227 * 227,
            "conv1": 96 * 55 * 55,
            "norm1": 96 * 55 * 55,
            "pool1": 96 * 27 * 27,
            "conv2": 256 * 27 * 27,
            "norm2": 256 * 27 * 27,
            "pool2": 256 * 13 * 13,
            "conv3": 384 * 13 * 13,
            "conv4": 384 * 13 * 13,
            "conv5": 256 * 13 * 13,
            "pool5": 256 * 6 * 6,
            "fc6": 4096,
            "fc7": 4096,
            "fc8": 1000,
        }

    @property
    def layers(self) -> list[Layer]:
        return [
            *(
                Layer("conv1", "input", "conv1", 96, 2.0 * 96 * q * 3 * 11 * 11, "w1")
                for q in _QUARTERS
            ),
            *(
                Layer("norm1", "conv1", "norm1", 96, 1.0 * _LRN_FLOPS * 96 * q, reach=2)
                for q in _QUARTERS
            ),
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
    """A convolution in two groups: each makes half of the maps, of half of the input, with half of
    the weights.
    """
    flops = 2.0 * maps / 2 * pixels * window
    return [
        Layer(name, source, name, maps // 2, flops, weights, reads=half, writes=half, part=half)
        for half in (FIRST_HALF, SECOND_HALF)
    ]
