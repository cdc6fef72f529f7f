"""Modelled launches come as often as the model says."""

from __future__ import annotations

from collections import Counter
from types import SimpleNamespace
from typing import Any

import pytest

from tidegate.compiler.host_flow import HostFlow, HostLoop
from tidegate.experiments.planning import brief
from tidegate.papers.hybrid.applications import model_named
from tidegate.workloads.modelled import Modelled, order_of


def nest(*turns: float) -> Any:
    """Return a model of loops, one in the other: each starts with a launch of its own."""
    # states: the launch of each loop, then its branch, and the two ways on from there
    loops, steps = [], []
    n = len(turns)
    for k, often in enumerate(turns):
        branch, stay, out = (n + 3 * k + j for j in range(3))
        loops.append(HostLoop(branch, stay, out, often, depth=k))
        inner = k + 1 < n
        steps.append((k, k + 1 if inner else branch, 1.0))
        steps.append((stay, k, 1.0))
        if k > 0:
            steps.append((out, n + 3 * (k - 1), 1.0))
    flow = HostFlow(4 * n, tuple(steps), tuple(loops), tuple(range(n)))
    launches = [SimpleNamespace(frequency=f) for f in flow.frequencies(flow.turns({}))]
    return SimpleNamespace(source="p.c", notes=(), flow=flow, launches=launches)


@pytest.mark.parametrize("rounds", [1, 2, 3, 10, 50, 199])
def test_a_loop_goes_round_as_often_as_it_says(rounds: int) -> None:
    assert order_of(nest(rounds), {}) == ([0] * rounds, [], False)


@pytest.mark.parametrize(("outer", "inner"), [(1, 4), (5, 3), (7, 2), (20, 5)])
def test_loops_within_loops(outer: int, inner: int) -> None:
    """One launch before each inner loop, and one in it."""
    assert order_of(nest(outer, inner), {}) == ([0, *[1] * inner] * outer, [], False)


def test_outer_loops_are_shortened_first() -> None:
    """Three turns of the outer loop show what is repeated; the inner one keeps its period."""
    order, _, cut = order_of(nest(1000, 40), {}, most=200)
    assert cut
    assert order == [0, *[1] * 40] * 4
    order, _, cut = order_of(nest(1000, 1000, 7), {}, most=200)
    assert cut
    assert order[:9] == [0, 1, *[2] * 7]
    assert len(order) <= 200


def test_launches_on_a_way_not_taken_have_a_way_of_their_own() -> None:
    """Either 1 or 2 follows 0, and 1 is likelier; a run has one of them only."""
    steps = ((0, 1, 0.75), (0, 2, 0.25), (1, 3, 1.0), (2, 3, 1.0))
    flow = HostFlow(4, steps, (), (0, 1, 2, 3))
    launches = [SimpleNamespace(frequency=f) for f in flow.frequencies([])]
    model: Any = SimpleNamespace(source="p.c", notes=(), flow=flow, launches=launches)
    assert order_of(model, {}) == ([0, 1, 3], [[0, 2]], False)


def test_cfd() -> None:
    model = model_named("cfd")
    order, _, cut = order_of(model, {})
    assert not cut
    found = Counter(order)
    assert all(abs(found[i] - launch.frequency) <= 1 for i, launch in enumerate(model.launches))


def test_one_that_goes_on_is_cut() -> None:
    order, _, cut = order_of(nest(1000), {}, most=200)
    assert (len(order), cut) == (200, True)


def test_predictions_of_large_programs_are_brief() -> None:
    """Loops turn twice if there is time for no more, and every place is still in the run."""
    model = model_named("cfd")
    small, large = (Modelled(model, {"side": side}) for side in (100, 20_000))
    assert brief(small, 2**16) is small
    shorter = brief(large, 2**16)
    assert len(shorter.order) == 1 + 2 * (2 + 2 * 2)
    assert set(shorter.order) == set(large.order)
