"""Ops: what a program does to its tensors, launch by launch. Four tables.

    tensors    name, kind, bytes, host                    one storage each; host: it holds host data
    launches   name, where, phase, step, flops, dtype     one operator with a kernel each, in order
    operands   launch, tensor, low, high, bytes, write, row, stride, group
    events     launch, tensor, born                       births and deaths, before that launch

An operand is the bytes ``low`` to ``high`` of a tensor, of which ``bytes`` are used. If ``row`` is
0, they are spread evenly. Otherwise rows of that many bytes are used: every ``stride`` bytes from
``low`` on, or, if ``stride`` is 0, gathered from somewhere within. Operands of one ``group`` are
swept in step, and groups one after another (foreach operators work through their lists tensor by
tensor).

A tensor may die and be born again: replicated steps use the tensors of the steps they repeat. Pages
appear only when ops are laid out for a geometry (``OpTrace``).
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tidegate.errors import TidegateError
from tidegate.trace.trace import Provenance

KINDS = (*("weight", "gradient", "optimiser state", "activation"), *("kv cache", "input", "buffer"))
TENSORS = {"name": pl.String, "kind": pl.String, "bytes": pl.Int64, "host": pl.Boolean}
LAUNCHES = {
    "name": pl.String,
    "where": pl.String,
    "phase": pl.String,
    "step": pl.Int32,
    "flops": pl.Float64,
    "dtype": pl.String,
}
OPERANDS = {
    "launch": pl.Int32,
    "tensor": pl.Int32,
    "low": pl.Int64,
    "high": pl.Int64,
    "bytes": pl.Int64,
    "write": pl.Boolean,
    "row": pl.Int64,
    "stride": pl.Int64,
    "group": pl.Int32,
}
EVENTS = {"launch": pl.Int32, "tensor": pl.Int32, "born": pl.Boolean}
TABLES = {"tensors": TENSORS, "launches": LAUNCHES, "operands": OPERANDS, "events": EVENTS}
_MOST_BYTES = 1 << 47  # of a tensor: what an address can reach


@dataclass(frozen=True)
class Ops:
    """A program's launches, their operands and its tensors. ``notes``: what was assumed.

    >>> ops = Ops("copy", Provenance.ASSUMED, (),
    ...     pl.DataFrame([("a", "input", 8, True), ("b", "activation", 8, False)], TENSORS,
    ...         orient="row"),
    ...     pl.DataFrame([("copy_", "", "forward", 0, 0.0, "float32")], LAUNCHES, orient="row"),
    ...     pl.DataFrame([(0, 0, 0, 8, 8, False, 0, 0, 0), (0, 1, 0, 8, 8, True, 0, 0, 0)],
    ...         OPERANDS, orient="row"),
    ...     pl.DataFrame([(0, 0, True), (0, 1, True)], EVENTS, orient="row"))
    >>> ops.peak
    16
    """

    name: str
    provenance: Provenance
    notes: tuple[str, ...]
    tensors: pl.DataFrame
    launches: pl.DataFrame
    operands: pl.DataFrame
    events: pl.DataFrame

    def __post_init__(self) -> None:
        for table, schema in TABLES.items():
            given = getattr(self, table)
            object.__setattr__(self, table, given.select(list(schema)).cast(schema))  # type: ignore[arg-type]
        _check(self)

    @cached_property
    def digest(self) -> str:
        """A hash of the four tables, for files and for the identity of a trace."""
        digest = hashlib.sha256()
        for table, schema in TABLES.items():
            frame: pl.DataFrame = getattr(self, table)
            digest.update(f"{table} {len(frame)} ".encode())
            for column, kind in schema.items():
                values = frame[column]
                if kind == pl.String:
                    for text in values.to_list():
                        digest.update(text.encode("utf-8", "surrogatepass") + b"\0")
                else:
                    digest.update(np.ascontiguousarray(values.to_numpy()).tobytes())
        return digest.hexdigest()

    @property
    def is_trained(self) -> bool:
        """Whether there is a backward pass."""
        return bool(self.launches["phase"].str.starts_with("backward").any())

    @cached_property
    def live(self) -> NDArray[np.int64]:
        """Bytes of live tensors after each event."""
        size = self.tensors["bytes"].to_numpy()[self.events["tensor"].to_numpy()]
        return np.cumsum(np.where(self.events["born"].to_numpy(), size, -size))

    @property
    def peak(self) -> int:
        """The most bytes that were live at a time."""
        return int(self.live.max(initial=0))

    @property
    def peak_launch(self) -> int:
        """The launch before which the peak is reached."""
        return int(self.events["launch"][int(self.live.argmax())]) if len(self.events) else 0

    def live_by_kind(self, events: int | None = None) -> dict[str, int]:
        """Return the bytes live after so many events, by kind; by default at the peak.

        Kinds that have none are left out, and the largest comes first.
        """
        until = int(self.live.argmax()) + 1 if events is None else events
        past = self.events.head(until)
        sign = np.where(past["born"].to_numpy(), 1, -1)
        of = past["tensor"].to_numpy()
        total = np.bincount(of, sign, len(self.tensors)) * self.tensors["bytes"].to_numpy()
        summed = (
            pl.DataFrame({"kind": self.tensors["kind"], "bytes": total.astype(np.int64)})
            .group_by("kind", maintain_order=True)
            .sum()
            .filter(pl.col("bytes") > 0)
            .sort("bytes", descending=True, maintain_order=True)
        )
        return dict(summed.iter_rows())

    @cached_property
    def instances(self) -> Instances:
        """The lives of the tensors, and which of them each operand uses."""
        return Instances.from_ops(self)


@dataclass(frozen=True)
class Instances:
    """Each life of a tensor: its birth and death among the events; -1 if it does not die."""

    tensor: NDArray[np.int64]
    birth: NDArray[np.int64]
    death: NDArray[np.int64]
    of_operand: NDArray[np.int64]

    @classmethod
    def from_ops(cls, ops: Ops) -> Instances:
        """Return the lives in the order of births. Raise ValueError if an operand uses no life."""
        tensor = ops.events["tensor"].to_numpy().astype(np.int64)
        launch = ops.events["launch"].to_numpy().astype(np.int64)
        born = ops.events["born"].to_numpy()
        births = np.flatnonzero(born)
        number = np.cumsum(born) - 1  # of the life that an event begins
        order = np.argsort(tensor, kind="stable")
        grouped = tensor[order]
        first = np.append(True, grouped[1:] != grouped[:-1])[: len(order)]
        position = np.arange(len(order)) - np.maximum.accumulate(
            np.where(first, np.arange(len(order)), 0)
        )
        if not np.array_equal(born[order], position % 2 == 0):
            raise ValueError("births and deaths of a tensor must alternate and begin with a birth")
        death = np.full(len(births), -1, np.int64)
        dies = np.flatnonzero(~born[order])
        death[number[order[dies - 1]]] = order[dies]
        stride = len(ops.launches) + 2
        keys = grouped * stride + launch[order]
        used = ops.operands["tensor"].to_numpy().astype(np.int64)
        wanted = used * stride + ops.operands["launch"].to_numpy()
        at = np.searchsorted(keys, wanted, side="right") - 1
        if len(used) and (at.min() < 0 or (grouped[at] != used).any() or not born[order[at]].all()):
            raise ValueError("an operand uses a tensor that is not alive")
        return cls(tensor[births], births, death, number[order[at]])


def _check(ops: Ops) -> None:
    """Raise an error unless the tables fit together: a file may hold anything."""
    try:
        _check_tables(ops)
        _ = ops.instances
    except ValueError as error:
        raise TidegateError(f"ops of {ops.name} are damaged: {error}; record them anew") from None


def _check_tables(ops: Ops) -> None:
    for table in TABLES:
        if sum(getattr(ops, table).null_count().row(0)):
            raise ValueError(f"values are missing in {table}")
    if not len(ops.launches) or not len(ops.operands):
        raise ValueError("there are no launches with operands")
    t, o, e = ops.tensors, ops.operands, ops.events
    unknown = set(t["kind"].unique()) - set(KINDS)
    if unknown:
        raise ValueError(f"kind must be one of {', '.join(KINDS)}, got '{min(unknown)}'")
    _within("bytes of a tensor", t["bytes"], 1, _MOST_BYTES)
    for table, frame, last in (("an operand", o, -1), ("an event", e, 0)):
        _within(f"tensor of {table}", frame["tensor"], 0, len(t) - 1)
        _within(f"launch of {table}", frame["launch"], 0, len(ops.launches) + last)
        if not frame["launch"].is_sorted():
            raise ValueError(f"launches of {table} must be in order")
    size = t["bytes"].to_numpy()[o["tensor"].to_numpy()]
    low, high = o["low"].to_numpy(), o["high"].to_numpy()
    if ((low < 0) | (low >= high) | (high > size)).any():
        raise ValueError("low and high of an operand must lie within its tensor")
    if ((o["bytes"].to_numpy() < 1) | (o["bytes"].to_numpy() > high - low)).any():
        raise ValueError("bytes of an operand must be 1 to high - low")
    row, stride = o["row"].to_numpy(), o["stride"].to_numpy()
    if ((row < 0) | (row > high - low) | (stride < 0) | ((stride > 0) & (stride < row))).any():
        raise ValueError("row of an operand must lie within it, and stride be at least a row")
    if (stride > high - low).any():
        raise ValueError("stride of an operand must lie within it")
    flops = ops.launches["flops"].to_numpy()
    if not (np.isfinite(flops) & (flops >= 0)).all():
        raise ValueError("flops of a launch must be at least 0")


def _within(what: str, column: pl.Series, least: int, most: int) -> None:
    found: Any = column.min(), column.max()
    if len(column) and not (least <= found[0] and found[1] <= most):
        wrong = found[0] if found[0] < least else found[1]
        raise ValueError(f"{what} must be {least} to {most}, got {wrong}")
