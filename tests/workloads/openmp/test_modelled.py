"""Modelled launches come as often as the model says."""

from __future__ import annotations

from collections import Counter
from types import SimpleNamespace
from typing import Any

import pytest

from tidegate.workloads.openmp.modelled import order_of
from tidegate.workloads.openmp.offloaded import model_named


def program(frequencies: list[float], ways: list[list[float]]) -> Any:
    """Return a model: how often each launch comes, and the chance that one follows another."""
    return SimpleNamespace(
        source="p.c",
        notes=(),
        next_launches=ways,
        launches=[SimpleNamespace(frequency=f) for f in frequencies],
    )


@pytest.mark.parametrize("rounds", [1, 2, 3, 10, 50, 199])
def test_a_loop_goes_round_as_often_as_it_says(rounds: int) -> None:
    assert order_of(program([rounds], [[1 - 1 / rounds]])) == ([0] * rounds, False)


@pytest.mark.parametrize(("outer", "inner"), [(1, 4), (5, 3), (7, 2), (20, 5)])
def test_loops_within_loops(outer: int, inner: int) -> None:
    """One launch before each inner loop, and one in it."""
    leave = 1 / inner
    ways = [[0.0, 1.0], [leave * (1 - 1 / outer), 1 - leave]]
    order, cut = order_of(program([outer, outer * inner], ways))
    assert not cut
    assert order[0] == 0
    assert order == [0, *[1] * inner] * outer


def test_cfd() -> None:
    model = model_named("cfd")
    order, cut = order_of(model)
    assert not cut
    found = Counter(order)
    assert all(abs(found[i] - launch.frequency) <= 1 for i, launch in enumerate(model.launches))


def test_one_that_goes_on_is_cut() -> None:
    order, cut = order_of(program([1000], [[0.999]]), most=200)
    assert (len(order), cut) == (200, True)
