"""What each mechanism of the driver changes: the ledger of reality without it, one at a time.

    python -m benchmarks.mechanisms

Constants stay as they were fitted with all mechanisms, so an error without one is what it explains,
not what another constant could make up for.
"""

from __future__ import annotations

import math
from collections import defaultdict

from tidegate.display.tables import Table
from tidegate.validate.play import play_programs
from tidegate.validate.points import Quantity, load_points

SETS = "ABCDG"  # F's card has the same mechanisms, and programs that take minutes
MECHANISMS = {
    "all of them": "",
    "several faults of a block at once": "near.block_faults=1",
    "µTLBs' order of service": "near.utlb_faults=0",
    "copies overlap with handling": "driver.asynchronous=false",
    "processor time per run": "driver.copy_overhead=0us",
    "runs end at faulted 4 KiB": "driver.fault_bytes=64KiB",
    "the link's time per run": "link.run_overhead=0us",
    "a cost per eviction": "driver.evict_overhead=0us",
    "a block's first service": "driver.first_overhead=0us",
    "unmapping by host (0.05 µs/KiB for all)": "driver.unmap_per_kib=0.05us",
    "the least time of a touch": "near.latency=0us",
    "256 faults in a batch, duplicates too (1024)": "driver.batch_faults=1024",
}


def main() -> None:
    """Print how far times are off by card, for each mechanism that is missing."""
    points = [p for p in load_points() if p.source.set in SETS and p.quantity is Quantity.TIME]
    machines = sorted({point.source.machine for point in points})
    rows = []
    for name, change in MECHANISMS.items():
        off = defaultdict(list)
        for machine in machines:
            given = f"{machine}({change})" if change else machine
            mine = [point for point in points if point.source.machine == machine]
            for point, value, _ in play_programs(mine, given):
                off[machine].append(abs(math.log(float(value) / float(point.measured))))  # type: ignore[arg-type]
        rows.append([name, *(_show(off[machine]) for machine in machines)])
    print(Table(["without", *machines], rows, "Times: geometric mean and worst, ×").text())


def _show(off: list[float]) -> str:
    return f"{math.exp(sum(off) / len(off)):.2f} {math.exp(max(off)):.2f}"


if __name__ == "__main__":
    main()
