"""Pages drawn at random, uniform or zipf, the same ones every time a trace is streamed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tidegate.compiled.jit import jit
from tidegate.options import Option
from tidegate.trace.build import SEGMENT_TOUCHES, blocks_of
from tidegate.trace.geometry import Geometry
from tidegate.trace.trace import Launch, Object, Segment
from tidegate.workloads.program import Launches, Space, Workload, bytes_within, footprint, workload

BLOCK = 16  # touches per block of a random workload: blocks are short; the order is random anyway

Draw = Callable[[np.random.Generator, int], NDArray[Any]]


def generator(seed: int, *part: int) -> np.random.Generator:
    """Return the random numbers of one part of a workload, which can be drawn again by itself."""
    return np.random.default_rng((seed, *part))


def random_touches(
    owner: Object, geometry: Geometry, touches: int, seed: int, draw: Draw
) -> Iterator[Segment]:
    """Yield ``touches`` reads of whole pages of ``owner``, drawn by ``draw``."""
    for part, first in enumerate(range(0, touches, SEGMENT_TOUCHES)):
        index = draw(generator(seed, 1 + part), min(SEGMENT_TOUCHES, touches - first))
        yield blocks_of(BLOCK, owner.first_page + index, bytes=bytes_within(owner, index, geometry))


class Zipf:
    """Pages drawn by Zipf's law: the page of rank r is drawn in proportion to 1 / r^skew.

    Ranks are shuffled over the pages, so that hot pages are not neighbours. A draw is two look-ups
    in an alias table (Walker, Electronics Letters 10(8), 1974), whatever the number of pages.
    """

    def __init__(self, pages: int, skew: float, seed: int):
        weights = np.arange(1, pages + 1, dtype=np.float64) ** -skew
        self.shares = generator(seed, 0).permutation(weights / weights.sum())
        self._keep, self._other = _alias_table(self.shares * pages)

    def draw(self, random: np.random.Generator, touches: int) -> NDArray[Any]:
        """Return ``touches`` page numbers, counted from 0."""
        return _draw(random.random(touches), self._keep, self._other)


@jit
def _alias_table(weights: Any) -> Any:
    """Return Walker's table for ``weights`` of mean 1, by Vose's method.

    Entry i stands for page i with probability ``keep[i]`` and otherwise for page ``other[i]``
    (Vose, IEEE Trans. Software Eng. 17(9), 1991).
    """
    n = len(weights)
    keep, other = weights.copy(), np.arange(n).astype(np.int32)
    light, heavy = np.empty(n, np.int64), np.empty(n, np.int64)
    lights = heavies = 0
    for i in range(n):
        if keep[i] < 1.0:
            light[lights] = i
            lights += 1
        else:
            heavy[heavies] = i
            heavies += 1
    while lights and heavies:
        lights -= 1
        small, large = light[lights], heavy[heavies - 1]
        other[small] = large
        keep[large] -= 1.0 - keep[small]
        if keep[large] < 1.0:
            heavies -= 1
            light[lights] = large
            lights += 1
    # What is left differs from 1 by rounding only.
    for i in range(lights):
        keep[light[i]] = 1.0
    return keep, other


@jit
def _draw(random: Any, keep: Any, other: Any) -> Any:
    pages = np.empty(len(random), np.int32)
    for i in range(len(random)):
        at = random[i] * len(keep)
        entry = min(int(at), len(keep) - 1)
        pages[i] = entry if at - entry < keep[entry] else other[entry]
    return pages


@workload("uniform")
class Uniform(Workload):
    """Reads of whole pages of one array, each drawn with the same probability."""

    bytes = footprint("1GiB", "size of the array")
    touches = Option(1_000_000, "how many pages are drawn", least=1)
    seed = Option(1, "seed of the random numbers", least=0)

    def about_touches(self, pages: int) -> int:
        return self.touches

    def sizes(self) -> dict[str, int]:
        return {"array": self.bytes}

    def launches(self, space: Space) -> Launches:
        array = space["array"]

        def draw(random: np.random.Generator, touches: int) -> NDArray[Any]:
            return random.integers(array.pages, size=touches, dtype=np.int32)

        yield Launch("draws", random_touches(array, space.geometry, self.touches, self.seed, draw))


@workload("zipf")
class ZipfReads(Workload):
    """Reads of whole pages of one array, drawn by Zipf's law; hot pages lie scattered."""

    bytes = footprint("1GiB", "size of the array")
    touches = Option(1_000_000, "how many pages are drawn", least=1)
    skew = Option(0.9, "exponent of Zipf's law: 0 is uniform, more is hotter", least=0)
    seed = Option(1, "seed of the random numbers", least=0)

    def about_touches(self, pages: int) -> int:
        return self.touches

    def sizes(self) -> dict[str, int]:
        return {"array": self.bytes}

    def launches(self, space: Space) -> Launches:
        yield Launch("draws", self._touches(space))

    def _touches(self, space: Space) -> Iterator[Segment]:
        array = space["array"]
        law = Zipf(array.pages, self.skew, self.seed)
        yield from random_touches(array, space.geometry, self.touches, self.seed, law.draw)
