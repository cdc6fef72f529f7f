"""Some 4 KiB pages of every 2 MiB block, in random order: bench_sparse of SpecAsync-UVM."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from tidegate.options import Option
from tidegate.trace.trace import Launch, Segment
from tidegate.workloads.program import Derived, Launches, Space, footprint, workload
from tidegate.workloads.thread_blocks import SECTOR

_FAULT = 4096  # bytes: the page that the benchmark touches once
_BLOCK = 2 << 20
_THREADS = 256
_ROWS = 2048  # thread blocks of a segment


@workload("sparse")
class Sparse(Derived):
    """K random 4 KiB pages of each 2 MiB block, read and written once in a pass.

        i = idx[blockIdx.x * 256 + threadIdx.x]         idx is not managed
        a[i] = a[i] * 1664525 + 1013904223

    The list visits the blocks in a random order, the K pages of a block together; every pass is a
    launch and uses the same list. The warps of a thread block load before the first of them stores,
    so the touches of a thread block are its 256 loads, then its 256 stores.
    """

    bytes = footprint("1GiB", "size of the array")
    pages = Option(1, "4 KiB pages touched in each 2 MiB block", least=1, most=_BLOCK // _FAULT)
    passes = Option(3, "how often the list is used", least=1)
    seed = Option(1, "of the list", least=0)

    def sizes(self) -> dict[str, int]:
        return {"a": max(1, self.bytes // _BLOCK) * _BLOCK}

    def about_touches(self, pages: int) -> int:
        return 2 * self.passes * self.pages * max(1, self.bytes // _BLOCK)

    def launches(self, space: Space) -> Launches:
        touched = space["a"].first_page + self._list() * _FAULT // space.geometry.page
        for number in range(self.passes):
            yield Launch(f"pass{number + 1}", self._segments(touched.astype(np.int32)))

    def _list(self) -> NDArray[np.int64]:
        """Return the 4 KiB pages in the order of the threads."""
        draw, per_block = np.random.default_rng(self.seed), _BLOCK // _FAULT
        blocks = draw.permutation(self.sizes()["a"] // _BLOCK)
        inside = np.argsort(draw.random((len(blocks), per_block)), axis=1)[:, : self.pages]
        return np.asarray((blocks[:, None] * per_block + inside).ravel(), np.int64)

    def _segments(self, touched: NDArray[np.int32]) -> Iterator[Segment]:
        for first in range(0, len(touched), _ROWS * _THREADS):
            part = touched[first : first + _ROWS * _THREADS]
            block = np.arange(len(part)) // _THREADS
            # stable, so that a thread block's loads keep their order, and its stores come behind
            order = np.argsort(np.concatenate([2 * block, 2 * block + 1]), kind="stable")
            write = np.repeat(np.array([0, 1], np.uint8), len(part))[order]
            starts = np.append(np.arange(0, 2 * len(part), 2 * _THREADS), 2 * len(part))
            yield Segment(
                starts,
                np.concatenate([part, part])[order],
                write,
                np.full(2 * len(part), SECTOR, np.int32),
                write.astype(np.int16),
            )
