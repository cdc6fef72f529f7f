"""zipf: pages at random, few of them hot; the usual test of policies that count uses."""

from __future__ import annotations

from collections.abc import Iterator

from tidegate.options import Option
from tidegate.trace.trace import Launch, Segment
from tidegate.workloads.program import Launches, Space, Workload, footprint, workload
from tidegate.workloads.random_pages import Zipf, random_touches


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
