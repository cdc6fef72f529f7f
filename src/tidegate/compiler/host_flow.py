"""The host's control flow as far as launches are concerned: which launch follows which, and how
often loops around them turn.

It is part of a model, so that frequencies and distances can be computed again when a loop's bound
is given (``--set repeat=1000``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from tidegate.compiler.analysis.chain import MarkovChain
from tidegate.compiler.analysis.sizes import Formula

MOST_TURNS = 1e6
"""A longer loop is taken to turn so often: the difference would change no decision."""


@dataclass(frozen=True)
class HostLoop:
    """A loop around launches, by the states of its last branch: it goes on to `stay` or `out`."""

    branch: int
    stay: int
    out: int
    turns: float  # where no variable determines them: the constant, or LLVM's estimate
    count: Formula | None = None  # what the counter covers, in steps of `step`
    step: int = 1
    depth: int = 0  # loops with launches around it

    def turns_at(self, values: Mapping[str, int]) -> float:
        """Return how often it turns, at least once, for these values of the variables."""
        if self.count is None or self.count.variables() - values.keys():
            return self.turns
        return min(MOST_TURNS, max(1.0, -(-self.count.at(values) // self.step)))


@dataclass(frozen=True)
class HostFlow:
    """States and the probability of each step between them; state 0 is the program's entry."""

    states: int
    steps: tuple[tuple[int, int, float], ...]  # from, to, probability; none from a loop's branch
    loops: tuple[HostLoop, ...]
    places: tuple[int, ...]  # the state of each launch; launches of one state come in a row
    # objects that a loop around launches allocates anew, and the state of that: the one before ends
    births: tuple[tuple[str, int], ...] = ()

    def turns(self, values: Mapping[str, int]) -> list[float]:
        """Return how often each loop turns for these values of the variables."""
        return [loop.turns_at(values) for loop in self.loops]

    def frequencies(self, turns: Sequence[float]) -> list[float]:
        """Return how often each launch comes in a run."""
        visits = self._chain(turns).visits()
        return [visits[state] for state in self.places]

    def next_launches(self, turns: Sequence[float]) -> tuple[np.ndarray, np.ndarray]:
        """Return (first, next): the probability of each launch to be the first, and [i, j], that
        launch j comes right after launch i. What lacks to 1 is the program's end.
        """
        return self._onward(turns, [])

    def next_events(self, turns: Sequence[float]) -> np.ndarray:
        """Return the probabilities of `next_launches` with the allocations of `births` as well, as
        further rows and columns.
        """
        return self._onward(turns, [state for _, state in self.births])[1]

    def _onward(
        self, turns: Sequence[float], births: Sequence[int]
    ) -> tuple[np.ndarray, np.ndarray]:
        rows = dict(self._rows)
        for n, state in enumerate(births, len(self.places)):
            rows.setdefault(state, []).append(n)
        total = len(self.places) + len(births)
        stops = [0, *(state for state in rows if state != 0)]
        ahead = self._chain(turns).between(stops)
        following, first = np.zeros((total, total)), np.zeros(total)
        for state, ways in zip(stops, ahead, strict=True):
            row = rows.get(state)
            onward = following[row[-1]] if row else first
            for stop, p in ways.items():
                if stops[stop] in rows:
                    onward[rows[stops[stop]][0]] = p
            for here, after in pairwise(row or ()):
                following[here, after] = 1
        if 0 in rows:
            first[rows[0][0]] = 1
        return first, following

    @cached_property
    def _rows(self) -> dict[int, list[int]]:
        """The launches of each state that has some."""
        rows: dict[int, list[int]] = {}
        for launch, state in enumerate(self.places):
            rows.setdefault(state, []).append(launch)
        return rows

    def _chain(self, turns: Sequence[float]) -> MarkovChain:
        steps = {(a, b): p for a, b, p in self.steps}
        for loop, often in zip(self.loops, turns, strict=True):
            steps[loop.branch, loop.out] = 1 / often
            steps[loop.branch, loop.stay] = 1 - 1 / often
        return MarkovChain(self.states, steps)

    def variables(self) -> set[str]:
        """Return the variables that loops depend on."""
        return {v for loop in self.loops if loop.count is not None for v in loop.count.variables()}
