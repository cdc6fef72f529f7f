"""Distances by elimination, against the two systems of equations solved at once."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate.compiler.analysis.chain import Distances
from tidegate.compiler.model import LaunchSite

LAUNCHES, EVENTS = 5, 2
STATES = LAUNCHES + EVENTS
weight = st.sampled_from([0.0, 0.0, 0.0, 1.0, 3.0])
row = st.lists(weight, min_size=STATES + 1, max_size=STATES + 1)
rows = st.lists(row, min_size=STATES, max_size=STATES)
shares = st.lists(st.sampled_from([0.0, 0.5, 1.0]), min_size=LAUNCHES, max_size=LAUNCHES)


def solved(following: np.ndarray, uses: list[float], ends: list[int]) -> list[float]:
    onward = following.copy()
    onward[:, ends] = 0.0
    used, each = np.zeros(STATES), np.zeros(STATES)
    used[:LAUNCHES], each[:LAUNCHES] = uses, 1.0
    equations = np.eye(STATES) - onward * (1 - used)
    reach = np.linalg.solve(equations, onward @ used)
    count = np.linalg.solve(equations, onward @ (each * (used + (1 - used) * reach)))
    found = zip(count[:LAUNCHES], reach[:LAUNCHES], strict=True)
    return [g / h if h > 1e-12 else math.inf for g, h in found]


@pytest.mark.slow
@given(rows, shares, st.lists(st.integers(LAUNCHES, STATES - 1), max_size=1))
@settings(deadline=None)
def test_elimination_solves_the_equations(
    weights: list[list[float]], uses: list[float], ends: list[int]
) -> None:
    given_ = np.array(weights)
    given_[:, -1] += 0.5  # a run may end anywhere, or the equations may have no solution
    following = (given_ / given_.sum(axis=1, keepdims=True))[:, :-1]
    launches = [LaunchSite(str(n), "block", n, (), None) for n in range(LAUNCHES)]
    distances = Distances(following, launches)
    found = distances.to(lambda launch: uses[launch.index], ends)
    assert found == pytest.approx(solved(following, uses, ends), rel=1e-6)
