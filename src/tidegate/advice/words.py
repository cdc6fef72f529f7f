"""Advice in words and tables, for people, and as data, for programs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from tidegate.advice.advice import ALIKE, CLOSE, Advice
from tidegate.advice.candidates import ANYWHERE, BASELINE
from tidegate.advice.confidence import SPREAD
from tidegate.advice.simulate import Outcome
from tidegate.display.tables import Cell, ShareBar, Table
from tidegate.trace.ops import OpTrace
from tidegate.units import show_duration, show_size
from tidegate.validate.ledger import saved_cards


def sentences(advice: Advice) -> list[str]:
    """Return the advice in the order in which people ask: fit, worth, what to do, how sure."""
    return [
        *_fit(advice),
        *_worth(advice),
        *_what_to_do(advice),
        *_another_driver(advice),
        *_how_far(advice),
        *_how_sure(advice),
        _which_machine(advice),
        *_stopped(advice),
    ]


def _fit(advice: Advice) -> Iterator[str]:
    fit = advice.fit
    kinds = ", ".join(f"{kind} {show_size(size)}" for kind, size in fit.kinds.items())
    needs = f"It needs {show_size(fit.peak)} at its peak"
    where = f", {fit.moment}" if fit.moment else ""
    if fit.fits:
        yield f"It fits. {needs}{where}: {kinds}. Near memory has {show_size(fit.near)}."
        return
    yield (
        f"It does not fit. {needs}{where}: {kinds}. Near memory has {show_size(fit.near)}, "
        f"{show_size(fit.lacking)} too little."
    )
    if advice.smaller:
        made = ", ".join(
            f"{s.change.words}: {show_size(s.peak)}{' (fits)' if s.peak <= fit.near else ''}"
            for s in advice.smaller
        )
        yield f"Recorded again with less: {made}."


def _worth(advice: Advice) -> Iterator[str]:
    if advice.worth is None or len(advice.worth.points) < 2:
        return
    points, knee = advice.worth.points, advice.worth.knee
    here = next((p for p in points if p.near == advice.near), points[0])
    assert knee is not None
    steps = [
        f"{show_size(p.near)}: {here.time / p.time:.2f} × as fast"
        for p in points
        if p.near > here.near and p.near <= knee.near
    ]
    beyond = f"more than {show_size(knee.near)} gains nothing"
    if knee.near <= here.near:
        yield "More near memory gains nothing."
    else:
        yield f"What more near memory is worth: {'; '.join(steps)}; {beyond}."


def _what_to_do(advice: Advice) -> Iterator[str]:
    if advice.fit.fits:
        yield "There is nothing to do: leave it to the driver, or allocate it on the GPU."
        return
    if advice.baseline is None or advice.best is None:
        return
    base = show_duration(advice.baseline.time)
    if advice.recommended is None:
        yield (
            f"Leave it to the driver: managed memory takes {base}, and nothing that was tried is "
            f"faster by more than {CLOSE:.0%}."
        )
        return
    best = advice.recommended
    candidate = best.trial.candidate
    yield (
        f"Take {best.name}: {candidate.does}. {show_duration(best.time)} in place of {base} with "
        f"the plain driver, {advice.speed_up:.2f} × as fast."
    )
    trace = advice.subject.trace(advice.machine)
    if isinstance(trace, OpTrace) and trace.ops.is_trained and not advice.subject.recomputed:
        yield (
            "Recomputation was not tried: record a script that has torch.utils.checkpoint around "
            "its blocks (tidegate record torch), and ask for advice on that, too."
        )


def _another_driver(advice: Advice) -> Iterator[str]:
    """Name the system that would be faster than the advice if there were a driver with it."""
    systems = [o for o in advice.ranked if not o.trial.candidate.usable]
    if advice.best is None or not systems or systems[0].time >= advice.best.time:
        return
    alike = [o for o in systems if o.time <= systems[0].time * (1 + ALIKE)]
    best = next((o for o in alike if o.name == ANYWHERE), alike[0])
    yield (
        f"{best.name} would take {show_duration(best.time)}, but needs a driver that is not to be "
        "had."
    )


def _how_far(advice: Advice) -> Iterator[str]:
    if advice.bound is None or advice.best is None or advice.fit.fits:
        return
    bound = advice.bound
    yield (
        f"No way to run it here takes less than {show_duration(bound.time)}, which is "
        f"{bound.time / advice.best.time:.0%} of the best: it computes for "
        f"{show_duration(bound.compute)}, and the link needs {show_duration(bound.link)} for the "
        f"{show_size(bound.bytes_in)} in and {show_size(bound.bytes_out)} out that cannot be "
        "avoided."
    )


def _how_sure(advice: Advice) -> Iterator[str]:
    if advice.confidence is None:
        return
    c = advice.confidence
    verdict = (
        "so the advice stands"
        if c.least > 1 + CLOSE
        else "so it may not pay; measure it on your machine"
    )
    yield (
        f"With the machine's constants {SPREAD:.0%} larger or smaller it is {c.least:.2f} to "
        f"{c.most:.2f} × as fast as the driver, {verdict}."
    )


def _which_machine(advice: Advice) -> str:
    """Return which machine file was used and how well it is validated."""
    name = advice.machine.name
    card = saved_cards().get(name)
    if card is None:
        return (
            f"All times are simulated, with the machine file {name}, which was never held against "
            "a card; 'tidegate calibrate' measures yours."
        )
    return (
        f"All times are simulated, with the machine file {name}, which was held against a card: "
        f"{card.words} (tidegate validate --card {name})."
    )


def _stopped(advice: Advice) -> Iterator[str]:
    if not advice.whole:
        done = len(advice.outcomes)
        yield f"Stopped: this is what {done} simulated candidates say; the rest is not known."


def tables(advice: Advice) -> list[Table]:
    """Return the candidates, the curve, the variants and the causes, as far as they are known."""
    found = [_candidates(advice)] if advice.outcomes else []
    if advice.worth is not None and advice.worth.points:
        slowest = max(p.time for p in advice.worth.points)
        rows: list[list[Cell]] = [
            [show_size(p.near), show_duration(p.time), p.name, ShareBar(p.time / slowest)]
            for p in advice.worth.points
        ]
        found.append(Table(["near memory", "time", "with", ""], rows, "what memory is worth"))
    if advice.confidence is not None:
        variants = [[v.name, f"{v.speed_up:.2f}×"] for v in advice.confidence.variants]
        found.append(Table(["if differs", "over the driver"], variants, "how sure it is"))
    if advice.causes:
        costs = [[c.name, show_duration(c.cost), c.story()] for c in advice.causes]
        title = "what costs most with the plain driver"
        found.append(Table(["object", "cost", "story"], costs, title, left=1))
    return found


def _candidates(advice: Advice) -> Table:
    columns = ["", "candidate", "time", "over uvm", "moved in", "moved out", "kind", ""]
    slowest = max((o.time for o in advice.ranked), default=1.0)
    rows = [_row(advice, o, slowest) for o in advice.ranked]
    rows += [["", o.name, "–", "", "", "", o.failed, ""] for o in advice.failed]
    title = (
        f"{advice.subject.name} in {show_size(advice.near)} of near memory, {advice.machine.name}"
    )
    return Table(columns, rows, title, left=2, drop=["kind", "moved out", "moved in"])


def _row(advice: Advice, outcome: Outcome, slowest: float) -> list[Cell]:
    assert outcome.run is not None
    candidate, figures = outcome.trial.candidate, outcome.run.summary
    over = "" if advice.baseline is None else f"{advice.baseline.time / outcome.time:.2f}×"
    chosen = advice.recommended is not None and outcome.name == advice.recommended.name
    return [
        "*" if chosen else "",
        outcome.name,
        show_duration(outcome.time),
        "" if outcome.name == BASELINE else over,
        show_size(figures["bytes_in"]),
        show_size(figures["bytes_out"]),
        candidate.family if candidate.usable else f"{candidate.family}, needs another driver",
        ShareBar(outcome.time / slowest),
    ]


def to_data(advice: Advice) -> dict[str, Any]:
    """Return all that is known, with times in ns and sizes in bytes."""
    best = advice.best
    return {
        "program": advice.subject.name,
        "machine": advice.machine.name,
        "validation": asdict(card) if (card := saved_cards().get(advice.machine.name)) else None,
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
