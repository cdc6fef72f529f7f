"""Least expected use, as a system could have it: sampled, in a bounded table, brought up to date in
batches.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from tidegate.options import Option
from tidegate.policies.eviction.leu.rimm import RIMM
from tidegate.policies.eviction.leu.twin import LEU_TWIN
from tidegate.policies.interface.policy import EvictionPolicy
from tidegate.policies.interface.visibility import Everything
from tidegate.policies.registries import eviction


class Moment(NamedTuple):
    """A touch of a region: when, and by which reference."""

    when: int
    reference: int


class _Known(NamedTuple):
    """What was known of a region when it was looked at: its last touch, and how many there were."""

    last: Moment
    touches: int


@eviction("leu")
class LEU(EvictionPolicy):
    """Evict the region that promises the fewest uses for the time it would have to stay (Chen et
    al., MEMSYS'19).

    The paper's RIMM (``rimm.py``). Its sampler looks at a region when it faults and when it is
    about to be chosen: the last touches of its pages are moments at which it was used, and the
    intervals between them are counted for the references that made them (``reuses``). The reference
    that touched a region last speaks for it. A region that turns out to have been touched since the
    last look is not evicted but put where it belongs, and the next is chosen.

    So the victim has the lowest priority of all resident regions, by what is known of each, and
    what is known of it is what is true. A victim is found among references × cells, however many
    regions are resident.

    A reading: in the simulator clock, references and touch counts come from Everything(), and
    nothing is called per touch.
    """

    sees = Everything()
    in_driver = False
    sample = Option(1.0, "share of the regions whose reuses are counted", least=0, most=1)
    table = Option(
        256,
        "references that have a distribution of their own; the coldest gives way",
        least=1,
        most=4096,
    )
    batch = Option(16, "reuses that are taken into the table at a time", least=1, most=1 << 20)
    compiled = LEU_TWIN

    def start(self) -> None:
        self._rimm = RIMM(self.table, self.batch)
        self._known: dict[int, _Known] = {}
        # when it faulted, and what was known before
        self._arriving: dict[int, tuple[int, _Known]] = {}

    def on_fault(self, region: int) -> None:
        now = self.memory.now
        if region in self._known:
            self._touched_since(region)
            self._rimm.leave(region)
            del self._known[region]
        # those served in this turn are the last ones
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
        return next(iter(self._arriving))  # whatever there is was served in this turn

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
        return _Known(
            Moment(memory.last_touch(region), memory.last_toucher(region)),
            memory.touch_count(region),
        )

    def _settle_arrivals(self) -> None:
        """Regions that faulted have been touched by now: their absence was one interval, and then
        more may have followed.
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
        """Has a region been touched since it was looked at?

        Then it was used, and what is known of it is put right.
        """
        before, touches = self._known[region], self.memory.touch_count(region)
        if touches == before.touches:
            return False
        self._saw(
            region,
            reuses(before.last, self._moments(region, before.last.when), touches - before.touches),
        )
        self._rimm.leave(region)
        self._know(region, self._look(region))
        return True

    def _know(self, region: int, known: _Known) -> None:
        self._known[region] = known
        self._rimm.enter(region, known.last.reference, known.last.when, self.memory.now)

    def _moments(self, region: int, after: int) -> list[Moment]:
        """When the region's pages were touched last, and by whom, if that was after this time."""
        when = self.memory.page_touches(region)
        first = region * self.memory.geometry.pages_per_region
        later = np.flatnonzero(when > after)
        return sorted(
            Moment(int(when[i]), self.memory.last_reference(first + int(i))) for i in later
        )

    def _saw(
        self, region: int, found: Iterator[tuple[int, int, int]] | list[tuple[int, int, int]]
    ) -> None:
        if draw(region) < self.sample * DRAWS:
            for reference, count, interval in found:
                self._rimm.saw(reference, count, interval, self.memory.now)


def reuses(
    before: Moment, moments: Sequence[Moment], touches: int
) -> Iterator[tuple[int, int, int]]:
    """The reuses that ``touches`` after ``before`` were, of which these moments are known:
    reference, how many, interval.

    The intervals between known moments are what they are. Touches that later ones of the same page
    have hidden are taken to be like those: as far apart as they are on average, and before them.
    With one moment alone, all are equally far apart.

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
    """A number below DRAWS that is always the same for a region, and as if drawn at random
    (Fibonacci hashing).
    """
    return region * 0x9E3779B97F4A7C15 % 2**64 >> 11
