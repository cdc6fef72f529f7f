"""Advice on NumPy scripts: which policy an Arena should have, and whether more RAM pays.

    the script, once for each policy, on live memory ──▶ bytes moved, time ──▶ Arena(…)

Everything is measured. Hits on resident pages are not recorded, so what another policy would have
moved cannot be told from the faults of one run.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tidegate.advice.worth import LITTLE
from tidegate.display.tables import Table
from tidegate.errors import TidegateError
from tidegate.live.arena.setup import EVICTION as DEFAULT
from tidegate.live.script.run import LEAST_ARRAY, ScriptOptions
from tidegate.record import check_script
from tidegate.units import exact_size, show_duration, show_size

EVICTIONS = (DEFAULT, "lru", "lrm", "mru", "tide")
RUNS = len(EVICTIONS) + 1  # the best policy once more, with twice the RAM
# A policy that takes so many times as long as the quickest is stopped: policies that evict the
# recent may keep a program that gathers from ending at all.
_TIMES = 4.0
_LEAST_SECONDS = 20.0


@dataclass(frozen=True)
class Measured:
    """A run of the script: bytes read and written, seconds from start to end, regions evicted."""

    moved: int
    seconds: float
    evictions: int


@dataclass(frozen=True)
class LiveAdvice:
    """What each policy did with the RAM; None was stopped. ``more``: the best one with twice it."""

    script: str
    near: int
    runs: dict[str, Measured | None]
    more: Measured

    @property
    def best(self) -> str:
        """The policy that moves least; the default if it is as good."""
        return _best(self.runs)

    @property
    def measured(self) -> Measured:
        """The run of the best policy."""
        found = self.runs[self.best]
        assert found is not None
        return found

    def sentences(self) -> list[str]:
        here, more = self.measured, self.more
        fits = "do not fit in" if here.evictions else "fit in"
        twice = show_size(2 * self.near)
        pays = more.moved < here.moved * (1 - LITTLE)
        said = f"With {twice} it moved {show_size(more.moved)}" if pays else f"{twice} move no less"
        return [
            f"Its large arrays {fits} {show_size(self.near)} of RAM.",
            f"Take the eviction policy {self.best}: it read and wrote {show_size(here.moved)}. "
            f"{said}.",
            "Each policy was measured by a run of its own.",
        ]

    def table(self) -> Table:
        rows = [
            [name, "stopped", f"over {_TIMES:g} × the quickest"]
            if run is None
            else [name, show_size(run.moved), show_duration(run.seconds * 1e9)]
            for name, run in self.runs.items()
        ]
        title = f"measured in {show_size(self.near)}"
        return Table(["eviction", "read and written", "time"], rows, title)

    def to_data(self) -> dict[str, Any]:
        return {
            "script": self.script,
            "near": self.near,
            "runs": {name: run and asdict(run) for name, run in self.runs.items()},
            "more": asdict(self.more),
            "best": self.best,
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


def advise_live(script: str, near: int, progress: Callable[[], None] = lambda: None) -> LiveAdvice:
    """Run a script under each policy and return which moves least."""
    path = check_script(script)
    if path.suffix != ".py":
        raise TidegateError(f"--live needs a Python script, such as mine.py, got {script}")
    # lrm first: it evicts the oldest, so it ends where others may not, and they have its time
    order = sorted(EVICTIONS, key=lambda name: name != "lrm")
    found: dict[str, Measured | None] = {}
    for name in order:
        quickest = min((run.seconds for run in found.values() if run), default=None)
        patience = None if quickest is None else max(_LEAST_SECONDS, _TIMES * quickest)
        found[name] = _run(path, near, name, patience)
        progress()
    more = _run(path, 2 * near, _best(found), None)
    progress()
    assert more is not None
    return LiveAdvice(script, near, {name: found[name] for name in EVICTIONS}, more)


def _best(runs: Mapping[str, Measured | None]) -> str:
    moved = {name: run.moved for name, run in runs.items() if run is not None}
    least = min(moved, key=moved.__getitem__)
    close = DEFAULT in moved and moved[DEFAULT] <= moved[least] * (1 + LITTLE)
    return DEFAULT if close else least


def _run(script: Path, near: int, eviction: str, patience: float | None) -> Measured | None:
    """Run the script in a process of its own; None if it took longer than it may."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "stats.json"
        arena = {"near": near, "eviction": eviction, "prefetch": "stream"}
        options = ScriptOptions(arena, LEAST_ARRAY, stats=str(file), quiet=True)
        begin = time.monotonic()
        try:
            # what the script prints goes to standard error: standard output is for the advice
            command = options.command(str(script), [])
            done = subprocess.run(command, stdout=2, check=False, timeout=patience)
        except subprocess.TimeoutExpired:
            return None
        seconds = time.monotonic() - begin
        if done.returncode or not file.exists():
            raise TidegateError(
                f"{script} could not be run in live memory (exit code {done.returncode}); "
                f"see: tidegate live run --eviction {eviction} {script}"
            )
        stats = json.loads(file.read_text("utf-8"))
        return Measured(stats["bytes_in"] + stats["bytes_out"], seconds, stats["evictions"])
