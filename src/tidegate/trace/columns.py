"""Columns: a trace's touches as one flat buffer, which several processes can map and share.

    segment, segment, …   each: starts, page, bytes, reference, write, one after another
    index                 JSON: each launch, and where its segments are
    length of the index   8 bytes

A Parquet file of a trace is made to be kept and exchanged; decoding it takes longer than making
most traces anew. Columns are made to be read in place, by the same machine and the same code.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import astuple, fields, replace
from typing import Any

import numpy as np

from tidegate.trace.trace import Copy, Launch, Segment, Trace

_COLUMNS: dict[str, np.dtype[Any]] = {
    "starts": np.dtype(np.int64),
    "page": np.dtype(np.int32),
    "bytes": np.dtype(np.int32),
    "reference": np.dtype(np.int16),
    "write": np.dtype(np.uint8),
}
BYTES_PER_TOUCH = sum(kind.itemsize for name, kind in _COLUMNS.items() if name != "starts")
_ALIGNED = 8  # bytes: where every segment begins
_OWN = [f.name for f in fields(Launch) if f.name not in ("segments", "copies", "frees")]


def columns_of(trace: Trace) -> Iterator[bytes]:
    """Yield the buffer of a trace, piece by piece."""
    index, at = [], 0
    for launch in trace.launches():
        places = []
        for s in launch.segments:
            content = b"".join(getattr(s, name).tobytes() for name in _COLUMNS)
            content += bytes(-len(content) % _ALIGNED)
            yield content
            places.append((at, s.blocks, s.touches))
            at += len(content)
        told = {name: getattr(launch, name) for name in _OWN}
        copies = [astuple(copy) for copy in launch.copies]
        index.append([told, copies, launch.frees, places])
    text = json.dumps(index).encode()
    yield text + len(text).to_bytes(8, "little")


class ColumnTrace(Trace):
    """A trace whose touches are read from a buffer; all else is as in the trace it was made from.

    A run has the same key with both.
    """

    def __init__(self, trace: Trace, buffer: Any):
        self.name, self.geometry, self.objects = trace.name, trace.geometry, trace.objects
        self.provenance, self.notes, self.plan = trace.provenance, trace.notes, trace.plan
        self.first_touch, self._footprint = trace.first_touch, trace.footprint
        self._identity, self._code_dependencies = trace.identity(), trace.code_dependencies()
        self._launches = [
            replace(launch, segments=tuple(launch.segments)) for launch in _read(buffer)
        ]
        self.about_touches = sum(s.touches for launch in self._launches for s in launch.segments)

    def launches(self) -> Iterator[Launch]:
        return iter(self._launches)

    @property
    def footprint(self) -> int:
        return self._footprint

    def identity(self) -> dict[str, Any]:
        return self._identity

    def code_dependencies(self) -> tuple[object, ...]:
        return self._code_dependencies


def _read(buffer: Any) -> Iterator[Launch]:
    view = memoryview(buffer)
    end = len(view) - 8
    length = int.from_bytes(view[end:], "little")
    if not 0 <= length <= end:
        raise ValueError("the buffer does not end with an index")
    for told, copies, frees, places in json.loads(bytes(view[end - length : end])):
        yield Launch(
            segments=(_segment(buffer, *place) for place in places),
            copies=tuple(Copy(*copy) for copy in copies),
            frees=tuple((first, end) for first, end in frees),
            **told,
        )


def _segment(buffer: Any, at: int, blocks: int, touches: int) -> Segment:
    columns = {}
    for name, kind in _COLUMNS.items():
        count = blocks + 1 if name == "starts" else touches
        columns[name] = np.frombuffer(buffer, kind, count, at)
        at += count * kind.itemsize
    return Segment(**columns)
