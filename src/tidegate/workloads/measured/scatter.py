"""Each thread reads and writes at random places of two arrays: the random twin of ``sequence``."""

from __future__ import annotations

from typing import Any

from tidegate.compiled.jit import jit
from tidegate.options import Option
from tidegate.workloads.measured.sequence import BLOCKS, STRIDE, THREADS
from tidegate.workloads.program import Derived, Launches, Space, footprint, workload
from tidegate.workloads.thread_blocks import FLOAT, across, blocks, launch_of, step, use_sector


@workload("scatter")
class Scatter(Derived):
    """A thread reads a float of a random 4 KiB page, and writes one of the same page.

        for (i = 0; i < pages of the array / 65536, rounded up; i++)
            page = xorshift of its state, modulo the pages of the array
            output[page][0] = input[page][0] * 1.5 + 2

    256 thread blocks of 256 threads are resident together. A page is used once on average, some
    more often, some never. The warps of a thread block load before the first of them stores. Every
    pass is a launch and draws the same pages. Access sites: 0 = input, 1 = output.
    """

    bytes = footprint("1GiB", "size of both arrays together")
    passes = Option(2, "how often it is done", least=1)
    seed = Option(1, "of the pages", least=0)

    def sizes(self) -> dict[str, int]:
        return dict.fromkeys(("input", "output"), max(1, self.bytes // 2 // FLOAT) * FLOAT)

    def about_touches(self, pages: int) -> int:
        return self.passes * 2 * -(-self.bytes // (2 * STRIDE))

    def launches(self, space: Space) -> Launches:
        pages = across(space["input"].bytes, STRIDE)
        shape = pages, across(pages, BLOCKS * THREADS), self.seed
        for _ in range(self.passes):
            yield launch_of(space, "scatter", _scatter, BLOCKS, shape)


@jit
def _scatter(log: Any, count: int, shape: Any) -> None:
    pages, each, seed = shape
    for block in blocks(log, count):
        for i in range(each):
            for array in range(2):
                for thread in range(block * THREADS, (block + 1) * THREADS):
                    use_sector(log, array, _page(thread, i, seed) % pages * STRIDE, array == 1)
                step(log)


@jit
def _page(thread: int, i: int, seed: int) -> int:
    """Return a number that looks random: splitmix64's mixing of what it is given."""
    x = (thread + 1) * 0x9E3779B9 + i * 0x85EBCA6B + seed * 0xC2B2AE35
    for _ in range(2):
        x ^= x >> 15
        x = x * 0x2C1B3C6D & 0xFFFFFFFFFFFF
    return x ^ x >> 13
