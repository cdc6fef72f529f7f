"""Traces read in tests: launches as arrays, blocks as lists, waves put together again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from tidegate.trace.geometry import Geometry
from tidegate.trace.trace import Trace
from tidegate.workloads import workloads

# for the workloads that have these options
SMALL = {
    "passes": 2,
    "touches": 2000,
    "steps": 40,
    "chains": 8,
    "iterations": 3,
    "frames": 2,
    "rounds": 3,
}


def program(name: str, geometry: Geometry | None = None, **options: object) -> Trace:
    return workloads.find(name)(**options).trace(geometry)


@dataclass(frozen=True)
class Read:
    """One launch, read whole."""

    name: str
    width: int
    intensity: float
    starts: np.ndarray
    page: np.ndarray
    write: np.ndarray
    bytes: np.ndarray
    reference: np.ndarray

    def blocks(self) -> list[list[tuple[int, int, int, int]]]:
        """Return each block as a list of (page, write, bytes, access site)."""
        rows = list(
            zip(
                *(c.tolist() for c in (self.page, self.write, self.bytes, self.reference)),
                strict=True,
            )
        )
        return [rows[a:b] for a, b in zip(self.starts[:-1], self.starts[1:], strict=True)]


def read(trace: Trace) -> list[Read]:
    return list(_launches(trace))


def _launches(trace: Trace) -> Iterator[Read]:
    for launch in trace.launches():
        segments = list(launch.segments)
        starts = [np.zeros(1, np.int64)]
        for s in segments:
            assert s.starts[0] == 0
            assert s.starts[-1] == s.touches
            assert (np.diff(s.starts) > 0).all(), "an empty block"
            starts.append(starts[-1][-1] + s.starts[1:])
        columns = [
            np.concatenate([getattr(s, c) for s in segments])
            for c in ("page", "write", "bytes", "reference")
        ]
        yield Read(launch.name, launch.width, launch.intensity, np.concatenate(starts), *columns)


def in_order(lanes: list[list]) -> list:
    """Return a wave's touches in order, from its lanes."""
    return [lanes[i % len(lanes)][i // len(lanes)] for i in range(sum(map(len, lanes)))]


def pages_of(trace: Trace, *names: str) -> set[int]:
    """Return every page of the objects named."""
    return {
        p
        for o in trace.objects
        if o.name in names
        for p in range(o.first_page, o.first_page + o.pages)
    }


class Uses:
    """The uses of a loop over a kernel's index functions: bytes and first step of each page."""

    def __init__(self, trace: Trace, size: int = 4):
        self._page, self._size = trace.geometry.page, size
        self._first = {o.name: o.first_page for o in trace.objects}
        self._seen: dict[tuple[int, int, int], set[int]] = {}
        self.step: dict[tuple[int, int, int], int] = {}

    def element(self, name: str, index: int, step: int, reference: int, write: int = 0) -> None:
        """Use element ``index`` of an object."""
        key = self._first[name] + self._size * index // self._page, write, reference
        self._seen.setdefault(key, set()).add(index)
        self.step[key] = min(step, self.step.get(key, step))

    def touches(self) -> set[tuple[int, int, int, int]]:
        """Return (page, write, bytes, access site) of each page used."""
        return {
            (page, write, self._size * len(used), ref)
            for (page, write, ref), used in self._seen.items()
        }

    def steps(self, touches: list[tuple[int, int, int, int]]) -> list[int]:
        """Return the step in which each touch's page is first used."""
        return [self.step[page, write, reference] for page, write, _, reference in touches]
