"""Traces: the objects, launches, blocks and touches of a program, streamed or in a file."""

from tidegate.trace.build import SegmentBuilder, blocks_of
from tidegate.trace.file import TraceFile, save_trace
from tidegate.trace.trace import Copy, Launch, Object, Provenance, Segment, Trace, lay_out

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
