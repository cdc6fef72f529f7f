"""One float of every 4 KiB page, in sequence or at random: gpu_ext's memory micro-benchmarks."""

from __future__ import annotations

from typing import Any

import numpy as np

from tidegate.compiled.jit import jit
from tidegate.options import Option
from tidegate.workloads.program import Derived, Launches, Space, footprint, workload
from tidegate.workloads.thread_blocks import across, blocks, launch_of, step, use_sector

_FAULT = 4096  # bytes: the stride
_THREADS = 256
_FLOAT = 4


@jit
def _each_page(log: Any, array: int, first: int, last: int, write: bool) -> None:
    """Use a float of each 4 KiB page: a touch each, because each page faults by itself."""
    for page in range(first, last):
        use_sector(log, array, page * _FAULT, write)
        step(log)


@workload("page-stream")
class PageStream(Derived):
    """seq_stream: one float of each 4 KiB page is read, and one written, by a grid-stride loop.

        for (page = blockIdx.x * 256 + threadIdx.x; page * 1024 < n; page += gridDim.x * 256)
            output[page * 1024] = input[page * 1024] * 1.5 + 2

    Every pass is a launch. Access sites: 0 = input, 1 = output.
    """

    bytes = footprint("1GiB", "size of both arrays together")
    grid = Option(1024, "thread blocks, each of 256 threads", least=1)
    passes = Option(2, "how often it is done", least=1)

    def sizes(self) -> dict[str, int]:
        return dict.fromkeys(("input", "output"), max(_FLOAT, self.bytes // 2))

    def launches(self, space: Space) -> Launches:
        pages = -(-space["input"].bytes // _FAULT)
        grid = min(self.grid, -(-pages // _THREADS))
        for _ in range(self.passes):
            yield launch_of(space, "seq_stream", _in_sequence, grid, (pages, grid))


@jit
def _in_sequence(log: Any, count: int, shape: Any) -> None:
    pages, grid = shape
    for block in blocks(log, count):
        for turn in range(across(pages, grid * _THREADS)):
            first = (turn * grid + block) * _THREADS
            last = min(pages, first + _THREADS)
            _each_page(log, 0, first, last, False)
            _each_page(log, 1, first, last, True)


@workload("page-gather")
class PageGather(Derived):
    """rand_stream: as page-stream, but each read is of a random float of ``input``.

        output[page * 1024] = input[indices[page * 1024] % n] * 1.5 + 2

    A fifth of the bytes are indices by the program's options, but it gives every element one, so
    the three arrays are of one size, 2/5 of ``bytes`` each. Every pass uses the same indices.
    Access sites: 0 = indices, 1 = input, 2 = output.
    """

    bytes = footprint("1GiB", "what the program's size factor asks for; it takes 6/5 of that")
    grid = Option(1024, "thread blocks, each of 256 threads", least=1)
    passes = Option(2, "how often it is done", least=1)
    seed = Option(1, "of the indices", least=0)

    def sizes(self) -> dict[str, int]:
        return dict.fromkeys(("indices", "input", "output"), max(_FLOAT, self.bytes * 2 // 5))

    def launches(self, space: Space) -> Launches:
        size = space["input"].bytes
        pages = -(-size // _FAULT)
        grid = min(self.grid, -(-pages // _THREADS))
        chosen = np.random.default_rng(self.seed).integers(0, size // _FLOAT, pages) * _FLOAT
        for _ in range(self.passes):
            yield launch_of(space, "rand_stream", _at_random, grid, (pages, grid, chosen))


@jit
def _at_random(log: Any, count: int, shape: Any) -> None:
    pages, grid, chosen = shape
    for block in blocks(log, count):
        for turn in range(across(pages, grid * _THREADS)):
            first = (turn * grid + block) * _THREADS
            last = min(pages, first + _THREADS)
            _each_page(log, 0, first, last, False)
            for page in range(first, last):
                use_sector(log, 1, chosen[page], False)
                step(log)
            _each_page(log, 2, first, last, True)
