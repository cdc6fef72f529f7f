"""Does it fit? The peak of live bytes, by kind and by moment, beside near memory."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tidegate.trace.ops import Ops, OpTrace
from tidegate.trace.trace import Trace

LARGEST = 5  # objects that are named
_POINTS = 400  # of the curve


@dataclass(frozen=True)
class Fit:
    """The peak of what is live at a time."""

    near: int
    peak: int
    moment: str  # where in the program the peak is; empty if it is not known
    kinds: dict[str, int]  # bytes at the peak by kind; of traces without kinds, by object
    largest: dict[str, int]  # the largest tensors or arrays that are live at the peak
    curve: tuple[tuple[int, int], ...]  # launch, live bytes; empty if lifetimes are not known

    @property
    def fits(self) -> bool:
        return self.peak <= self.near

    @property
    def lacking(self) -> int:
        """Bytes that near memory is too small."""
        return max(0, self.peak - self.near)


def measure_fit(trace: Trace, near: int) -> Fit:
    """Return how much memory a program needs at a time.

    Without lifetimes that is all it allocates.
    """
    if isinstance(trace, OpTrace):
        return _of_ops(trace.ops, trace.footprint, near)
    sizes = {o.name: o.bytes for o in trace.objects}
    largest = dict(sorted(sizes.items(), key=lambda item: -item[1])[:LARGEST])
    rest = sum(sizes.values()) - sum(largest.values())
    kinds = largest | ({"others": rest} if rest else {})
    return Fit(near, trace.footprint, "", kinds, largest, ())


def _of_ops(ops: Ops, footprint: int, near: int) -> Fit:
    launch = min(ops.peak_launch, len(ops.launches) - 1)
    row = ops.launches.row(launch, named=True)
    name = f"{row['where']}/{row['name']}" if row["where"] else row["name"]
    phase = f", {row['phase']} of step {row['step'] + 1}" if row["phase"] else ""
    return Fit(
        near,
        footprint,
        f"before launch {launch + 1:,} of {len(ops.launches):,} ({name}{phase})",
        ops.live_by_kind(),
        _largest_at_peak(ops),
        _curve(ops),
    )


def _largest_at_peak(ops: Ops) -> dict[str, int]:
    past = ops.events.head(int(ops.live.argmax()) + 1)
    alive = np.bincount(
        past["tensor"].to_numpy(), np.where(past["born"].to_numpy(), 1, -1), len(ops.tensors)
    )
    size = ops.tensors["bytes"].to_numpy() * (alive > 0)
    names = ops.tensors["name"].to_list()
    found: dict[str, int] = {}
    for tensor in np.argsort(-size, kind="stable").tolist():
        if len(found) == LARGEST or not size[tensor]:
            break
        found.setdefault(names[tensor], int(size[tensor]))
    return found


def _curve(ops: Ops) -> tuple[tuple[int, int], ...]:
    """Return the live bytes over launches: the most of each stretch."""
    launch: NDArray[np.int64] = ops.events["launch"].to_numpy().astype(np.int64)
    if not len(launch):
        return ()
    bins = np.linspace(0, len(ops.launches) + 1, _POINTS + 1)
    at = np.searchsorted(launch, bins, side="right")
    points = []
    for begin, end, low in zip(at[:-1], at[1:], bins[:-1], strict=True):
        first = max(0, int(begin) - 1)
        points.append((int(low), int(ops.live[first : max(int(end), first + 1)].max())))
    return tuple(points)
