"""Analyze anything that a run can be made from: a workload, a trace, or a file."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tidegate import units
from tidegate.analysis import Analysis
from tidegate.analysis import analyze as analyze_trace
from tidegate.analysis.sequence import Unit
from tidegate.errors import UnknownName
from tidegate.experiments.specification import RunSpec


def analyze(
    workload: Any,
    unit: Unit = "region",
    shards: float | str | None = None,
    progress: Callable[[int], None] = lambda touches: None,
    **settings: Any,
) -> Analysis:
    """Analyze what a workload touches, without a machine's times: its miss-ratio curve, reuse
    distances and footprint.

    ``workload``: a name, a class, an object, a trace or a file, as for ``run``. ``shards``: a
    sampling rate, such as "1%", to add a sampled curve. ``settings``: ``bytes``, ``scale``,
    ``geometry`` and ``machine`` of ``RunSpec``.

    >>> found = analyze("cyclic(bytes=16MiB, passes=3)")
    >>> found.distinct, int(found.curve.misses[-1])  # memory for all eight: each misses once
    (8, 8)
    """
    known = {"bytes", "scale", "geometry", "machine"}
    for name in settings:
        if name not in known:
            raise UnknownName("keyword of an analysis", name, known)
    trace = RunSpec.from_settings(workload, settings).trace()
    rate = None if shards is None else units.fraction(shards)
    return analyze_trace(trace, unit, rate, progress)
