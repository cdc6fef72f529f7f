"""Races and curves: comparisons that the page asks for, run by run."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

from tidegate.analysis.curves import belady_curve
from tidegate.display.figures import svg_text
from tidegate.errors import TidegateError
from tidegate.experiments.comparison import Comparison, Entry
from tidegate.experiments.comparison_spec import ComparisonSpec
from tidegate.experiments.display import failure_lines
from tidegate.experiments.specification import RunSpec
from tidegate.experiments.workload_analysis import analyze
from tidegate.options import split_outside
from tidegate.studio.jobs import Job
from tidegate.studio.library import Allowed, Library, describe_run

POLICIES = ("eviction", "prefetch", "system", "tiering")
SEVERAL = (*POLICIES, "near", "oversubscribe", "fits")
SINGLE = ("workload", "machine", "bytes", "scale", "placement", "middle", "slots")
MOST_RUNS = 400
CURVE_POINTS = 400  # of a curve that is sent
BELADY_SIZES = 24


def read_race(asked: Mapping[str, Any], allowed: Allowed) -> ComparisonSpec:
    """Return the comparison that a form asks for; every name in it is known."""
    for name in asked:
        if name not in (*SEVERAL, *SINGLE, "belady"):
            raise TidegateError(f"a race has no field '{name}'; leave it out")
    single = {name: _text(asked, name) for name in SINGLE}
    several = {name: split_outside(_text(asked, name) or "", ",") for name in SEVERAL}
    several = {name: list(filter(None, values)) for name, values in several.items()}
    if single["workload"] is None:
        raise TidegateError("workload must be given, such as matmul, got none")
    allowed.check(single["workload"], single["machine"], single["placement"])
    for name in POLICIES:
        allowed.check(*several[name])
    settings: dict[str, Any] = {n: v for n, v in single.items() if n != "workload" and v}
    if "slots" in settings:
        settings["slots"] = _whole("slots", settings["slots"])
    settings |= {name: values for name, values in several.items() if values}
    bound = bool(asked.get("belady", True))
    spec = ComparisonSpec.make(single["workload"], settings, bound)
    if len(spec.runs) > MOST_RUNS:
        raise TidegateError(f"a race must have at most {MOST_RUNS} runs, got {len(spec.runs)}")
    return spec


def race(job: Job, spec: ComparisonSpec, library: Library) -> None:
    """Run a comparison; each run that is done is in the job's rows, and in the library."""
    job.total, job.unit = len(spec.runs), "runs"
    entries: list[Entry] = []
    errors: list[TidegateError] = []
    for run_spec, entry in zip(spec.runs, spec.entries, strict=True):
        job.advance()
        try:
            run = run_spec.run(progress=job.advance)
            library.add(run_spec, run)
            entries.append(dataclasses.replace(entry, run=run))
        except TidegateError as error:
            errors.append(error)
            entries.append(dataclasses.replace(entry, failed=" ".join(str(error).split())))
        job.rows.append(_row(entries[-1]))
        job.done += 1
    if len(errors) == len(entries):
        raise errors[0]
    comparison = Comparison(entries, spec.compared)
    stored = sum(run.from_store for run in comparison.runs)
    job.result = {
        "compared": spec.compared,
        "notes": [
            *dict.fromkeys(note for run in comparison.runs for note in run.notes),
            *failure_lines(entries),
        ],
        "stored": stored,
    }
    job.figure = lambda: svg_text(comparison.plot())


def _row(entry: Entry) -> dict[str, Any]:
    """Return an entry as plain data."""
    known = {f.name: getattr(entry, f.name) for f in dataclasses.fields(entry) if f.name != "run"}
    if entry.run is None:
        return known
    return known | describe_run(entry.run)


def curves(job: Job, spec: RunSpec) -> None:
    """Analyze what a workload touches: miss-ratio curves and reuse distances."""
    job.unit = "touches"
    trace = spec.trace()
    found = analyze(trace, progress=job.advance)
    curve = found.curve
    most = int(curve.capacities[-1])
    sizes = np.unique(np.geomspace(1, most, BELADY_SIZES).astype(np.int64))
    best = belady_curve(trace, sizes.tolist(), progress=job.advance)
    keep = np.unique(np.linspace(0, len(curve.capacities) - 1, CURVE_POINTS).astype(np.int64))
    job.result = {
        "name": found.name,
        "unit_bytes": found.unit_bytes,
        "touches": found.touches,
        "distinct": found.distinct,
        "footprint_bytes": trace.footprint,
        "lru": {"bytes": curve.sizes[keep].tolist(), "ratio": curve.ratios[keep].tolist()},
        "belady": {"bytes": best.sizes.tolist(), "ratio": best.ratios.tolist()},
        "histogram": found.histogram.to_dict(as_series=False),
    }


def read_workload(asked: Mapping[str, Any], allowed: Allowed) -> RunSpec:
    """Return the specification of a workload alone."""
    names = ("workload", "bytes", "scale", "machine")
    given = {name: _text(asked, name) for name in names}
    workload = given.pop("workload")
    if workload is None:
        raise TidegateError("workload must be given, such as matmul, got none")
    allowed.check(workload, given["machine"])
    return RunSpec.from_settings(workload, {n: v for n, v in given.items() if v})


def _text(asked: Mapping[str, Any], name: str) -> str | None:
    value = asked.get(name)
    if value is None or value == "":
        return None
    if not isinstance(value, str | int | float):
        raise TidegateError(f"{name} must be a text, got {value!r}")
    return str(value).strip() or None


def _whole(name: str, text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise TidegateError(f"{name} must be a whole number, got '{text}'") from None
