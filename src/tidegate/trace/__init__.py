"""Traces: the objects, launches, blocks and touches of a program, streamed or in a file.

Names of files of traces are imported when they are first used: live memory and many commands need
traces and no files, and polars takes half a second to import.
"""

from typing import TYPE_CHECKING, Any

from tidegate.trace.build import SegmentBuilder, blocks_of
from tidegate.trace.trace import Copy, Launch, Object, Provenance, Segment, Trace, lay_out

if TYPE_CHECKING:
    from tidegate.trace.file import TraceFile, save_trace

__all__ = [
    "Copy",
    "Launch",
    "Object",
    "Provenance",
    "Segment",
    "SegmentBuilder",
    "Trace",
    "TraceFile",
    "blocks_of",
    "lay_out",
    "save_trace",
]


def __getattr__(name: str) -> Any:
    """Import a name of ``file`` on first use."""
    if name not in ("TraceFile", "save_trace"):
        raise AttributeError(f"module 'tidegate.trace' has no attribute '{name}'")
    from tidegate.trace import file

    globals()[name] = value = getattr(file, name)
    return value
