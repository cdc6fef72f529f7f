"""MultiVectorAdd: vectors added up one after another; the output is used again by every one of
them.
"""

from __future__ import annotations

from collections.abc import Iterator

from tidegate import units
from tidegate.options import Option
from tidegate.trace.trace import Launch, Provenance
from tidegate.workloads.gmt.visits import lockstep, whole, width
from tidegate.workloads.program import Space, Workload, workload
from tidegate.workloads.suites import published_bytes

_THREAD_BLOCK = 128 * 8  # bytes: a thread adds 8, and BaM's scripts start 128 threads


@workload("gmt-MultiVectorAdd")
class MultiVectorAdd(Workload):
    """A sum of vectors, one launch each: ``out[i] += in_k[i]``.

    Operands: the inputs, each used once, and the output, read and written by every launch. Grid
    order: i. References: the vectors as they are allocated. Table 2: reuse 40.0 %, I/O 267 GB. Five
    inputs make exactly that: 10 visits for 6 vectors, and 267 GB / 10 * 6 = 160 GB, twice the
    tiers' 16 + 64.
    """

    provenance = Provenance.DERIVED
    bytes = Option(
        published_bytes("gmt", "gmt-MultiVectorAdd"),
        "size of all vectors",
        parse=units.size,
        least=1,
    )
    inputs = Option(5, "vectors that are added up (a choice: 5, from Table 2's 40.0 %)", least=1)

    def sizes(self) -> dict[str, int]:
        names = [f"in_{k}" for k in range(self.inputs)]
        return dict.fromkeys([*names, "out"], self.bytes // (8 * (self.inputs + 1)) * 8)

    def launches(self, space: Space) -> Iterator[Launch]:
        for k in range(self.inputs):
            yield Launch(
                "add",
                lockstep(space, whole(space, [f"in_{k}"], ["out"])),
                width(space, _THREAD_BLOCK),
            )
