"""Traces in the formats of other tools: a row or record for each touch.

    Trace ──▶ EXPORTERS["csv"](trace, path, progress)

The touches are in the order of the trace: launch by launch, block by block. How a GPU interleaves
blocks is the mechanism's business and not in the file.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tidegate.trace.exporters.csv import export_csv
from tidegate.trace.exporters.oracle_general import export_oracle_general
from tidegate.trace.trace import Trace

Exporter = Callable[[Trace, Path, Callable[[int], None]], None]

EXPORTERS: dict[str, Exporter] = {"csv": export_csv, "oracle-general": export_oracle_general}
