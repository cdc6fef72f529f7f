"""Least expected use as a system can have it: sampled, in a bounded table, updated in batches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from tidegate.options import Option
from tidegate.policies.eviction.leu.rimm import RIMM
from tidegate.policies.eviction.leu.twin import LEUTwin
from tidegate.policies.interface.policy import EvictionPolicy
from tidegate.policies.interface.visibility import Everything
from tidegate.policies.registries import eviction


class Moment(NamedTuple):
    """A touch of a region: its time and its access site (the trace's ``reference``)."""

    when: int
    reference: int


class _Known(NamedTuple):
    """A region's last touch and number of touches when the sampler looked at it."""

    last: Moment
    touches: int


@eviction("leu")
class LEU(EvictionPolicy):
    """Evict the region with the fewest expected uses per time it would have to stay (Chen et al.,
    MEMSYS'19).

    The paper's RIMM (``rimm.py``). Its sampler looks at a region when it faults and when it is
    about to be chosen: the last touches of its pages are times at which it was used, and the
    intervals between them are counted for the access sites that made them (``reuses``). The access
    site of a region's last touch determines its priority. A region that was touched since the last
    look is not evicted: its priority is updated, and the next is chosen.

    So the victim has the lowest priority of all resident regions by the sampler's knowledge, which
    is up to date for the victim itself. It is found among access sites × cells, however many
    regions are resident.

    A reading: in the simulator, clock, access sites and touch counts come from Everything(), and
    nothing is called per touch.
    """

    sees = Everything()
    in_driver = False
    sample = Option(1.0, "share of the regions whose reuses are counted", least=0, most=1)
    table = Option(
        256, "access sites with a distribution; the coldest is replaced", least=1, most=4096
    )
    batch = Option(16, "reuses that are counted at a time", least=1, most=1 << 20)
    forget = Option(
        0,
        "touches of an access site after which its counts are halved; 0: it never forgets",
        least=0,
        most=1 << 40,
    )
    twin = LEUTwin()

    def start(self) -> None:
        self._rimm = RIMM(self.table, self.batch, self.forget)
        self._known: dict[int, _Known] = {}
        self._arriving: dict[int, tuple[int, _Known]] = {}  # time of the fault, known before it

    def on_fault(self, region: int) -> None:
        now = self.memory.now
        if region in self._known:
            self._touched_since(region)
            self._rimm.leave(region)
            del self._known[region]
        # regions served in this turn are the last ones
        self._arriving[region] = self._arriving.pop(region, (now, self._look(region)))

    def on_eviction(self, region: int) -> None:
        if self._arriving.pop(region, None) is None:
            self._rimm.leave(region)
            del self._known[region]

    def victim(self) -> int:
        self._settle_arrivals()
        while (region := self._rimm.lowest(self.memory.now)) is not None:
            if not self._touched_since(region):
                return region
        return next(iter(self._arriving))  # all regions were served in this turn

    def finished(self) -> None:
        assert self._known.keys() | self._arriving.keys() == self.resident
        assert len(self._rimm) == len(self._known)
        assert len(self._rimm.table.entries) <= self.table

    def report(self) -> dict[str, Any]:
        found: dict[str, Any] = vars(self).get("counted") or {
            "references": len(self._rimm.table.entries),
            "references replaced": self._rimm.table.replaced,
        }
        return found

    # The sampler

    def _look(self, region: int) -> _Known:
        memory = self.memory
        last = Moment(memory.last_touch(region), memory.last_toucher(region))
        return _Known(last, memory.touch_count(region))

    def _settle_arrivals(self) -> None:
        """Enter regions that faulted in earlier turns. They have been touched by now: their absence
        was one interval, and more may have followed.
        """
        while self._arriving and not self.memory.is_served(region := next(iter(self._arriving))):
            when, before = self._arriving.pop(region)
            known = self._look(region)
            touches = known.touches - before.touches
            if touches:
                self._arrived(region, when, before, touches)
            else:  # prefetched, and not used yet
                known = _Known(Moment(when, known.last.reference), known.touches)
            self._know(region, known)

    def _arrived(self, region: int, when: int, before: _Known, touches: int) -> None:
        moments = self._moments(region, before.last.when)
        if before.touches:
            self._saw(region, [(before.last.reference, 1, when - before.last.when)])
        else:
            self._saw(region, [(moments[0].reference, 0, 0)])
        if touches > 1:
            first = moments.pop(0) if len(moments) > 1 else Moment(when, moments[0].reference)
            self._saw(region, reuses(first, moments, touches - 1))

    def _touched_since(self, region: int) -> bool:
        """Return whether a region was touched since the last look, and update it if so."""
        before = self._known[region]
        touches = self.memory.touch_count(region) - before.touches
        if touches == 0:
            return False
        # a region that was prefetched at ``last`` may have been touched by the very next touch
        moments = self._moments(region, before.last.when) or [
            Moment(before.last.when + 1, self.memory.last_toucher(region))
        ]
        self._saw(region, reuses(before.last, moments, touches))
        self._rimm.leave(region)
        self._know(region, self._look(region))
        return True

    def _know(self, region: int, known: _Known) -> None:
        self._known[region] = known
        self._rimm.enter(region, known.last.reference, known.last.when, self.memory.now)

    def _moments(self, region: int, after: int) -> list[Moment]:
        """Return the last touches of the region's pages after this time, in order."""
        when, memory = self.memory.page_touches(region), self.memory
        first = region * memory.geometry.pages_per_region
        later = np.flatnonzero(when > after).tolist()
        return sorted(Moment(int(when[i]), memory.last_reference(first + i)) for i in later)

    def _saw(self, region: int, found: Iterable[tuple[int, int, int]]) -> None:
        if draw(region) < self.sample * DRAWS:
            for reference, count, interval in found:
                self._rimm.saw(reference, count, interval, self.memory.now)


def reuses(
    before: Moment, moments: Sequence[Moment], touches: int
) -> Iterator[tuple[int, int, int]]:
    """Yield the reuses of ``touches`` after ``before``, of which these moments are known: access
    site, number, interval.

    Intervals between known moments are exact. Touches hidden by later ones of the same page are
    assumed to lie before those, as far apart as they are on average. With one moment alone, all are
    equally far apart.

    >>> list(reuses(Moment(0, 7), [Moment(12, 7)], touches=3))
    [(7, 3, 4)]
    >>> list(reuses(Moment(0, 7), [Moment(100, 8), Moment(102, 8)], touches=4))
    [(7, 2, 2), (7, 1, 96), (8, 1, 2)]
    """
    hidden, first = touches - len(moments), moments[0].when - before.when
    if len(moments) == 1:
        yield before.reference, touches, first // touches
        return
    apart = (moments[-1].when - moments[0].when) // (len(moments) - 1)
    if hidden:
        yield before.reference, hidden, apart
        first = max(first - hidden * apart, min(first, apart))
    yield before.reference, 1, first
    for one, next_one in pairwise(moments):
        yield one.reference, 1, next_one.when - one.when


DRAWS = 1 << 53


def draw(region: int) -> int:
    """Return a pseudo-random number below DRAWS that depends on the region alone (Fibonacci
    hashing).
    """
    return region * 0x9E3779B97F4A7C15 % 2**64 >> 11
