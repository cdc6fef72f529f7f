"""Marks: the books as they are in each bin of a recording, for charts beside its layers."""

from __future__ import annotations

from typing import Any

from tidegate.compiled.jit import jit_bare
from tidegate.simulation.recording import mark_row

_MARKS = """
    time touches faults batches evictions pages_in pages_written_back pages_prefetched pages_unused
    remote_bytes frames_used running fault_handling transfer_in transfer_out policy_overhead
    link_in_time link_out_time
"""
MARKS = tuple(_MARKS.split())


@jit_bare
def mark(memory: Any) -> None:
    """Keep the books of now in the bin of now; without a recording, do nothing."""
    books = memory.books[0]
    row = mark_row(memory, books.touches)
    if row < 0:
        return
    to = memory.marks[row]
    to[0], to[1], to[2], to[3] = books.front, books.touches, books.faults, books.batches
    to[4], to[5], to[6] = books.evictions, books.pages_in, books.pages_written_back
    to[7], to[8], to[9] = books.pages_prefetched, books.pages_unused, books.remote_bytes
    to[10], to[11], to[12] = books.frames_used, books.running, books.fault_handling
    to[13], to[14], to[15] = books.transfer_in, books.transfer_out, books.policy_overhead
    to[16], to[17] = books.link_in_time, books.link_out_time
