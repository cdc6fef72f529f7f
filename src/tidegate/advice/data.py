"""Advice as plain data, for programs."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from tidegate.advice.advice import Advice
from tidegate.advice.words import sentences


def to_data(advice: Advice) -> dict[str, Any]:
    """Return all that is known, with times in ns and sizes in bytes."""
    best = advice.best
    return {
        "program": advice.subject.name,
        "machine": advice.machine.name,
        "near": advice.near,
        "whole": advice.whole,
        "fits": advice.fit.fits,
        "fit": asdict(advice.fit),
        "smaller": [{"change": s.change.words, "peak": s.peak} for s in advice.smaller],
        "recommended": None if advice.recommended is None else advice.recommended.name,
        "best": None if best is None else best.name,
        "speed_up": advice.speed_up,
        "bound": advice.bound
        and {**asdict(advice.bound), "time": advice.bound.time, "limit": advice.bound.limit},
        "candidates": [_candidate(o) for o in [*advice.ranked, *advice.failed]],
        "worth": [asdict(p) for p in advice.worth.points] if advice.worth else [],
        "confidence": [asdict(v) for v in advice.confidence.variants] if advice.confidence else [],
        "causes": [{**asdict(c), "story": c.story()} for c in advice.causes],
        "words": sentences(advice),
        "notes": advice.notes,
    }


def _candidate(outcome: Any) -> dict[str, Any]:
    candidate, run = outcome.trial.candidate, outcome.run
    found = {"name": candidate.name, "family": candidate.family, "usable": candidate.usable}
    if run is None:
        return {**found, "failed": outcome.failed}
    moved = {name: run.summary[name] for name in ("bytes_in", "bytes_out")}
    return {**found, "time_ns": run.time, "parts": run.parts, "run": run.key, **moved}
