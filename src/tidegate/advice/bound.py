"""The bound: no way to run a program on a machine is faster than this.

The larger of two: the time it computes when everything is near, and the time that the link needs
for the traffic that cannot be avoided. The program is cut into stretches of launches. Data that are
used in a stretch and were not made in it must be near or come; at most near memory's bytes of them
can have been there when it began, and none when the program began. So at least the rest comes in.
Likewise, of the data made so far that are used later, all that exceed near memory were written out.

Data are counted by the bytes that launches use, not by pages, so that the bound also holds for
remote access. Data that the host writes during the run are not counted.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from tidegate.compiled.jit import jit
from tidegate.machine.machine import Machine
from tidegate.policies.interface.forecast import Forecast

_STRETCHES = (1.1, 1.25, 1.5, 2.0, 3.0, 5.0)  # times near memory that a stretch may use


@dataclass(frozen=True)
class Bound:
    """The least time of a program, and what it follows from."""

    compute: float  # ns
    link: float  # ns
    bytes_in: int
    bytes_out: int

    @property
    def time(self) -> float:
        return max(self.compute, self.link)

    @property
    def limit(self) -> str:
        """What the bound is given by."""
        return "compute" if self.compute >= self.link else "the link"


def find_bound(forecast: Forecast, machine: Machine, near: int) -> Bound:
    """Return the bound for a program in ``near`` bytes."""
    inward = max(_least_inward(forecast, near, share) for share in _STRETCHES)
    outward = _least_outward(forecast, near)
    link = machine.link
    crossing = max(inward / link.inward, outward / link.outward, (inward + outward) / link.both)
    return Bound(float(forecast.duration.sum()), crossing, inward, outward)


def _least_inward(f: Forecast, near: int, share: float) -> int:
    """Return bytes that come in at least, by stretches that use ``share`` times near memory."""
    return int(_inward(f.begin, f.piece, f.used, f.written, f.dies, f.host.copy(), near, share))


@jit
def _inward(
    begin: Any, piece: Any, used: Any, written: Any, dies: Any, holds: Any, near: int, share: float
) -> int:
    """Return what ``_least_inward`` does; ``holds``: by piece, whether it holds data."""
    seen = np.full(holds.size, -1)  # by piece: the stretch that used it last
    counted = np.zeros(holds.size, np.int64)  # by piece: its bytes counted in this stretch
    made = np.zeros(holds.size, np.bool_)  # by piece: its data were made in this stretch
    total, needed, stretch, held = 0, 0, 0, 0  # ``held``: what may be near when a stretch begins
    for launch in range(begin.size - 1):
        for use in range(begin[launch], begin[launch + 1]):
            p = piece[use]
            if seen[p] != stretch:
                seen[p], counted[p], made[p] = stretch, 0, False
            if written[use] or not holds[p]:
                # what a launch writes it may overwrite, so it need not have been there
                made[p] = holds[p] = True
            elif not made[p] and used[use] > counted[p]:
                needed += used[use] - counted[p]
                counted[p] = used[use]
            if dies[use]:
                holds[p] = False
        if needed > share * near:
            total += max(0, needed - held)
            needed, held, stretch = 0, near, stretch + 1
    return total + max(0, needed - held)


def _least_outward(f: Forecast, near: int) -> int:
    """Return bytes that are written out at least: made, used later, and too many for near memory.

    Data count from the launch that writes them to the last one that uses them, as far as both use
    them.
    """
    change = np.zeros(f.launches + 2, np.int64)
    for size, since, until in _versions(f):
        change[since + 1] += size
        change[until + 1] -= size
    return max(0, int(np.cumsum(change).max(initial=0)) - near)


def _versions(f: Forecast) -> Iterator[tuple[int, int, int]]:
    """Yield the bytes of data that a launch writes, that launch, and the last that reads them."""
    order = np.lexsort((f.launch, f.piece))
    columns = (f.piece, f.launch, f.used, f.written, f.dies)
    piece = -1
    made = read = since = until = 0
    for p, launch, used, written, dies in zip(*(c[order].tolist() for c in columns), strict=True):
        if p != piece or written:
            if until > since:
                yield min(made, read), since, until
            piece, made, read, since, until = p, used if written else 0, 0, launch, launch
        else:
            read, until = max(read, used), launch
        if dies:
            if until > since:
                yield min(made, read), since, until
            made, since, until = 0, launch, launch
    if until > since:
        yield min(made, read), since, until
