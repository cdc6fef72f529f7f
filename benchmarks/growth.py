"""Do time and memory grow in step with touches and pages?

Runs of 1e6, 1e7 and 1e8 touches, and over 1e4, 1e5 and 1e6 pages, each in a process of its own. The
exponent is the slope of a straight line through log time over log size: 1 is linear. Traces are
streamed, so memory must not grow with touches.
"""

from __future__ import annotations

import numpy as np

from benchmarks.child import Report, run_in_child
from benchmarks.row import Row

PAGES = 160 * 1024  # 10 GiB
TOUCHES = (1e6, 1e7, 1e8)
SIZES = (10_000, 100_000, 1_000_000)  # pages
EXPONENT = 1.1  # at most
MEMORY = 1.1  # at most: peak at 1e8 touches over peak at 1e6


def growth() -> list[Row]:
    rows = []
    for name in ("cyclic", "zipf"):
        reports = [run_in_child(workload=_touching(name, int(touches))) for touches in TOUCHES]
        rows.append(_time(f"time over touches, {name}", reports, [r.touches for r in reports]))
        peaks = [r.peak / 1e6 for r in reports]
        against = (
            " → ".join(f"{peak:.0f}" for peak in peaks)
            + f" MB for {_sizes([r.touches for r in reports])} touches"
        )
        rows.append(
            Row(f"memory over touches, {name}", max(peaks) / peaks[0], "×", against, MEMORY)
        )
    reports = [
        run_in_child(workload=f"cyclic(bytes={64 * pages}KiB, passes=10)") for pages in SIZES
    ]
    rows.append(_time("time over pages, cyclic", reports, SIZES))
    grown = (reports[-1].peak - reports[0].peak) / (SIZES[-1] - SIZES[0])
    rows.append(
        Row(
            "memory per page",
            grown,
            "bytes",
            f"{reports[-1].peak / 1e6:.0f} MB at {SIZES[-1]:,} pages",
        )
    )
    return rows


def _touching(name: str, touches: int) -> str:
    """Return a workload over PAGES pages with about that many touches."""
    how_long = f"passes={round(touches / PAGES)}" if name == "cyclic" else f"touches={touches}"
    return f"{name}(bytes={64 * PAGES}KiB, {how_long})"


def _time(question: str, reports: list[Report], sizes: list[int] | tuple[int, ...]) -> Row:
    exponent = float(np.polyfit(np.log(sizes), np.log([r.cpu for r in reports]), 1)[0])
    seconds = " → ".join(f"{r.cpu:.2f}" for r in reports)
    return Row(question, exponent, "exponent", f"{seconds} s for {_sizes(sizes)}", EXPONENT)


def _sizes(sizes: list[int] | tuple[int, ...]) -> str:
    return ", ".join(f"{size:.0e}" for size in sizes)
