"""OpsBuilder: collects tensors, births, launches and deaths in the order in which they happen.

A span says which bytes of its storage a tensor's elements are in, from its shape and strides.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import polars as pl

from tidegate.errors import TidegateError
from tidegate.trace.ops.ops import EVENTS, LAUNCHES, OPERANDS, TENSORS, Ops
from tidegate.trace.trace import Provenance


class Span(NamedTuple):
    """The columns of an operand that say which bytes of its tensor are used; see ``ops``."""

    low: int
    high: int
    bytes: int
    row: int
    stride: int


def make_span(offset: int, shape: Sequence[int], strides: Sequence[int], size: int) -> Span | None:
    """Return the bytes that a tensor uses, None if it has no elements.

    Offset and strides are in elements of ``size`` bytes. Without strides elements are next to each
    other. Elements in rows at one distance are told apart; other gaps are not.

    >>> make_span(2, (4, 2), (8, 1), 4)
    Span(low=8, high=112, bytes=32, row=8, stride=32)
    """
    count, low = math.prod(shape), offset * size
    if not count:
        return None
    if len(strides) != len(shape):
        return Span(low, low + count * size, count * size, 0, 0)
    dims = sorted((st, n) for n, st in zip(shape, strides, strict=True) if st and n > 1)
    used = size * math.prod(n for _, n in dims)
    high = low + size * (1 + sum(st * (n - 1) for st, n in dims))
    run, stride, rows = 1, 0, 1
    for step, n in dims:
        if step == run and not stride:
            run *= n
        elif not stride:
            stride, rows = step, n
        elif step == stride * rows:
            rows *= n
        else:
            return Span(low, high, min(used, high - low), 0, 0)
    if stride < run or not stride:
        return Span(low, high, min(used, high - low), 0, 0)
    return Span(low, high, used, run * size, stride * size)


_FIELDS = len(OPERANDS)


class OpsBuilder:
    """Collects what a recorder or an importer sees. Columns of numbers are arrays, to save memory.

    >>> build = OpsBuilder()
    >>> x = build.tensor("x", "input", 4096, host=True)
    >>> build.launch("relu_")
    >>> build.use(x, 0, 4096)
    >>> build.use(x, 0, 4096, write=True)
    >>> build.die(x)
    >>> build.finish("small", Provenance.ASSUMED).peak
    4096
    """

    def __init__(self) -> None:
        self.names: list[str] = []
        self.kinds: list[str] = []
        self.sizes = array("q")
        self.hosts = bytearray()
        self._launches: list[tuple[str, str, str, int, float, str]] = []
        self._operands = array("q")
        self._events = array("q")  # launch, tensor, born

    @property
    def launches(self) -> int:
        """How many launches there are so far."""
        return len(self._launches)

    def tensor(self, name: str, kind: str, bytes: int, host: bool = False) -> int:
        """Add a tensor, born now, and return its number."""
        number = len(self.names)
        self.names.append(name)
        self.kinds.append(kind)
        self.sizes.append(bytes)
        self.hosts.append(host)
        self.be_born(number)
        return number

    def be_born(self, tensor: int) -> None:
        """Let a tensor that has died be born again."""
        self._events.extend((len(self._launches), tensor, 1))

    def die(self, tensor: int) -> None:
        """Let a tensor die: after the launches so far, before the next one."""
        self._events.extend((len(self._launches), tensor, 0))

    def launch(
        self,
        name: str,
        where: str = "",
        phase: str = "",
        step: int = 0,
        flops: float = 0.0,
        dtype: str = "",
    ) -> None:
        """Begin a launch; its operands follow."""
        self._launches.append((name, where, phase, step, flops, dtype))

    def use(
        self,
        tensor: int,
        low: int,
        high: int,
        bytes: int | None = None,
        write: bool = False,
        row: int = 0,
        stride: int = 0,
        group: int = 0,
    ) -> None:
        """Add an operand to the latest launch; by default all bytes from low to high are used."""
        used = high - low if bytes is None else bytes
        launch = len(self._launches) - 1
        self._operands.extend((launch, tensor, low, high, used, write, row, stride, group))

    def finish(self, name: str, provenance: Provenance, notes: tuple[str, ...] = ()) -> Ops:
        """Return the ops. Raise TidegateError if there are none, or if they do not fit together."""
        if not self._launches:
            raise TidegateError(f"{name} launched nothing; nothing was recorded")
        operands = np.frombuffer(self._operands, np.int64).reshape(-1, _FIELDS)
        events = np.frombuffer(self._events, np.int64).reshape(-1, 3)
        return Ops(
            name,
            provenance,
            notes,
            pl.DataFrame(
                {
                    "name": self.names,
                    "kind": self.kinds,
                    "bytes": np.frombuffer(self.sizes, np.int64),
                    "host": np.frombuffer(bytes(self.hosts), np.uint8).astype(bool),
                }
            ).cast(TENSORS),  # type: ignore[arg-type]
            pl.DataFrame(self._launches, LAUNCHES, orient="row"),
            _frame(operands, OPERANDS),
            _frame(_in_order(events), EVENTS),
        )


def _in_order(events: np.ndarray) -> np.ndarray:
    """Return the events with deaths that follow each other sorted.

    PyTorch clears some of its tables in the order of addresses, which differs from run to run.
    """
    launch, tensor, born = events.T
    return events[np.lexsort((tensor, 1 - born, launch, np.cumsum(born)))]


def _frame(rows: np.ndarray, schema: dict[str, type[pl.DataType]]) -> pl.DataFrame:
    columns = {
        name: rows[:, i].astype(bool) if kind == pl.Boolean else rows[:, i]
        for i, (name, kind) in enumerate(schema.items())
    }
    return pl.DataFrame(columns).cast(schema)  # type: ignore[arg-type]
