"""stream: an input read once and an output written once."""

from __future__ import annotations

from collections.abc import Iterator

from tidegate import units
from tidegate.options import Option
from tidegate.trace.trace import Launch, Provenance
from tidegate.workloads.program import Space, Workload, workload
from tidegate.workloads.sweep import merged, sweep

_THREAD_BLOCK = 256 * 4  # bytes: 256 threads of one float each, as in the CUDA samples' vectorAdd


@workload("stream")
class Stream(Workload):
    """A copy of a vector of floats, without reuse.

        i = blockDim.x * blockIdx.x + threadIdx.x
        b[i] = a[i]

    With another share of output than a half, i runs over the longer vector, of n floats, and the
    kernel is ``b[i * len(b) / n] = a[i * len(a) / n]``: it gives back less than it takes, or more.
    References: 0 = a, 1 = b, or 0 = the only one there is.
    """

    provenance = Provenance.DERIVED
    bytes = Option(
        units.size("1GiB"), "size of input and output together", parse=units.size, least=1
    )
    writes = Option(
        0.5, "share that is output; 1/2 is a copy", parse=units.fraction, least=0, most=1
    )

    def sizes(self) -> dict[str, int]:
        floats = self.bytes // 4
        sizes = {"a": 4 * int(floats * (1 - self.writes)), "b": 4 * int(floats * self.writes)}
        return {name: size for name, size in sizes.items() if size}

    def launches(self, space: Space) -> Iterator[Launch]:
        block, width = merged(space.geometry, _THREAD_BLOCK)
        yield Launch("copy", sweep(space, list(space), block, writes=["b"]), width)
