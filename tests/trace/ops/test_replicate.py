"""Replicated steps equal recorded ones."""

from __future__ import annotations

from dataclasses import replace

import polars as pl
import pytest

from op_lists import KIB
from tidegate.errors import TidegateError
from tidegate.trace.ops import Ops, OpsBuilder
from tidegate.trace.ops.replicate import replicate
from tidegate.trace.trace import Provenance


def training(steps: int, sizes: list[int] | None = None, leak: bool = False) -> Ops:
    """A weight, activations that die in their step, and gradients that die in the next one."""
    build = OpsBuilder()
    weight = build.tensor("w", "weight", 8 * KIB, host=True)
    state = gradient = None
    for step in range(steps):
        x = build.tensor("x", "activation", (sizes or [4 * KIB] * steps)[step])
        build.launch("forward", "", "forward", step)
        build.use(weight, 0, 8 * KIB)
        build.use(x, 0, 4 * KIB, write=True)
        if gradient is not None:
            build.die(gradient)
        gradient = build.tensor("w.grad", "gradient", 8 * KIB)
        build.launch("backward", "", "backward", step)
        build.use(x, 0, 4 * KIB)
        build.use(gradient, 0, 8 * KIB, write=True)
        build.die(x)
        if state is None:  # the first step does more than the others
            state = build.tensor("w.momentum", "optimiser state", 8 * KIB)
        if leak:
            build.tensor("loss", "activation", 4)
        build.launch("update", "", "optimiser", step)
        build.use(gradient, 0, 8 * KIB)
        build.use(state, 0, 8 * KIB, write=True)
        build.use(weight, 0, 8 * KIB, write=True)
    return build.finish("training", Provenance.ASSUMED)


def as_seen(ops: Ops) -> list[tuple]:
    """Launches with the names and kinds of their operands, and live bytes before each."""
    live, at = [], 0
    bytes_live = 0
    events = ops.events.rows()
    for n in range(len(ops.launches)):
        while at < len(events) and events[at][0] <= n:
            size = ops.tensors["bytes"][events[at][1]]
            bytes_live += size if events[at][2] else -size
            at += 1
        live.append(bytes_live)
    operands = [(row[0], ops.tensors["name"][row[1]], *row[2:]) for row in ops.operands.iter_rows()]
    return [ops.launches.rows(), operands, live]


@pytest.mark.parametrize("steps", [4, 5, 9])
def test_replicated_steps_are_what_would_have_been_recorded(steps):
    assert as_seen(replicate(training(3), steps)) == as_seen(training(steps))


def test_no_tensor_is_added():
    ops = training(3)
    many = replicate(ops, 100)
    assert many.tensors.equals(ops.tensors)
    assert many.peak == training(4).peak
    assert len(many.launches) == 300
    assert many.notes[-1] == "the last of 3 recorded steps is repeated 97 times"


def test_a_beginning_of_another_step_is_left_out():
    whole = training(4)
    cut = replace(
        whole,
        launches=whole.launches.head(10),  # three steps and one launch
        operands=whole.operands.filter(pl.col("launch") < 10),
        events=whole.events.filter(pl.col("launch") <= 10),
    )
    assert as_seen(replicate(cut, 6)) == as_seen(training(6))


def test_what_each_step_leaves_behind_is_said():
    many = replicate(training(3, leak=True), 6)
    assert "each step leaves" in many.notes[-1]
    assert many.peak <= training(4, leak=True).peak


def test_steps_that_differ_are_refused():
    with pytest.raises(TidegateError, match="must do the same"):
        replicate(training(3, [4 * KIB, 4 * KIB, 8 * KIB]), 9)
    with pytest.raises(TidegateError, match="must do the same"):
        replicate(training(1), 9)
    with pytest.raises(TidegateError, match="more than the 3 steps"):
        replicate(training(3), 3)
