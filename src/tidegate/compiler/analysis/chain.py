"""Markov chains that are as sparse as the control flow of programs, and reuse distances from them.

States are eliminated one by one: the ways through a state become ways between its neighbours. That
takes time proportional to the chain's edges as long as a state with few neighbours is next, where
solving for all states at once would take the cube of their number. Differences are avoided, so
loops of millions of turns lose no precision (Grassmann, Taksar and Heyman).

Target reuse distance: launches from one use of an object to the next (SC'19, 3.4 and 4.3). Listing
2 of the paper iterates averages over the blocks' successors and counts an exit as distance 0, so
that an object never used again seems near. Here blocks are eliminated first, which leaves the
probability that one launch follows another. From it follow the probability h of a next use, and the
expected number g of launches up to it, over the runs in which it comes. The distance is g / h, and
infinite where h is 0.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from tidegate.compiler.model import LaunchSite

# No step is certain, or an endless loop would have no solution. The difference is far below the
# precision of any estimate here.
_LEAVES = 1e-12


class MarkovChain:
    """A chain of `states` states that starts in state 0. What the steps of a state lack to 1 is the
    probability of the end.
    """

    def __init__(self, states: int, steps: Mapping[tuple[int, int], float]):
        self._out: list[dict[int, float]] = [{} for _ in range(states)]
        for (a, b), p in steps.items():
            if p > 0:
                self._out[a][b] = self._out[a].get(b, 0.0) + p
        self._end = [max(_LEAVES, 1 - sum(out.values())) for out in self._out]

    def visits(self) -> list[float]:
        """Return how often each state is visited in a run."""
        work = _Elimination(self._out, self._end)
        order = work.eliminate(range(1, len(self._out)))
        visits = [0.0] * len(self._out)
        visits[0] = 1 / work.leaves(0)
        for state in reversed(order):
            visits[state] = sum(visits[a] * p for a, p in work.ways_in[state].items())
        return visits

    def between(self, stops: Sequence[int]) -> list[dict[int, float]]:
        """Return, from each stop, the probability that each stop (by its position in `stops`) is
        the next one visited.
        """
        work = _Elimination(self._out, self._end)
        work.eliminate(sorted(set(range(len(self._out))) - set(stops)))
        position = {state: n for n, state in enumerate(stops)}
        return [
            {
                position[b]: p / (sum(work.out[stop].values()) + work.end[stop])
                for b, p in work.out[stop].items()
            }
            for stop in stops
        ]


def eliminated(
    states: int, steps: Mapping[tuple[int, int], float], kept: Iterable[int]
) -> dict[tuple[int, int], float]:
    """Return the steps of the chain that has only the kept states."""
    chain = MarkovChain(states, steps)
    work = _Elimination(chain._out, chain._end)
    left = set(kept)
    work.eliminate(sorted(set(range(states)) - left))
    return {(a, b): p for a in sorted(left) for b, p in work.out[a].items()}


class _Elimination:
    def __init__(self, out: list[dict[int, float]], end: list[float]):
        self.out = [dict(ways) for ways in out]
        self.end = list(end)
        self._into: list[set[int]] = [set() for _ in out]
        for a, ways in enumerate(out):
            for b in ways:
                self._into[b].add(a)
        # probability to step from a state to the eliminated one, times its visits for each arrival
        self.ways_in: dict[int, dict[int, float]] = {}

    def leaves(self, state: int) -> float:
        """Return the probability that a state is left for another or the end."""
        return sum(p for b, p in self.out[state].items() if b != state) + self.end[state]

    def eliminate(self, states: Iterable[int]) -> list[int]:
        """Eliminate these states and return the order it was done in: few neighbours first."""
        return _few_neighbours_first(set(states), self._work, self._eliminate)

    def _work(self, state: int) -> int:
        return len(self._into[state]) * len(self.out[state])

    def _eliminate(self, state: int) -> None:
        leaves = self.leaves(state)
        ways = {b: p / leaves for b, p in self.out[state].items() if b != state}
        end = self.end[state] / leaves
        self.ways_in[state] = {}
        for a in self._into[state] - {state}:
            p = self.out[a].pop(state)
            self.ways_in[state][a] = p / leaves
            self.end[a] += p * end
            for b, onward in ways.items():
                self.out[a][b] = self.out[a].get(b, 0.0) + p * onward
                self._into[b].add(a)
        for b in ways:
            self._into[b].discard(state)


UseProbability = Callable[["LaunchSite"], float]
"""Returns the probability that a launch is a use."""

_NEVER = 1e-12
_Way = tuple[float, float]


def use_of_object(name: str) -> UseProbability:
    """Return the probability of a use of this object.

    A pointer that may be one of several objects uses each with an equal share; two such pointers,
    twice that.
    """

    def share(launch: LaunchSite) -> float:
        return min(1.0, sum(1 / len(a.objects) for a in launch.arguments if name in a.objects))

    return share


def use_of_region(name: str) -> UseProbability:
    """Return the probability of a launch of this region: 0 or 1."""
    return lambda launch: float(launch.region == name)


class Distances:
    """Distances between the launches of one program."""

    def __init__(self, following: np.ndarray, launches: Sequence[LaunchSite]):
        self._launches = launches
        self.next: np.ndarray = following
        """[i, j]: the probability that launch j comes right after launch i. The rest to 1 is the
        program's end. After the launches may come other events, which are no launch.
        """
        self._ways = [{int(b): float(row[b]) for b in np.flatnonzero(row)} for row in self.next]

    def to(self, use: UseProbability, ends: Sequence[int] = ()) -> list[float]:
        """Return the expected number of launches from each launch to the next use. The very next
        launch is 1 away. The events `ends` end the object, so that no use comes after them.
        """
        uses = [use(launch) for launch in self._launches]
        found = _NextUse(self._ways, uses, frozenset(ends)).solved()
        return [g / h if h > _NEVER else math.inf for h, g in found[: len(uses)]]


class _NextUse:
    """The chain of launches and events, which ends with a use. A way has its probability and, times
    that, its expected number of launches.

    Programs have few ways from a launch, so eliminating states takes far less time than solving for
    all at once.
    """

    def __init__(self, ways: list[dict[int, float]], uses: list[float], ends: frozenset[int]):
        self._out: list[dict[int, _Way]] = [{} for _ in ways]
        self._into: list[set[int]] = [set() for _ in ways]
        self._to_use: list[_Way] = [(0.0, 0.0)] * len(ways)
        self._end = [max(_NEVER, 1 - sum(following.values())) for following in ways]
        for a, following in enumerate(ways):
            for b, p in following.items():
                if b in ends:
                    self._end[a] += p
                    continue
                is_launch = b < len(uses)
                used = p * uses[b] if is_launch else 0.0
                self._to_use[a] = _sum(self._to_use[a], (used, used))
                if p > used:
                    self._out[a][b] = p - used, (p - used) * is_launch
                    self._into[b].add(a)

    def solved(self) -> list[_Way]:
        """Return, from each state, the probability of a next use, and that times the expected
        number of launches up to it.
        """
        order = _few_neighbours_first(range(len(self._out)), self._work, self._eliminate)
        found = list(self._to_use)
        for state in reversed(order):
            for b, way in self._out[state].items():
                found[state] = _sum(found[state], _then(way, found[b]))
        return found

    def _work(self, state: int) -> int:
        return len(self._into[state]) * len(self._out[state])

    def _eliminate(self, state: int) -> None:
        """Lead the ways through a state past it. Its own ways are left as those out of its loop."""
        _, turns = self._out[state].pop(state, (0.0, 0.0))
        self._into[state].discard(state)
        leaves = sum(p for p, _ in self._out[state].values())
        leaves += self._to_use[state][0] + self._end[state]
        loop = 1 / leaves, turns / leaves**2  # any number of turns
        self._out[state] = {b: _then(loop, way) for b, way in self._out[state].items()}
        self._to_use[state] = _then(loop, self._to_use[state])
        self._end[state] /= leaves
        for b in self._out[state]:
            self._into[b].discard(state)
        for a in self._into[state]:
            way = self._out[a].pop(state)
            for b, onward in self._out[state].items():
                self._out[a][b] = _sum(self._out[a].get(b, (0.0, 0.0)), _then(way, onward))
                self._into[b].add(a)
            self._to_use[a] = _sum(self._to_use[a], _then(way, self._to_use[state]))
            self._end[a] += way[0] * self._end[state]


def _sum(one: _Way, other: _Way) -> _Way:
    return one[0] + other[0], one[1] + other[1]


def _then(first: _Way, second: _Way) -> _Way:
    """Return the way that is one after the other."""
    return first[0] * second[0], first[1] * second[0] + first[0] * second[1]


def _few_neighbours_first(
    states: Iterable[int], work: Callable[[int], int], eliminate: Callable[[int], None]
) -> list[int]:
    """Eliminate states, those with the least work first, and return the order.

    The work for a state may grow as others are eliminated.
    """
    waiting = [(work(state), state) for state in states]
    heapq.heapify(waiting)
    order = []
    while waiting:
        expected, state = heapq.heappop(waiting)
        if expected < (now := work(state)):
            heapq.heappush(waiting, (now, state))
        else:
            order.append(state)
            eliminate(state)
    return order
