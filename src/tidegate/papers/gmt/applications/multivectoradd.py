"""MultiVectorAdd: vectors added up one after another, each into the same output."""

from __future__ import annotations

from tidegate.options import Option
from tidegate.papers.gmt.applications.page_visits import whole_objects
from tidegate.workloads.program import Derived, Launches, Space, workload
from tidegate.workloads.suites import published_footprint

_THREAD_BLOCK = 128 * 8  # bytes: a thread adds 8, and BaM's scripts start 128 threads


@workload("gmt-MultiVectorAdd")
class MultiVectorAdd(Derived):
    """A sum of vectors, one launch each: ``out[i] += in_k[i]``.

    Operands: the inputs, each used once, and the output, read and written by every launch. Grid
    order: i. Access sites: the vectors as they are allocated. Table 2: reuse 40.0 %, I/O 267 GB.
    Five inputs make exactly that: 10 visits for 6 vectors, and 267 GB / 10 * 6 = 160 GB, twice the
    tiers' 16 + 64. But the output then returns after 53 GB, within both tiers, and 3.3 says that
    TierOrder does not find it there. With two or three inputs it returns after 107 or 80 GB.
    """

    bytes = published_footprint("gmt-MultiVectorAdd", "size of all vectors")
    inputs = Option(5, "vectors that are added up (a choice: 5, from Table 2's 40.0 %)", least=1)

    def sizes(self) -> dict[str, int]:
        names = [f"in_{k}" for k in range(self.inputs)]
        return dict.fromkeys([*names, "out"], self.bytes // (8 * (self.inputs + 1)) * 8)

    def launches(self, space: Space) -> Launches:
        for k in range(self.inputs):
            yield whole_objects(space, "add", [f"in_{k}"], ["out"], _THREAD_BLOCK)
