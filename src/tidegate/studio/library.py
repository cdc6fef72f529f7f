"""The library: the runs that the page can show, and their recordings, within a bound of memory.

Runs come from the store and from races. A recording is loaded from the store, or the run is made
once more; since runs are deterministic, the key says whether it is the same.
"""

from __future__ import annotations

import re
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import islice, product
from pathlib import Path
from typing import Any

from tidegate import units
from tidegate.errors import TidegateError
from tidegate.experiments import store
from tidegate.experiments.runs import Run
from tidegate.experiments.settings import GpuModel
from tidegate.experiments.specification import RunSpec
from tidegate.options import parse_spec
from tidegate.simulation.recorded import Recording
from tidegate.simulation.recording import Window

MEMORY = 512 << 20  # bytes of recordings that are kept
MOST_LISTED = 300  # stored runs that are read for the list, the newest

_SOURCE = re.compile(r"[^\s()=,|+:]*\.py\b")

Progress = Callable[[int], None]


@dataclass(frozen=True)
class Allowed:
    """Which files a request may name: those given on the command line, or any."""

    files: tuple[Path, ...] = ()
    any: bool = False

    def check(self, *named: Any) -> None:
        """Refuse a workload, machine or policy that names a file which was not given."""
        for text in map(str, filter(None, named)):
            for source in _SOURCE.findall(text):  # wherever it stands: it would be executed
                self._check(Path(source))
            name = Path(text.split("(")[0])
            is_file = len(name.parts) > 1 or name.suffix or name.is_file()
            if is_file and not _SOURCE.search(name.name):
                self._check(name)

    def _check(self, file: Path) -> None:
        if not self.any and file.resolve() not in [given.resolve() for given in self.files]:
            raise TidegateError(
                f"file {file} must be given on the command line, as in tidegate studio {file}; "
                "or start with --allow-files"
            )


class Library:
    """All runs that are known, by key."""

    def __init__(self, memory: int = MEMORY):
        self._memory = memory
        self._runs: dict[str, Run] = {}
        self._specs: dict[str, RunSpec] = {}
        self._lines: dict[str, dict[str, Any]] = {}  # of stored runs that were listed
        self._recordings: OrderedDict[tuple[str, Window | None], Recording] = OrderedDict()
        self._lock = threading.Lock()
        self._recording = threading.Lock()  # one run is recorded at a time: each takes memory
        self.progress: dict[str, int] = {}  # touches of recordings under way

    def add(self, spec: RunSpec, run: Run) -> None:
        """Add a run that was made here."""
        with self._lock:
            self._runs[run.key], self._specs[run.key] = run, spec

    def listed(self) -> list[dict[str, Any]]:
        """Return a line for each run that was made here, then for stored ones from the newest."""
        with self._lock:
            found = {key: describe_run(run) for key, run in reversed(self._runs.items())}
        for key in islice(store.stored_keys(), MOST_LISTED):
            if key not in self._lines and (run := store.load(key)) is not None:
                self._lines[key] = describe_run(run)
            if key in self._lines:
                found.setdefault(key, self._lines[key])
        return list(found.values())

    def run(self, key: str) -> Run:
        """Return one run. Raise TidegateError if there is none of this name."""
        found = self._runs.get(key) or store.load(key)
        if found is None:
            raise TidegateError(
                f"run must be one of the store or of a race, got '{key}'; it may be of an older "
                "version of Tidegate, run it again"
            )
        return found

    def spec(self, key: str) -> RunSpec:
        """Return what a run is made from, found again from its facts if it is a stored one."""
        if key not in self._specs:
            self._specs[key] = respecify(self.run(key))
        return self._specs[key]

    def recording(self, key: str, window: Window | None = None) -> Recording:
        """Return the recording of a run, or of a window of it; make it if need be."""
        if (kept := self._kept(key, window)) is not None:
            return kept
        spec = self.spec(key)
        with self._recording:
            if (kept := self._kept(key, window)) is not None:
                return kept
            self.progress[key] = 0
            try:
                run, recording = spec.record(window, progress=self._counts(key))
            finally:
                del self.progress[key]
            if run.key != key:
                raise TidegateError(_CHANGED)
            self._keep(key, window, recording)
        return recording

    @property
    def bytes(self) -> int:
        """Bytes of all recordings that are kept."""
        return sum(recording.bytes for recording in self._recordings.values())

    def _counts(self, key: str) -> Progress:
        def count(touches: int) -> None:
            self.progress[key] += touches

        return count

    def _kept(self, key: str, window: Window | None) -> Recording | None:
        with self._lock:
            found = self._recordings.get((key, window))
            if found is not None:
                self._recordings.move_to_end((key, window))
            return found

    def _keep(self, key: str, window: Window | None, recording: Recording) -> None:
        """Keep a recording, and drop those used longest ago while there are too many bytes."""
        with self._lock:
            self._recordings[key, window] = recording
            while len(self._recordings) > 1 and self.bytes > self._memory:
                self._recordings.popitem(last=False)


def describe_run(run: Run) -> dict[str, Any]:
    """Return a run as a line of a list."""
    s = run.summary
    shown = ("workload", "machine", "eviction", "prefetch", "placement", "near_bytes")
    counts = ("footprint_bytes", "touches", "faults", "evictions", "bytes_in", "bytes_out")
    return {
        "key": run.key,
        **{name: s[name] for name in (*shown, *counts)},
        "tiering": run.facts.get("tiering", ""),
        "middle_bytes": run.facts.get("middle_bytes", 0),
        "time_ns": run.time,
        "parts": run.parts,
        "from_store": run.from_store,
    }


_CHANGED = (
    "this run cannot be recorded: it was made from a file, a policy or a machine that is not known "
    "here or has changed since; start it again in a race"
)


def respecify(run: Run) -> RunSpec:
    """Return the specification of a stored run. Raise TidegateError unless it has the same key."""
    facts, inputs = run.facts, run.inputs
    try:
        if "tiering" in facts:
            if (tiered := _over_three_tiers(run)).key == run.key:
                return tiered
            raise TidegateError(_CHANGED)
        plain = RunSpec(
            facts["workload"],
            facts["machine"],
            eviction=facts["eviction"],
            prefetch=facts["prefetch"],
            placement=facts["placement"],
            near=facts["near_bytes"],
            geometry=facts["geometry"],
            gpu=GpuModel(
                dirty_only=inputs["dirty_only"] and facts["placement"] != "explicit",
                samples=inputs["samples"],
                observed=inputs["observed"],
                watched=inputs["watched"],
                count_scale=inputs["scale"],
            ),
        )
        for spec in _variants(plain, facts["slots"], inputs["scale"]):
            if spec.key == run.key:
                return spec
    except (TidegateError, KeyError) as error:
        raise TidegateError(_CHANGED) from error
    raise TidegateError(_CHANGED)


def _over_three_tiers(run: Run) -> RunSpec:
    """Return the specification of a stored run over three tiers."""
    facts, settings = run.facts, dict(run.inputs["settings"])
    spare = facts["slots"] * facts["page_bytes"] if settings["spare"] else 0
    return RunSpec(
        facts["workload"],
        facts["machine"],
        tiering=facts["tiering"],
        eviction=None if run.inputs["eviction"] is None else facts["eviction"],
        near=facts["near_bytes"] + spare,
        middle=facts["middle_bytes"],
    ).change(traits=run.inputs["traits"], **settings)


def _variants(spec: RunSpec, slots: int, scale: float) -> Iterable[RunSpec]:
    """Yield what the facts of a run leave open: changed slots, a changed pipeline, and whether the
    number of observed regions was given or follows from the scale.
    """
    dirty = {spec.gpu.dirty_only, False}
    bases = [spec] if scale == 1 else [_scaled(spec, scale), spec]
    for base, own, pipelined, only in product(bases, (None, slots), (None, True, False), dirty):
        yield base.change(slots=own, pipelined=pipelined, dirty_only=only)


def _scaled(spec: RunSpec, scale: float) -> RunSpec:
    """Return the specification as a scaled one of a larger workload."""
    name, options = parse_spec(str(spec.workload))
    if "bytes" in options:
        options["bytes"] = round(units.size(options["bytes"]) / scale)
    given = ", ".join(f"{option}={value}" for option, value in options.items())
    workload = f"{name}({given})"
    return spec.change(workload=workload, scale=scale, count_scale=None, observed=None)
