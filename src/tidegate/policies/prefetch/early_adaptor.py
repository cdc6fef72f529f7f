"""EarlyAdaptor: a stand-in of ours."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tidegate.compiled.jit import jit_policy
from tidegate.options import Option
from tidegate.policies.interface.events import ASK_THRESHOLD, EVENT_BITS
from tidegate.policies.interface.policy import PrefetchPolicy
from tidegate.policies.interface.twin import Twin, ask, column, fractions, own_words, scalars
from tidegate.policies.registries import prefetch

# of the window: its length, its number, what it holds so far
_WINDOW, _AGAIN, _NUMBER, _TOTAL, _REPEATED = range(5)
_SCALARS = 5
_SHY, _BOLD = 51, 1


@jit_policy
def _early_adaptor(own: int, event: int) -> int:
    w, seen, region = scalars(own, _SCALARS), column(own, _SCALARS, 0), event >> EVENT_BITS
    w[_REPEATED] += seen[region] == w[_NUMBER]
    seen[region] = w[_NUMBER]  # the window in which a region was seen last: none need be cleared
    w[_TOTAL] += 1
    if w[_TOTAL] == w[_WINDOW]:
        bold = w[_REPEATED] / w[_WINDOW] > fractions(own, _SCALARS)[_AGAIN]
        ask(own, ASK_THRESHOLD, _BOLD if bold else _SHY)
        w[_NUMBER] += 1
        w[_TOTAL] = w[_REPEATED] = 0
    return 0


def _prepare(policy: Any, regions: int, pages: int) -> NDArray[np.int64]:
    return own_words(regions, [policy.window, policy.again, 1, 0, 0], columns=1)


@prefetch("early-adaptor")
class EarlyAdaptor(PrefetchPolicy):
    """Steer the tree's threshold by page faults alone. A stand-in: the published algorithm is not
    public (Go et al.).

    Known of it: faults are its signal, it leaves eviction alone, and it is too bold where locality
    is poor (ObservUVM, VII-B). The plainest such rule: if, over ``window`` faulting regions, many
    fault again soon after they did, the tree was too shy, and whole regions are taken from then on.
    """

    compiled = Twin(_early_adaptor, prepare=_prepare)
    window = Option(256, "faulting regions per judgement", least=1)
    again = Option(0.25, "share of repeated regions above which it is bold", least=0, most=1)

    def start(self) -> None:
        self._seen: set[int] = set()
        self._repeated = self._total = 0
        self.memory.set_prefetch_threshold(_SHY)

    def on_fault(self, region: int) -> None:
        self._repeated += region in self._seen
        self._seen.add(region)
        self._total += 1
        if self._total == self.window:
            self.memory.set_prefetch_threshold(
                _BOLD if self._repeated / self.window > self.again else _SHY
            )
            self._seen.clear()
            self._repeated = self._total = 0
