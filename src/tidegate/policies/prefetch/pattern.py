"""Pattern-aware prefetch: the prefetcher of CPPE."""

from __future__ import annotations

import numpy as np

from tidegate.options import Option
from tidegate.policies.interface.policy import PrefetchPolicy
from tidegate.policies.interface.visibility import TouchBits
from tidegate.policies.registries import prefetch
from tidegate.policies.structures.patterns import Patterns, sparse_from


@prefetch("pattern")
class PatternAware(PrefetchPolicy):
    """Fetch the pages of a chunk that were touched before its last eviction; all pages if they are
    not known (CPPE, IV-C).

        pattern  ■ □ ■ □ ■ □ ■ □    fault on ■: the ■ come    fault on □: the whole chunk comes

    Patterns are those of chunks that MHPE evicted (``patterns.py``). A fault that does not match
    deletes its pattern: always with scheme 1, with scheme 2 only if it is the first to ask (Figure
    6). With an eviction policy that records no patterns, this one records those of chunks with
    ``sparse`` or more untouched pages itself.
    """

    sees = TouchBits()
    scheme = Option(
        2,
        "when a pattern is deleted: 1 at any mismatch, 2 at a mismatch of the first fault",
        least=1,
        most=2,
    )
    sparse = Option(
        0,
        "untouched pages from which a pattern is recorded, where the eviction policy records "
        "none; 0: half a chunk's",
        least=0,
    )

    def start(self) -> None:
        self._patterns = Patterns.of(self.memory)
        self._pages = self.memory.geometry.pages_per_region
        self._asked = self._matched = 0
        self._sparse = sparse_from(self.sparse, self.memory)

    def on_fault(self, region: int) -> None:
        base = region * self._pages
        pattern = self._patterns.get(region)
        if pattern is None:
            self.memory.prefetch(base, self._pages)
            return
        self._asked += 1
        first, pattern.searched = not pattern.searched, True
        if pattern.touched.issuperset(self.memory.faulted(region).tolist()):
            self._matched += 1
            for page in pattern.touched:
                self.memory.prefetch(base + page)
        else:
            self.memory.prefetch(base, self._pages)
            if first or self.scheme == 1:
                del self._patterns[region]

    def on_eviction(self, region: int) -> None:
        if self._patterns.kept:
            return
        touched = self.memory.touched(region)
        if int((self.memory.near(region) & ~touched).sum()) >= self._sparse:
            self._patterns.record(region, frozenset(np.flatnonzero(touched).tolist()))

    def report(self) -> dict[str, object]:
        return {"patterns asked for": self._asked, "patterns matched": self._matched}
