"""Neural networks that infer a batch of images, layer by layer, a launch each.

    weights, activations   floats of each weight, and of each activation per image
    Layer                  a kernel: what it reads and writes, and how its blocks share an image
    Network                a workload made of these

A thread block works on one image: on block k of the image's ``blocks``. Blocks are numbered image
by image, so the thread blocks that are resident together, a wave, lie in a few neighbouring images.
A wave is one list of pages (see ``waves``): the weights and the inputs its blocks read, and then
the outputs they write.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tidegate.compiled.jit import jit
from tidegate.options import Option
from tidegate.trace.trace import Launch, Segment
from tidegate.workloads.program import Launches, Space, efficiency_option
from tidegate.workloads.waves import WaveWorkload, add_bytes, distribute, wave_segments

Part = tuple[int, int, int]  # of an image: from the first to the second, in units of 1 / third
WHOLE, FIRST_HALF, SECOND_HALF = (0, 1, 1), (0, 1, 2), (1, 2, 2)


@dataclass(frozen=True)
class Layer:
    """One kernel. A block reads its image's input, or its share of it and some neighbours'."""

    kernel: str
    source: str  # the activation it reads
    target: str  # the activation it writes
    blocks: int  # thread blocks for an image
    flops: float  # for an image
    weights: str = ""
    reach: int = -1  # shares on either side of its own that a block reads; -1: the whole input
    # a block writes into all of its image's output, and reads all weights; otherwise its share
    spread: bool = False
    reads: Part = WHOLE  # of an image's input
    writes: Part = WHOLE  # of an image's output
    part: Part = WHOLE  # of the weights


class Tensor(NamedTuple):
    """A tensor as a kernel sees it: all its bytes, and the part of an image (or weight) used."""

    first_page: int
    page: int
    site: int
    write: int
    bytes: int
    first: int
    stop: int
    of: int


class LayerWork(NamedTuple):
    """The work of a launch: images ``first`` to ``stop`` of ``images``, in waves."""

    images: int
    first: int
    stop: int
    blocks: int  # for an image
    reach: int
    spread: int
    wave: int
    lanes: int


class Network(WaveWorkload):
    """Base of the networks. The default ``bytes`` hold the weights and as many images as fit.

    At another size everything is in proportion, the weights too, so that the ratios of objects
    stay.
    """

    batches = Option(
        1, "batches that the images are inferred in, one after another (a choice)", least=1
    )
    buffers = Option(
        "own",
        "whether batches have their own activations or share them (a choice)",
        choices=("own", "shared"),
    )
    efficiency = efficiency_option(0.1)

    @property
    @abstractmethod
    def weights(self) -> dict[str, int]:
        """Floats of each layer's weights."""

    @property
    @abstractmethod
    def activations(self) -> dict[str, int]:
        """Floats of each activation, for one image."""

    @property
    @abstractmethod
    def layers(self) -> list[Layer]:
        """The kernels, in order."""

    @property
    def images(self) -> int:
        """Images that the activations have room for."""
        return max(1, round(self._scale * self._published_images))

    @property
    def _scale(self) -> float:
        return self.bytes / type(self).bytes.default

    @property
    def _published_images(self) -> float:
        floats = type(self).bytes.default / 4
        return (floats - sum(self.weights.values())) / sum(self.activations.values())

    def sizes(self) -> dict[str, int]:
        scale, images = self._scale, self._published_images
        floats = {name: size * scale for name, size in self.weights.items()}
        floats |= {name: size * scale * images for name, size in self.activations.items()}
        return {name: 4 * max(1, int(size)) for name, size in floats.items()}

    def launches(self, space: Space) -> Launches:
        images = self.images
        for batch in range(self.batches):
            first, stop = batch * images // self.batches, (batch + 1) * images // self.batches
            if self.buffers == "shared":
                first, stop = 0, images
            for layer in self.layers if first < stop else ():
                yield self._launch(space, layer, first, stop)

    def _launch(self, space: Space, layer: Layer, first: int, stop: int) -> Launch:
        wave = min(self.wave, (stop - first) * layer.blocks)
        lanes = min(self.lanes, wave)
        images, spread = self.images, int(layer.spread)
        work = LayerWork(images, first, stop, layer.blocks, layer.reach, spread, wave, lanes)
        used = np.zeros(3)
        for s in _touches(space, layer, work):
            used += np.bincount(s.reference, s.bytes, minlength=3)
        intensity = layer.flops * (stop - first) / used.sum() / self.efficiency
        touches, sharing = _touches(space, layer, work), _sharing(space, layer, work, used)
        return Launch(layer.kernel, touches, max(1, wave // lanes), intensity, sharing=sharing)


def _sharing(space: Space, layer: Layer, work: LayerWork, used: NDArray[Any]) -> tuple[float, ...]:
    """Return by access site how many blocks use each byte: what all blocks use over what waves do.

    Halos, and outputs into which several blocks write, are not counted.
    """
    blocks = (work.stop - work.first) * work.blocks

    def shared(site: int, name: str, part: Part, each: float, of: int) -> float:
        first, stop, whole = part
        asked = blocks * each * space[name].bytes * (stop - first) / whole / of
        return max(1.0, asked / float(used[site]))

    share = 1 / work.blocks
    source = shared(0, layer.source, layer.reads, 1 if layer.reach < 0 else share, work.images)
    if not layer.weights:
        return source, 1.0, 1.0
    return source, shared(1, layer.weights, layer.part, 1 if layer.spread else share, 1), 1.0


def _touches(space: Space, layer: Layer, work: LayerWork) -> Iterator[Segment]:
    def tensor(name: str, site: int, part: Part, write: int = 0) -> Tensor:
        owner = space[name]
        return Tensor(owner.first_page, space.geometry.page, site, write, owner.bytes, *part)

    # a layer without weights gets an empty part of its input in their place
    weights = (layer.weights, 1, layer.part) if layer.weights else (layer.source, 1, (0, 0, 1))
    source, target = (layer.source, 0, layer.reads), (layer.target, 2, layer.writes, 1)
    tensors = tensor(*source), tensor(*weights), tensor(*target)
    names = {name for name in (layer.source, layer.target, layer.weights) if name}
    most = sum(space[name].pages for name in names)
    count = -(-(work.stop - work.first) * work.blocks // work.wave)
    return wave_segments(count, most, _fill, work, tensors)


@jit
def _fill(columns: Any, needs: Any, number: int, enough: int, work: Any, tensors: Any) -> Any:
    """Fill in waves from ``number`` on, until there are ``enough`` touches; see ``waves.Fill``."""
    source, weights, target = tensors
    block = touch = 0
    count = (work.stop - work.first) * work.blocks
    while number * work.wave < count and touch < enough:
        first, stop = number * work.wave, min(count, (number + 1) * work.wave)
        end = _add_weights(needs, 0, weights, work, first, stop)
        end = _add_images(needs, end, source, work, first, stop, work.reach, 0)
        reach = -1 if work.spread else 0
        end = _add_images(needs, end, target, work, first, stop, reach, 1)
        block, touch = distribute(needs, end, 2, work.lanes, columns, block, touch)
        number += 1
    return number, block, touch


@jit
def _add_weights(needs: Any, end: int, weights: Any, work: Any, first: int, stop: int) -> Any:
    """Add the weights of blocks ``first`` to ``stop``; shares are the same in every image."""
    own, blocks = end, work.blocks
    low, high = first % blocks, (stop - 1) % blocks + 1
    if work.spread or stop - first >= blocks:
        low, high = 0, blocks
    begin = weights.bytes * weights.first // weights.of
    length = weights.bytes * (weights.stop - weights.first) // weights.of
    if low >= high:  # the end of one image and the beginning of the next
        end = add_bytes(needs, own, end, weights, begin, begin + length * high // blocks, 0)
        high = blocks
    low, high = begin + length * low // blocks, begin + length * high // blocks
    return add_bytes(needs, own, end, weights, low, high, 0)


@jit
def _add_images(
    needs: Any, end: int, tensor: Any, work: Any, first: int, stop: int, reach: int, step: int
) -> Any:
    """Add what blocks ``first`` to ``stop`` use of a tensor.

    Of each image that is their shares, ``reach`` more on either side, or all (-1).
    """
    own, blocks = end, work.blocks
    for image in range(first // blocks, (stop - 1) // blocks + 1):
        low, high = max(0, first - image * blocks), min(blocks, stop - image * blocks)
        low, high = (0, blocks) if reach < 0 else (max(0, low - reach), min(blocks, high + reach))
        begin = (work.first + image) * tensor.bytes // work.images
        length = (work.first + image + 1) * tensor.bytes // work.images - begin
        begin += length * tensor.first // tensor.of
        length = length * (tensor.stop - tensor.first) // tensor.of
        low, high = begin + length * low // blocks, begin + length * high // blocks
        end = add_bytes(needs, own, end, tensor, low, high, step)
    return end
