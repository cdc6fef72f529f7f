"""Replicate: repeat the last step of a recording.

Two successive steps are steady if they do the same: the same launches with operands of the same
bytes, births and deaths in the same places. A tensor that is born in a step then corresponds to the
one that is born in the same place of the other step. The n-th repetition uses the tensors of the
last two steps in turn, so that no tensor is added.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tidegate.errors import TidegateError
from tidegate.trace.ops.ops import EVENTS, Ops


def replicate(ops: Ops, steps: int) -> Ops:
    """Return ops of ``steps`` steps: the last recorded step is repeated.

    The last launches may be the beginning of a step; they are left out. Raise TidegateError unless
    the last two whole steps do the same.
    """
    recorded = int(ops.launches["step"].max()) + 1  # type: ignore[arg-type]
    if steps <= recorded:
        raise TidegateError(
            f"replicate must be more than the {recorded} steps that were recorded, got {steps}"
        )
    for last in (recorded - 1, recorded - 2):
        if last >= 1:
            before, window = _Window(ops, last - 1), _Window(ops, last)
            if window.follows(before):
                return _repeat(ops, before, window, steps - last - 1)
    raise TidegateError(
        f"the last two of {recorded} steps of {ops.name} must do the same to be replicated, but "
        "they differ; record more (--steps 3 or more): the first one often does more than others"
    )


class _Window:
    """The launches, operands and events of one step."""

    def __init__(self, ops: Ops, step: int):
        self.ops = ops
        found = np.flatnonzero(ops.launches["step"].to_numpy() == step)
        if not len(found):
            raise TidegateError(f"step {step + 1} of {ops.name} has no launches")
        self.begin, self.end = int(found[0]), int(found[-1]) + 1
        launch = ops.events["launch"].to_numpy()
        self.events = ops.events.slice(*_slice(launch, self.begin, self.end))
        self.operands = ops.operands.slice(
            *_slice(ops.operands["launch"].to_numpy(), self.begin, self.end)
        )
        self.launches = ops.launches.slice(self.begin, self.end - self.begin)
        self.born = self.events.filter(pl.col("born"))["tensor"].to_numpy()

    def as_relative(self) -> Any:
        """Return the step with its own tensors named by their birth, and those that die in it by
        the order of their births.
        """
        own = self.born.tolist()
        dead = self.events.filter(~pl.col("born"))["tensor"].to_list()
        names = {t: (1, n) for n, t in enumerate(sorted(set(dead) - set(own)))}
        names |= {t: (0, n) for n, t in enumerate(own)}
        others = ("low", "high", "bytes", "write", "row", "stride", "group")
        return (
            self.ops.tensors["bytes"].to_numpy()[self.born].tolist(),
            self.launches.select("name", "where", "phase", "flops", "dtype").rows(),
            (self.operands["launch"].to_numpy() - self.begin).tolist(),
            [names.get(t, (2, t)) for t in self.operands["tensor"].to_list()],
            self.operands.select(others).rows(),
            (self.events["launch"].to_numpy() - self.begin).tolist(),
            [names.get(t, (2, t)) for t in self.events["tensor"].to_list()],
            self.events["born"].to_list(),
        )

    def follows(self, before: _Window) -> bool:
        """Return whether the same can follow again and again.

        What dies in this step must be born in it or in the step before.
        """
        dead = set(self.events.filter(~pl.col("born"))["tensor"].to_list())
        known = set(self.born.tolist()) | set(before.born.tolist())
        return dead <= known and self.as_relative() == before.as_relative()


def _slice(launch: NDArray[Any], begin: int, end: int) -> tuple[int, int]:
    first = int(np.searchsorted(launch, begin))
    return first, int(np.searchsorted(launch, end)) - first


def _repeat(ops: Ops, before: _Window, window: _Window, times: int) -> Ops:
    """Append the last step ``times`` times."""
    length = window.end - window.begin
    other = np.arange(len(ops.tensors))  # the tensor in the same place of the other step
    other[window.born], other[before.born] = before.born, window.born
    tail = window.end  # what comes behind the last step is the beginning of another: left out
    launches = [ops.launches.head(tail)]
    operands = [ops.operands.filter(pl.col("launch") < tail)]
    events = [ops.events.filter(pl.col("launch") < tail)]
    for n in range(1, times + 1):
        shift = n * length
        swap = other if n % 2 else np.arange(len(ops.tensors))
        step = int(window.launches["step"][0]) + n
        launches.append(window.launches.with_columns(step=pl.lit(step, pl.Int32)))
        operands.append(_moved(window.operands, shift, swap))
        events.append(_moved(window.events, shift, swap))
    left, alive = _leave_nothing_behind(pl.concat(events), len(ops.tensors))
    size = ops.tensors["bytes"].to_numpy()[left]
    notes = (*ops.notes, f"the last of {step - times + 1} recorded steps is repeated {times} times")
    if len(left):
        notes += (
            f"each step leaves {len(left)} tensors behind ({int(size.sum())} bytes); they are "
            "counted twice at most, not once for each step",
        )
    return replace(
        ops, notes=notes, launches=pl.concat(launches), operands=pl.concat(operands), events=alive
    )


def _moved(table: pl.DataFrame, shift: int, swap: NDArray[Any]) -> pl.DataFrame:
    return table.with_columns(
        launch=table["launch"] + shift,
        tensor=pl.Series(swap[table["tensor"].to_numpy()], dtype=pl.Int32),
    )


def _leave_nothing_behind(
    events: pl.DataFrame, tensors: int
) -> tuple[NDArray[np.int64], pl.DataFrame]:
    """Let a tensor that is still alive die before it is born again; return those tensors."""
    alive = np.zeros(tensors, bool)
    left: set[int] = set()
    rows = []
    for launch, tensor, born in events.iter_rows():
        if born and alive[tensor]:
            left.add(tensor)
            rows.append((launch, tensor, False))
        alive[tensor] = born
        rows.append((launch, tensor, born))
    return np.array(sorted(left), np.int64), pl.DataFrame(rows, EVENTS, orient="row")
