"""Analyze anything that a run can be made from: a workload, a trace, or a file."""

from __future__ import annotations

from collections.abc import Callable

from tidegate import units
from tidegate.analysis import Analysis
from tidegate.analysis import analyze as analyze_trace
from tidegate.analysis.sequence import Unit
from tidegate.experiments.specification import RunSpec
from tidegate.machine.machine import Machine
from tidegate.trace.geometry import Geometry
from tidegate.workloads.program import WorkloadLike


def analyze(
    workload: WorkloadLike,
    *,
    unit: Unit = "region",
    shards: float | str | None = None,
    machine: str | Machine | None = None,
    bytes: str | int | None = None,
    scale: str | float | None = None,
    geometry: str | Geometry | None = None,
    progress: Callable[[int], None] = lambda touches: None,
) -> Analysis:
    """Analyze what a workload touches, without a machine's times: its miss-ratio curve, reuse
    distances and footprint.

    ``workload``, ``machine``, ``bytes``, ``scale`` and ``geometry``: as for ``run``. ``shards``: a
    sampling rate, such as "1%", to add a sampled curve.

    >>> found = analyze("cyclic(bytes=16MiB, passes=3)")
    >>> found.distinct, int(found.curve.misses[-1])  # memory for all eight: each misses once
    (8, 8)
    """
    spec = RunSpec(workload, machine, bytes=bytes, scale=scale, geometry=geometry)
    rate = None if shards is None else units.fraction(shards)
    return analyze_trace(spec.trace(), unit, rate, progress)
