"""Target reuse distance: launches from one use of an object to the next (SC'19, 3.4 and 4.3).

Listing 2 of the paper iterates averages over the blocks' successors and counts an exit as distance
0, so that an object never used again seems near. Here blocks are eliminated first, which leaves the
probability that one launch follows another. Two systems of equations are solved on it: for the
probability h of a next use, and for the expected number g of launches up to it, over the runs in
which it comes. The distance is g / h, and infinite where h is 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from tidegate.compiler.model import LaunchSite

UseProbability = Callable[[LaunchSite], float]
"""Returns the probability that a launch is a use."""

_NEVER = 1e-12


def use_of_object(name: str) -> UseProbability:
    """Return the probability of a use of this object.

    A pointer that may be one of several objects uses each with an equal share; two such pointers,
    twice that.
    """

    def use(launch: LaunchSite) -> float:
        return min(1.0, sum(1 / len(a.objects) for a in launch.arguments if name in a.objects))

    return use


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

    def to(self, use: UseProbability, ends: Sequence[int] = ()) -> list[float]:
        """Return the expected number of launches from each launch to the next use. The very next
        launch is 1 away. The events `ends` end the object, so that no use comes after them.
        """
        launches = len(self._launches)
        onward = self.next.copy()
        onward[:, list(ends)] = 0.0
        used, each = np.zeros(len(onward)), np.zeros(len(onward))
        used[:launches], each[:launches] = [use(launch) for launch in self._launches], 1.0
        equations = np.eye(len(used)) - onward * (1 - used)
        reach = np.linalg.solve(equations, onward @ used)
        count = np.linalg.solve(equations, onward @ (each * (used + (1 - used) * reach)))
        found = zip(count[:launches], reach[:launches], strict=True)
        return [float(g / h) if h > _NEVER else math.inf for g, h in found]
