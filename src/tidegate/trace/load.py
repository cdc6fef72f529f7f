"""Traces from files, whatever wrote them: Tidegate's own, ops, or another tool's by its content."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tidegate.errors import TidegateError
from tidegate.options import parse_spec
from tidegate.trace.file import TraceFile
from tidegate.trace.geometry import Geometry
from tidegate.trace.importers import import_trace
from tidegate.trace.ops import OpTrace, holds_ops
from tidegate.trace.trace import Trace


def load_trace(
    file: str | Path, geometry: str | Geometry | None = None, default: Geometry | None = None
) -> Trace:
    """Return the trace in a file: one that Tidegate saved (.parquet), or that it can import.

    Ops and other tools' formats have options, as in ``step.parquet(allocator=caching)``, and are
    laid out for ``geometry``, or else for ``default``. A saved trace has its own geometry.

    >>> import tempfile, tidegate
    >>> trace = tidegate.RunSpec("cyclic(bytes=4MiB)").trace()
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     load_trace(tidegate.save_trace(trace, f"{folder}/loop.parquet")).footprint
    4194304
    """
    path, options = _split(str(file))
    wanted = Geometry.parse(geometry) if isinstance(geometry, str) else geometry
    if not path.endswith(".parquet"):
        return import_trace(path, geometry=wanted or default, **options)
    if holds_ops(Path(path)):
        return OpTrace.load(path, wanted or default or Geometry(), options)
    if options:
        raise TidegateError(f"{path} holds no ops, so it takes no options; leave them out")
    if wanted is not None:
        raise TidegateError(f"{path} has its geometry already; leave out geometry {wanted}")
    return TraceFile(path)


def is_trace_file(given: str) -> bool:
    """Return whether a text names a file of a trace, not a workload or a user's class."""
    path = _split(given)[0]
    return path.endswith(".parquet") or (not path.endswith(".py") and Path(path).is_file())


def _split(given: str) -> tuple[str, dict[str, Any]]:
    """Return the path and the options of a file."""
    if Path(given).is_file() or not given.endswith(")"):
        return given, {}
    return parse_spec(given)
