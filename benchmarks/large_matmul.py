"""Does a 10 GB application run in little memory?

A whole matrix multiplication of 10 GB. Belady reads the trace first and keeps 4 bytes per touch, so
its memory does grow with the trace; it is here for information.
"""

from __future__ import annotations

from benchmarks.child import run_in_child
from benchmarks.row import Row

WORKLOAD = "matmul(bytes=10GB)"
MOST = 1.5  # GB


def large_matmul() -> list[Row]:
    rows = []
    for eviction, target in (("lrm", MOST), ("belady", None)):
        report = run_in_child(workload=WORKLOAD, eviction=eviction)
        against = (
            f"{report.touches / 1e6:.0f} M touches in {report.wall:.1f} s: "
            f"{report.touches / report.wall / 1e6:.0f} M touches/s with making the trace"
        )
        rows.append(
            Row(
                f"10 GB matmul under {eviction}: peak memory",
                report.peak / 1e9,
                "GB",
                against,
                target,
            )
        )
    return rows
