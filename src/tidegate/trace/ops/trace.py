"""OpTrace: ops laid out in pages, a trace like any other.

    Ops ──▶ place (allocator) ──▶ objects and addresses ──▶ OperandSweep ──▶ launches of touches

How long a launch takes follows from its bytes and floating-point operations. A page's data die with
the last tensor on it. A page is unwritten at the start unless a tensor with host data is the first
on it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tidegate.errors import TidegateError
from tidegate.options import Configurable, Option
from tidegate.trace.geometry import Geometry
from tidegate.trace.ops.allocators import ALLOCATORS, Places, place
from tidegate.trace.ops.expand import OperandSweep
from tidegate.trace.ops.file import load_ops
from tidegate.trace.ops.ops import Ops
from tidegate.trace.trace import Launch, Object, Ranges, Trace, lay_out

_MOST_PAGES = 1 << 30  # page numbers are int32, and objects end at region boundaries
DTYPES = {  # of PyTorch, as machines name their rates; others compute like fp32
    "float64": "fp64",
    "float16": "fp16",
    "bfloat16": "bf16",
    "float8_e4m3fn": "fp8",
    "float8_e5m2": "fp8",
    "int8": "int8",
    "uint8": "int8",
}


class OpLayout(Configurable):
    """How ops become pages and time: ``step.parquet(allocator=caching)``."""

    name = "ops"
    allocator = Option("tensors", "where tensors are in memory", choices=tuple(ALLOCATORS))
    efficiency = Option(
        0.6, "share of the machine's peak rate that operators reach", least=0.001, most=1
    )


class OpTrace(Trace):
    """Ops for one geometry and one allocator.

    ``footprint`` is the peak of what is allocated at a time. Segments are never given back.
    """

    def __init__(self, ops: Ops, geometry: Geometry, layout: OpLayout | None = None):
        self.ops, self.geometry, self.layout = ops, geometry, layout or OpLayout()
        self.name, self.provenance, self.notes = ops.name, ops.provenance, ops.notes
        places = place(ops, self.layout.allocator)
        self.objects = lay_out(places.objects, geometry)
        if self.pages > _MOST_PAGES:
            raise TidegateError(
                f"{self.name} spans {self.pages:,} pages; at most {_MOST_PAGES:,} can be played: "
                "give larger pages (--geometry)"
            )
        self._lives = _Layout(ops, places, self.objects, geometry.page)
        self.objects = self._lives.with_host_data()
        self._frees = self._lives.frees()
        self._sites = _sites(ops)
        self._columns, self._bounds = _sorted_operands(ops, self._lives.address)

    @classmethod
    def load(cls, path: str | Path, geometry: Geometry, options: dict[str, Any]) -> OpTrace:
        """Return the trace of an op file; ``options`` are those of OpLayout."""
        return cls(load_ops(path), geometry, OpLayout(**options))

    def identity(self) -> dict[str, Any]:
        settings = self.layout.settings()
        return {"ops": self.ops.digest, "geometry": str(self.geometry), **settings}

    @property
    def footprint(self) -> int:
        return self._lives.footprint

    def launches(self) -> Iterator[Launch]:
        rows = self.ops.launches.select("name", "where", "flops", "dtype").iter_rows()
        for number, (name, where, flops, dtype) in enumerate(rows):
            begin, end = self._bounds[number], self._bounds[number + 1]
            if begin == end:
                continue
            sweep = OperandSweep(*(column[begin:end] for column in self._columns))
            yield Launch(
                f"{where}/{name}" if where else name,
                sweep.segments(self.geometry.page, number),
                # at least 1: a launch without any takes the time of its bytes
                flops=max(1.0, flops / self.layout.efficiency),
                dtype=DTYPES.get(dtype, "fp32"),
                place=self._sites[number],
                frees=self._frees.get(number, ()),
            )


class _Layout:
    """The lives of tensors at their addresses."""

    def __init__(self, ops: Ops, places: Places, objects: tuple[Object, ...], page: int):
        self.ops, self.places, self.objects, self.page = ops, places, objects, page
        first = np.array([o.first_page for o in objects], np.int64) * page
        pages = np.array([o.pages for o in objects], np.int64)
        self._base = first[places.object]
        self._object_bytes = pages * page
        self.address = self._base + places.offset
        self.size = ops.tensors["bytes"].to_numpy()[ops.instances.tensor]

    @property
    def footprint(self) -> int:
        """The most bytes of objects that are allocated at a time."""
        lives, own = self.ops.instances, self.places.own
        change = np.zeros(len(self.ops.events), np.int64)
        whole = self._object_bytes[self.places.object]
        change[lives.birth[own]] = whole[own]
        dies = own & (lives.death >= 0)
        change[lives.death[dies]] = -whole[dies]
        shared = np.unique(self.places.object[~own])
        return int(np.cumsum(change).max(initial=0) + self._object_bytes[shared].sum())

    def with_host_data(self) -> tuple[Object, ...]:
        """Return the objects with the bytes that hold host data at the start.

        Host data in a place that another tensor had before are not there at the start.
        """
        host = self.ops.tensors["host"].to_numpy()[self.ops.instances.tensor]
        at, end = self.places.offset, self.places.offset + self.size
        order = np.argsort(self.places.object, kind="stable")
        bounds = np.searchsorted(self.places.object[order], np.arange(len(self.objects) + 1))
        found: list[Ranges] = []
        for n in range(len(self.objects)):
            own = order[bounds[n] : bounds[n + 1]]  # the lives in this object, in order of births
            ranges = []
            for i in np.flatnonzero(host[own]).tolist():
                life, earlier = own[i], own[:i]
                taken = (at[earlier] < end[life]) & (at[life] < end[earlier]) & ~host[earlier]
                if not taken.any():
                    ranges.append((int(at[life]), int(end[life])))
            found.append(_merged(ranges))
        return tuple(replace(o, host=r) for o, r in zip(self.objects, found, strict=True))

    def frees(self) -> dict[int, Ranges]:
        """Return by launch the pages whose data die when it has ended."""
        lives, page = self.ops.instances, self.page
        dies = np.flatnonzero(lives.death >= 0)
        before = self.ops.events["launch"].to_numpy()[lives.death[dies]]
        dead = self._base[dies, None] + np.minimum(
            self.places.dead[dies], self._object_bytes[self.places.object[dies], None]
        )
        begin = np.maximum(-(-dead[:, 0] // page), self.address[dies] // page)
        end = np.minimum(dead[:, 1] // page, -(-(self.address + self.size)[dies] // page))
        whole = (begin < end) & (before > 0)
        found: dict[int, list[tuple[int, int]]] = {}
        rows = (column[whole].tolist() for column in (before, begin, end))
        for launch, first, last in zip(*rows, strict=True):
            found.setdefault(launch - 1, []).append((first, last))
        return {launch: _merged(ranges) for launch, ranges in found.items()}


def _merged(ranges: list[tuple[int, int]]) -> Ranges:
    """Return ranges in order, those that touch as one.

    >>> _merged([(4, 6), (0, 2), (2, 3)])
    ((0, 3), (4, 6))
    """
    merged: list[tuple[int, int]] = []
    for first, end in sorted(ranges):
        if merged and first <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((first, end))
    return tuple(merged)


def _sorted_operands(
    ops: Ops, address: NDArray[np.int64]
) -> tuple[list[NDArray[Any]], NDArray[np.int64]]:
    """Return the operands as addresses, by launch and group, and where each launch's begin."""
    o = ops.operands
    launch, group = o["launch"].to_numpy(), o["group"].to_numpy()
    order = np.lexsort((group, launch))
    base = address[ops.instances.of_operand]
    others = ("bytes", "write", "row", "stride", "group")
    columns = [
        base + o["low"].to_numpy(),
        base + o["high"].to_numpy(),
        *(o[name].to_numpy().astype(np.int64) for name in others),
    ]
    bounds = np.searchsorted(launch, np.arange(len(ops.launches) + 1))
    return [np.ascontiguousarray(column[order]) for column in columns], bounds


def _sites(ops: Ops) -> list[str]:
    """Return each launch's place in the program: its number within its step.

    Steps that do the same with tensors of the same sizes have the same places.
    """
    names = [f"{w}/{n}" if w else n for w, n in ops.launches.select("where", "name").iter_rows()]
    step = ops.launches["step"].to_numpy()
    cuts = [0, *(np.flatnonzero(np.diff(step)) + 1).tolist(), len(step)]
    launch = ops.operands["launch"].to_numpy()
    facts = np.stack(
        [
            launch,
            ops.operands["tensor"].to_numpy(),
            *(ops.operands[c].to_numpy() for c in ("low", "high", "write")),
        ],
        axis=1,
    ).astype(np.int64)
    facts[:, 1] = ops.tensors["bytes"].to_numpy()[facts[:, 1]]
    seen: dict[Any, int] = {}
    sites = []
    for begin, end in pairwise(cuts):
        own = facts[np.searchsorted(launch, begin) : np.searchsorted(launch, end)].copy()
        own[:, 0] -= begin
        like = seen.setdefault((tuple(names[begin:end]), own.tobytes()), len(seen))
        sites += [f"{name} {like}:{n}" for n, name in enumerate(names[begin:end])]
    return sites
