"""Analyze: the memory needs of a trace, in one pass and without a machine."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from tidegate.analysis.curves import MissRatioCurve, curve_of
from tidegate.analysis.footprint import Footprint
from tidegate.analysis.reuse import ReuseDistances, histogram
from tidegate.analysis.sequence import Sequence, Unit, empty
from tidegate.analysis.shards import Shards
from tidegate.trace.trace import Trace, check_trace


@dataclass(frozen=True, eq=False, repr=False)
class Analysis:
    """The result of :func:`analyze`.

    ``name``: the trace's. ``unit``: page or region, of ``unit_bytes``. ``touches``, ``distinct``:
    their number and that of different ids. ``curve``: the exact LRU miss-ratio curve.
    ``shards_curve``: the sampled one, if requested. ``histogram``: reuse distances in doubling
    buckets. ``footprint``: distinct ids and bytes over time.
    """

    name: str
    unit: Unit
    unit_bytes: int
    touches: int
    distinct: int
    curve: MissRatioCurve
    shards_curve: MissRatioCurve | None
    histogram: pl.DataFrame
    footprint: pl.DataFrame

    def __repr__(self) -> str:
        from tidegate.analysis.display import analysis_text

        return analysis_text(self)

    def _repr_html_(self) -> str:
        from tidegate.analysis.display import analysis_html

        return analysis_html(self)

    def plot(self, path: str | Path) -> Path:
        """Draw the curve, the histogram and the footprint; the suffix is the format (png, svg,
        html).
        """
        # imported here, because matplotlib loads slowly and only figures need it
        from tidegate.analysis.plot import figure
        from tidegate.display.figures import save_figure

        save_figure(figure(self), Path(path), title=f"{self.name}: what it asks of memory")
        return Path(path)


def analyze(
    trace: Trace,
    unit: Unit = "region",
    shards: float | None = None,
    progress: Callable[[int], None] = lambda touches: None,
) -> Analysis:
    """Analyze ``trace``, which is read once.

    ``shards``: a sampling rate, such as 0.01, to add a sampled curve to the exact one.
    ``progress``: called with the number of touches of each segment read.

    >>> import tidegate
    >>> found = analyze(tidegate.RunSpec("cyclic(bytes=16MiB, passes=3)").trace())
    >>> found.distinct, int(found.curve.misses[-1])  # memory for all eight: each misses once
    (8, 8)
    """
    check_trace(trace)
    sequence = Sequence(trace, unit)
    reuse, footprint = ReuseDistances(sequence.bound), Footprint(sequence.bound)
    sample = Shards(sequence.bound, shards) if shards is not None else None
    for ids in sequence:
        reuse.update(ids)
        footprint.update(ids)
        if sample:
            sample.update(ids)
        progress(len(ids))
    if not reuse.touches:
        raise empty(trace)
    size = sequence.unit_bytes
    curves = curve_of(reuse, size), sample.curve(size) if sample else None
    tables = histogram(reuse, size), footprint.table(size)
    return Analysis(trace.name, unit, size, reuse.touches, reuse.cold, *curves, *tables)
