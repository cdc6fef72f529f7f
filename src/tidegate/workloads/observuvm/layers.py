"""Layers: neural networks that infer a batch of images, layer by layer, a launch each.

    Tensor sizes           floats of each activation per image, and of each weight
    Layer                  a kernel: what it reads, what it writes, and how its thread blocks share an image
    Network                a workload made of these

A thread block works on one image: on block k of the image's ``blocks``. Blocks are numbered image
by image, so the thread blocks that are resident together, a wave, lie in a few neighbouring images.
A wave is one list of pages (see ``wave``): the weights and the inputs its blocks read, and then
what they write.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from numpy.typing import NDArray

from tidegate import units
from tidegate.compiled.jit import jit
from tidegate.options import Option
from tidegate.trace.trace import Launch, Provenance, Segment
from tidegate.workloads.program import Space, Workload
from tidegate.workloads.wave import Columns, deal, stretch, waves

WHOLE = (0, 1, 1)  # a part of an image: from 0 of 1 to 1 of 1
FIRST_HALF, SECOND_HALF = (0, 1, 2), (1, 2, 2)

Part = tuple[int, int, int]


@dataclass(frozen=True)
class Layer:
    """One kernel.

    A block reads its image's input, its own share of it, or that and some neighbours'; see
    ``reach``.
    """

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
    """A tensor as a kernel sees it: ``bytes`` in all, and the part of an image (or of the weights)
    that is used.
    """

    first_page: int
    page: int
    reference: int
    write: int
    bytes: int
    first: int
    stop: int
    of: int


class Work(NamedTuple):
    """What a launch does: images ``first`` to ``stop`` of ``images``, in waves of thread blocks."""

    images: int
    first: int
    stop: int
    blocks: int  # for an image
    reach: int
    spread: int
    wave: int
    lanes: int


class Network(Workload):
    """Base of the networks. At its default, ``bytes`` holds the weights and as many images as there
    is room for.

    At another size everything is in proportion, the weights too, so that the ratios of objects
    stay.
    """

    provenance = Provenance.DERIVED
    bytes: Option[int]
    batches = Option(
        1, "batches that the images are inferred in, one after another (a choice)", least=1
    )
    buffers = Option(
        "own",
        "own: each batch has its own part of every activation; shared: every batch uses all of them again (a choice)",
        choices=("own", "shared"),
    )
    wave = Option(656, "thread blocks resident together; 656 are 82 SMs with 8 each", least=1)
    lanes = Option(16, "blocks that a wave is dealt over", least=1)
    # L, low confidence: a guess, named so that it can be varied.
    efficiency = Option(
        0.1,
        "share of peak FP32 that the kernels reach (a guess)",
        parse=units.fraction,
        least=0.001,
        most=1,
    )

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
        weights = {name: floats * self._scale for name, floats in self.weights.items()}
        activations = {
            name: floats * self._scale * self._published_images
            for name, floats in self.activations.items()
        }
        return {
            name: 4 * max(1, int(floats)) for name, floats in {**weights, **activations}.items()
        }

    def launches(self, space: Space) -> Iterator[Launch]:
        images = self.images
        for batch in range(self.batches):
            first, stop = batch * images // self.batches, (batch + 1) * images // self.batches
            if self.buffers == "shared":
                first, stop = 0, images
            for layer in self.layers if first < stop else ():
                yield self._launch(space, layer, first, stop)

    def _launch(self, space: Space, layer: Layer, first: int, stop: int) -> Launch:
        count = (stop - first) * layer.blocks
        wave = min(self.wave, count)
        lanes = min(self.lanes, wave)
        work = Work(
            self.images, first, stop, layer.blocks, layer.reach, int(layer.spread), wave, lanes
        )
        used = float(sum(s.bytes.sum(dtype="int64") for s in self._touches(space, layer, work)))
        intensity = layer.flops * (stop - first) / used / self.efficiency
        return Launch(
            layer.kernel, self._touches(space, layer, work), max(1, wave // lanes), intensity
        )

    def _touches(self, space: Space, layer: Layer, work: Work) -> Iterator[Segment]:
        def tensor(name: str, reference: int, part: Part, write: int = 0) -> Tensor:
            owner = space[name]
            return Tensor(
                owner.first_page, space.geometry.page, reference, write, owner.bytes, *part
            )

        source, target = (
            tensor(layer.source, 0, layer.reads),
            tensor(layer.target, 2, layer.writes, 1),
        )
        # A layer without weights gets none of its input's bytes in their place.
        weights = (
            tensor(layer.weights, 1, layer.part)
            if layer.weights
            else tensor(layer.source, 1, (0, 0, 1))
        )

        def fill(
            columns: Columns, needs: NDArray[Any], number: int, enough: int
        ) -> tuple[int, int, int]:
            return _fill(columns, needs, number, enough, work, weights, source, target)

        most = sum(
            owner.pages
            for owner in {space[n] for n in (layer.source, layer.target, layer.weights) if n}
        )
        yield from waves(-(-(work.stop - work.first) * work.blocks // work.wave), most, fill)


@jit
def _fill(
    columns: Any,
    needs: Any,
    number: int,
    enough: int,
    work: Any,
    weights: Any,
    source: Any,
    target: Any,
) -> Any:
    """Waves from ``number`` on, until there are ``enough`` touches; see ``wave.Fill``."""
    block = touch = 0
    count = (work.stop - work.first) * work.blocks
    while number * work.wave < count and touch < enough:
        first, stop = number * work.wave, min(count, (number + 1) * work.wave)
        end = _need_weights(needs, 0, weights, work, first, stop)
        end = _need_images(needs, end, source, work, first, stop, work.reach, 0)
        reach = -1 if work.spread else 0
        end = _need_images(needs, end, target, work, first, stop, reach, 1)
        block, touch = deal(needs, end, 2, work.lanes, columns, block, touch)
        number += 1
    return number, block, touch


@jit
def _need_weights(needs: Any, end: int, weights: Any, work: Any, first: int, stop: int) -> Any:
    """The weights of blocks ``first`` to ``stop``: each has its share, which is the same in every
    image.
    """
    own = end
    low, high = first % work.blocks, (stop - 1) % work.blocks + 1
    if work.spread or stop - first >= work.blocks:
        low, high = 0, work.blocks
    begin, length = (
        weights.bytes * weights.first // weights.of,
        weights.bytes * (weights.stop - weights.first) // weights.of,
    )
    if low >= high:  # the end of one image and the beginning of the next
        end = stretch(needs, own, end, weights, begin, begin + length * high // work.blocks, 0)
        high = work.blocks
    return stretch(
        needs,
        own,
        end,
        weights,
        begin + length * low // work.blocks,
        begin + length * high // work.blocks,
        0,
    )


@jit
def _need_images(
    needs: Any, end: int, tensor: Any, work: Any, first: int, stop: int, reach: int, step: int
) -> Any:
    """What blocks ``first`` to ``stop`` use of a tensor: of each image their shares, some more, or
    all.
    """
    own = end
    for image in range(first // work.blocks, (stop - 1) // work.blocks + 1):
        low, high = (
            max(0, first - image * work.blocks),
            min(work.blocks, stop - image * work.blocks),
        )
        low, high = (
            (0, work.blocks) if reach < 0 else (max(0, low - reach), min(work.blocks, high + reach))
        )
        begin = (work.first + image) * tensor.bytes // work.images
        length = (work.first + image + 1) * tensor.bytes // work.images - begin
        begin += length * tensor.first // tensor.of
        length = length * (tensor.stop - tensor.first) // tensor.of
        end = stretch(
            needs,
            own,
            end,
            tensor,
            begin + length * low // work.blocks,
            begin + length * high // work.blocks,
            step,
        )
    return end
