"""Advice on NumPy scripts: which policy an Arena should have, and how much RAM.

    the script, once, in a quarter of the RAM ──▶ its faults as a trace ──▶ policies × sizes
                                                                        ──▶ bytes moved ──▶ Arena(…)

Hits on resident pages are not recorded, so the recording is made with less RAM than is asked about:
what hits there is near under most policies with more.
"""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tidegate.advice.worth import LITTLE
from tidegate.display.tables import Table
from tidegate.errors import TidegateError
from tidegate.experiments.grid import attempt_grid
from tidegate.experiments.runs import Run
from tidegate.experiments.settings import GpuModel
from tidegate.experiments.specification import RunSpec
from tidegate.live.arena.setup import EVICTION as DEFAULT
from tidegate.live.script.run import LEAST_ARRAY, ScriptOptions
from tidegate.record import check_script
from tidegate.trace.file import TraceFile
from tidegate.units import exact_size, show_size

EVICTIONS = (DEFAULT, "lru", "lrm", "mru", "tournament")
_RECORDED_SHARE = 4
_LEAST = 8 << 20  # bytes of RAM for a recording
_FACTORS = (0.5, 1.0, 2.0, 4.0)  # of the RAM that was asked about


@dataclass(frozen=True)
class LiveAdvice:
    """Bytes that policies move at each size."""

    script: str
    near: int
    footprint: int
    moved: dict[int, dict[str, int]]  # by size, by eviction policy

    @property
    def best(self) -> str:
        """The policy that moves least with the RAM at hand; the default if it is as good."""
        here = self.moved[self.near]
        least = min(here, key=here.__getitem__)
        close = DEFAULT in here and here[DEFAULT] <= here[least] * (1 + LITTLE)
        return DEFAULT if close else least

    @property
    def enough(self) -> int:
        """The RAM beyond which the best policy moves hardly less."""
        least = min(min(row.values()) for row in self.moved.values())
        return next(
            near
            for near, row in sorted(self.moved.items())
            if min(row.values()) <= least * (1 + LITTLE)
        )

    def sentences(self) -> list[str]:
        moved = show_size(self.moved[self.near][self.best])
        fits = "fits in" if self.footprint <= self.near else "does not fit in"
        more = (
            "More RAM moves hardly less."
            if self.enough <= self.near
            else f"With {show_size(self.enough)} it would move "
            f"{show_size(min(self.moved[self.enough].values()))}; more RAM moves hardly less."
        )
        return [
            f"It uses {show_size(self.footprint)} of large arrays, which {fits} "
            f"{show_size(self.near)} of RAM.",
            f"Take the eviction policy {self.best}: {moved} are read and written. {more}",
            "By the faults of one run; what was used and near all along is not recorded.",
        ]

    def table(self) -> Table:
        rows = [
            [show_size(near), *(show_size(row[name]) if name in row else "–" for name in EVICTIONS)]
            for near, row in sorted(self.moved.items())
        ]
        return Table(["RAM", *EVICTIONS], rows, "bytes read and written, by eviction policy")

    def to_data(self) -> dict[str, Any]:
        return {
            "script": self.script,
            "near": self.near,
            "footprint": self.footprint,
            "moved": {str(near): row for near, row in self.moved.items()},
            "best": self.best,
            "enough": self.enough,
            "words": self.sentences(),
        }

    def code(self) -> str:
        """Return the code of an Arena as it is advised."""
        return _CODE.format(script=self.script, near=exact_size(self.near), eviction=self.best)


_CODE = '''"""Arrays larger than RAM. Made by tidegate advise for {script}."""

import numpy as np

import tidegate

arena = tidegate.Arena(near="{near}", eviction="{eviction}", prefetch="stream")
big = arena.empty((1 << 20, 64), np.float32)  # in place of np.empty
# or the script as it is:
#   tidegate live run --near {near} --eviction {eviction} --prefetch stream {script}
'''


DIRTY_ONLY = GpuModel(dirty_only=True)  # as live memory writes back


def advise_live(
    script: str,
    near: int,
    cache: bool = True,
    progress: Callable[[RunSpec], None] = lambda spec: None,
) -> LiveAdvice:
    """Run a script once and return which policy moves least."""
    path = check_script(script)
    if path.suffix != ".py":
        raise TidegateError(f"--live needs a Python script, such as mine.py, got {script}")
    with tempfile.TemporaryDirectory() as folder:
        trace = _record(path, max(_LEAST, near // _RECORDED_SHARE), Path(folder))
        sizes = [int(near * factor) for factor in _FACTORS]
        keys = [(size, name) for size in sizes for name in EVICTIONS]
        specs = [
            RunSpec(trace, near=size, eviction=name, prefetch="stream", slots=1, gpu=DIRTY_ONLY)
            for size, name in keys
        ]
        runs = attempt_grid(specs, workers=1, cache=cache, progress=progress)
        return LiveAdvice(script, near, trace.footprint, _moved(keys, runs))


def _moved(
    keys: Sequence[tuple[int, str]], runs: Sequence[Run | TidegateError]
) -> dict[int, dict[str, int]]:
    found: dict[int, dict[str, int]] = {}
    for (near, name), run in zip(keys, runs, strict=True):
        if isinstance(run, TidegateError):
            raise run
        moved = run.summary["bytes_in"] + run.summary["bytes_out"]
        found.setdefault(near, {})[name] = moved
    return found


def _record(script: Path, near: int, folder: Path) -> TraceFile:
    """Run the script in live memory, in a process of its own, and return its trace."""
    made = folder / "live.parquet"
    arena = {"near": near, "eviction": "lru", "prefetch": "none"}
    options = ScriptOptions(arena, LEAST_ARRAY, record=str(made), quiet=True)
    # what the script prints goes to standard error: standard output is for the advice
    done = subprocess.run(options.command(str(script), []), stdout=2, check=False)
    if done.returncode or not made.exists():
        raise TidegateError(
            f"{script} could not be recorded in live memory (exit code {done.returncode}); "
            f"see: tidegate live record {script}"
        )
    return TraceFile(made)
