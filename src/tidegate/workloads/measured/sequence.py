"""Each thread walks its own part of two arrays, page by page: seq of gpu_ext's micro-benchmarks."""

from __future__ import annotations

from typing import Any

from tidegate.compiled.jit import jit
from tidegate.options import Option
from tidegate.workloads.program import Derived, Launches, Space, footprint, workload
from tidegate.workloads.thread_blocks import FLOAT, across, blocks, launch_of, step, use_sector

STRIDE = 4096  # bytes
BLOCKS, THREADS = 256, 256


@workload("sequence")
class Sequence(Derived):
    """seq_chunk_kernel: a thread reads a float of each 4 KiB of its part, and writes one.

        part = n / 65536 floats, rounded up to 4 KiB
        for (i = thread * part; i < min((thread + 1) * part, n); i += 1024)
            output[i] = input[i] * 1.5 + 2

    256 thread blocks of 256 threads are resident together, so all parts are walked at once. The
    warps of a thread block load before the first of them stores. Every pass is a launch. Access
    sites: 0 = input, 1 = output.
    """

    bytes = footprint("1GiB", "size of both arrays together")
    passes = Option(2, "how often it is done", least=1)

    def sizes(self) -> dict[str, int]:
        return dict.fromkeys(("input", "output"), max(1, self.bytes // 2 // FLOAT) * FLOAT)

    def about_touches(self, pages: int) -> int:
        return self.passes * 2 * -(-self.bytes // (2 * STRIDE))

    def launches(self, space: Space) -> Launches:
        size = space["input"].bytes
        part = across(across(size, BLOCKS * THREADS), STRIDE) * STRIDE
        for _ in range(self.passes):
            yield launch_of(space, "seq", _walk, BLOCKS, (size, part))


@jit
def _walk(log: Any, count: int, shape: Any) -> None:
    size, part = shape
    for block in blocks(log, count):
        for offset in range(0, part, STRIDE):
            for array in range(2):
                for thread in range(block * THREADS, (block + 1) * THREADS):
                    place = thread * part + offset
                    if place < size:
                        use_sector(log, array, place, array == 1)
                step(log)
