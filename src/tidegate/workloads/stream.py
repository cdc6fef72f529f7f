"""stream: an input read once and an output written once."""

from __future__ import annotations

from tidegate import units
from tidegate.options import Option
from tidegate.trace.trace import Launch
from tidegate.workloads.elementwise import merged_blocks, one_pass
from tidegate.workloads.program import Derived, Launches, Space, footprint, workload

_THREAD_BLOCK = 256 * 4  # bytes: 256 threads of one float each, as in the CUDA samples' vectorAdd


@workload("stream")
class Stream(Derived):
    """A copy of a vector of floats, without reuse.

        i = blockDim.x * blockIdx.x + threadIdx.x
        b[i] = a[i]

    With another share of output than a half, i runs over the longer vector, of n floats, and the
    kernel is ``b[i * len(b) / n] = a[i * len(a) / n]``. Access sites: 0 = a, 1 = b; with one vector
    only, 0.
    """

    bytes = footprint("1GiB", "size of input and output together")
    writes = Option(
        0.5, "share that is output; 1/2 is a copy", parse=units.fraction, least=0, most=1
    )

    def sizes(self) -> dict[str, int]:
        floats = self.bytes // 4
        sizes = {"a": 4 * int(floats * (1 - self.writes)), "b": 4 * int(floats * self.writes)}
        return {name: size for name, size in sizes.items() if size}

    def launches(self, space: Space) -> Launches:
        block, width = merged_blocks(space.geometry, _THREAD_BLOCK)
        yield Launch("copy", one_pass(space, list(space), block, writes=["b"]), width)
