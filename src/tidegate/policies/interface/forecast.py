"""Forecast: what each launch of a program will use, piece by piece, and how long it computes.

A piece is a run of regions of one object that the same launches use: a tensor, the rows of one
expert, an array. Plans by tensor are made from it before the program begins (placement/plans/), as
an offload library makes them from a rehearsed step.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Forecast:
    """The uses of all launches, in order.

    Those of a launch are ``begin[launch]`` to ``begin[launch + 1]``; the piece that is
    touched first comes first.
    """

    first: NDArray[np.int64]  # of each piece, its first region
    regions: NDArray[np.int64]  # of each piece, how many
    object: NDArray[np.int64]  # of each piece, the number of its object
    host: NDArray[np.bool_]  # of each piece: it holds host data at the start
    begin: NDArray[np.int64]
    piece: NDArray[np.int64]  # of each use
    written: NDArray[np.bool_]  # of each use
    used: NDArray[np.int64]  # of each use: bytes of the piece that the launch uses
    next: NDArray[np.int64]  # of each use: the launch that uses these data next; ``never`` if none
    dies: NDArray[np.bool_]  # of each use: the piece's data die before they are used again
    dead: NDArray[np.int64]  # before each launch: regions whose data have died so far
    duration: NDArray[np.float64]  # of each launch when all it uses is near, ns
    region_bytes: int
    inward: float  # bytes per ns
    outward: float

    @property
    def launches(self) -> int:
        return len(self.duration)

    @property
    def never(self) -> int:
        """A number above every launch's."""
        return self.launches

    @cached_property
    def launch(self) -> NDArray[np.int64]:
        """The launch of each use."""
        return np.repeat(np.arange(self.launches), np.diff(self.begin))

    @cached_property
    def start(self) -> NDArray[np.float64]:
        """When each launch would begin if it never waited, and when the last one would end; ns."""
        return np.append(0.0, np.cumsum(self.duration))

    @cached_property
    def bytes(self) -> NDArray[np.int64]:
        """The bytes of each piece, in whole regions."""
        return self.regions * self.region_bytes

    @cached_property
    def ever_written(self) -> NDArray[np.bool_]:
        """For each piece, whether a launch writes it."""
        found = np.zeros(len(self.first), np.bool_)
        found[self.piece[self.written]] = True
        return found

    def live(self) -> NDArray[np.int64]:
        """Return the regions that hold data which are used at or after each launch."""
        change = np.zeros(self.launches + 1, np.int64)
        size = self.regions[self.piece]
        arrives = np.ones(len(self.piece), np.bool_)
        order = np.lexsort((self.launch, self.piece))
        again = (self.piece[order][1:] == self.piece[order][:-1]) & (
            self.next[order][:-1] < self.never
        )
        arrives[order[1:][again]] = False
        np.add.at(change, self.launch[arrives], size[arrives])
        last = self.next == self.never
        np.add.at(change, self.launch[last] + 1, -size[last])
        return np.cumsum(change)[:-1]


class Costs(NamedTuple):
    """What a mechanism's operations take, in ns, as far as a runtime knows its machine.

    What else goes on is left out: a driver or a link may be shared.

    Policies compare them with each other; none of them depends on the program.
    """

    fault: float  # handling a batch of faults, whatever it brings
    observation: float  # sampling a page of a region, noticing its use and bringing it back
    bring: float  # a whole region, by a fault: its way in, and its unmapping from the CPU
    fetch: float  # a whole region, prefetched: the same, but pages are unmapped in batches
    send: float  # a whole region, written back
    remote: float  # one page, used over the link by many: what the link takes, without latency
