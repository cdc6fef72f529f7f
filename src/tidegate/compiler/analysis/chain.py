"""Markov chains that are as sparse as the control flow of programs.

States are eliminated one by one: the ways through a state become ways between its neighbours. That
takes time proportional to the chain's edges as long as a state with few neighbours is next, where
solving for all states at once would take the cube of their number. Differences are avoided, so
loops of millions of turns lose no precision (Grassmann, Taksar and Heyman).
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping, Sequence

# No step is certain, or an endless loop would have no solution. The difference is far below the
# precision of any estimate here.
_LEAVES = 1e-12


class Chain:
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
    chain = Chain(states, steps)
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
        todo = set(states)
        waiting = [(self._work(state), state) for state in todo]
        heapq.heapify(waiting)
        order = []
        while waiting:
            work, state = heapq.heappop(waiting)
            if state not in todo:
                continue
            if work < (now := self._work(state)):
                heapq.heappush(waiting, (now, state))
                continue
            todo.remove(state)
            order.append(state)
            self._eliminate(state)
        return order

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
