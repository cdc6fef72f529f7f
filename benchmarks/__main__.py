"""``python -m benchmarks``: every question, one table.

``python -m benchmarks NAME…`` runs some of them.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import time
from dataclasses import asdict
from pathlib import Path

import numba
import numpy
from rich.console import Console
from rich.table import Table

import tidegate
from benchmarks.flat_lru import flat_lru
from benchmarks.growth import growth
from benchmarks.hit_path import hit_path
from benchmarks.importing import importing
from benchmarks.large_matmul import large_matmul
from benchmarks.leu import leu
from benchmarks.policy_events import policy_events
from benchmarks.python_lru import python_lru
from benchmarks.python_policy import python_policy
from benchmarks.recording import recording
from benchmarks.reproductions import SLOW
from benchmarks.row import Benchmark, Row
from benchmarks.start_up import start_up
from benchmarks.studio import studio
from benchmarks.sweeps import SWEEPS
from benchmarks.tiers import tiers

BENCHMARKS: dict[str, Benchmark] = {
    b.__name__: b
    for b in (
        hit_path,
        flat_lru,
        policy_events,
        python_policy,
        python_lru,
        start_up,
        growth,
        large_matmul,
        tiers,
        leu,
        importing,
        recording,
        studio,
    )
}
BY_NAME: dict[str, Benchmark] = BENCHMARKS | {b.__name__: b for b in (*SWEEPS, *SLOW)}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument(
        "name",
        nargs="*",
        help=f"some of: {', '.join(BY_NAME)}; if none is given, those up to {list(BENCHMARKS)[-1]}",
    )
    parser.add_argument("--json", type=Path, help="write the figures to this file too")
    asked = parser.parse_args()
    if unknown := [name for name in asked.name if name not in BY_NAME]:
        parser.error(f"there is no benchmark {unknown[0]}; there are {', '.join(BY_NAME)}")
    facts = machine()
    print("\n".join(f"{what}: {value}" for what, value in facts.items()), flush=True)
    console, rows, begin = Console(), [], time.perf_counter()
    with console.status("") as status:
        for name in asked.name or BENCHMARKS:
            status.update(f"{name} …")
            rows += BY_NAME[name]()
    Console(width=max(console.width, 150)).print(table(rows))
    print(f"{time.perf_counter() - begin:.0f} s in all")
    if asked.json:
        figures = {"machine": facts, "rows": [asdict(r) | {"reached": r.reached} for r in rows]}
        asked.json.write_text(json.dumps(figures, indent=2) + "\n")


def machine() -> dict[str, str]:
    """Return the date, the processor and the software, on which the figures depend."""
    models = [
        line.split(":")[1].strip()
        for line in _read("/proc/cpuinfo").splitlines()
        if line.startswith("model name")
    ]
    processor = models[0] if models else platform.processor()
    load = ", ".join(f"{share:.1f}" for share in os.getloadavg())
    return {
        "date": datetime.date.today().isoformat(),
        "processor": f"{processor}, {os.cpu_count()} cores, load {load}",
        "software": f"Python {platform.python_version()}, Numba {numba.__version__}, "
        f"NumPy {numpy.__version__}, tidegate {tidegate.__version__}",
    }


def table(rows: list[Row]) -> Table:
    made = Table("question", "figure", "target", "reached", "against", title="benchmarks")
    for r in rows:
        target = "" if r.target is None else f"{'≥' if r.at_least else '≤'} {r.target:g}"
        reached = {None: "", True: "[green]yes", False: "[red]no"}[r.reached]
        made.add_row(r.question, f"{r.figure:.3g} {r.unit}", target, reached, r.against)
    return made


def _read(path: str) -> str:
    return Path(path).read_text() if Path(path).exists() else ""


if __name__ == "__main__":
    main()
