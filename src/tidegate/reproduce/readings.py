"""Readings: what a paper leaves open, and in what share of its readings a claim holds.

A paper's module declares its open points as a dictionary, option → values, the default first:

    {"lfu.remember": (False, True), "machine.pipelined": (False, True), …}

A reading chooses one value for each. There are more readings than can be run, so ``choose`` draws
some, always the same. A system depends on a few options only, so most readings share most of their
runs: a ``Variant`` is one that differs.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from functools import partial
from math import prod
from pathlib import Path
from typing import Any

from tidegate.experiments.grid import spread
from tidegate.experiments.runs import Run
from tidegate.experiments.specification import RunSpec
from tidegate.experiments.store import key_of
from tidegate.files import cache_folder
from tidegate.reproduce.ledger import Finding, Verdict

Reading = dict[str, Any]
Open = Mapping[str, Sequence[Any]]

CHUNK = 16  # variants a worker is given at a time


def choose(points: Open, count: int) -> list[Reading]:
    """The default reading, and then others drawn from all there are: the same ones every time.

    >>> choose({"a": (0, 1), "b": (0, 1, 2)}, 3)[0], len(choose({"a": (0, 1), "b": (0, 1, 2)}, 99))
    ({'a': 0, 'b': 0}, 6)
    """
    numbers = range(1, prod(len(values) for values in points.values()))
    drawn = sorted(numbers, key=lambda n: hashlib.sha256(str(n).encode()).digest())[
        : max(0, count - 1)
    ]
    return [_reading(points, n) for n in (0, *drawn)]


def _reading(points: Open, number: int) -> Reading:
    reading = {}
    for name, values in points.items():
        number, digit = divmod(number, len(values))
        reading[name] = values[digit]
    return reading


@dataclass(frozen=True)
class Variant:
    """One application under one system, with the options in force that this system depends on."""

    application: str
    system: str
    options: tuple[tuple[str, Any], ...]


def variant_of(application: str, system: str, reading: Reading, depends: Iterable[str]) -> Variant:
    """``depends``: the policies (and ``machine``) whose options matter to the system."""
    on = set(depends)
    return Variant(
        application, system, tuple((k, v) for k, v in reading.items() if k.partition(".")[0] in on)
    )


def distinct(grids: Iterable[Mapping[Any, Variant]]) -> list[Variant]:
    """All variants that differ, by application, so that each trace is made once."""
    return sorted(
        dict.fromkeys(v for grid in grids for v in grid.values()), key=lambda v: v.application
    )


def spell_policy(name: str, options: Mapping[str, Any]) -> str:
    """A policy with those of a reading's options that are its own.

    >>> spell_policy("lfu", {"lfu.bins": 8, "cp.floor": 0.1})
    'lfu(bins=8)'
    """
    own = [f"{k.partition('.')[2]}={v}" for k, v in options.items() if k.partition(".")[0] == name]
    return f"{name}({', '.join(own)})" if own else name


# Running variants


def run_variants(
    variants: Sequence[Variant],
    make: Callable[[Variant], RunSpec],
    about: str,
    *,
    workers: int | None = None,
    cache: bool = True,
    progress: Callable[[int], None] = lambda runs: None,
) -> dict[Variant, Run]:
    """Run them all, without their timelines.

    ``make`` and ``about`` (what else names a run) are the same for all.
    """
    chunks = [tuple(variants[i : i + CHUNK]) for i in range(0, len(variants), CHUNK)]
    answer = partial(_answer, make=make, about=about, cache=cache)
    answers: dict[Variant, Run] = {}
    for some in spread(
        answer, chunks, workers=workers, progress=lambda chunk: progress(len(chunk))
    ):
        answers |= some
    return answers


def _answer(
    chunk: tuple[Variant, ...], make: Callable[[Variant], RunSpec], about: str, cache: bool
) -> dict[Variant, Run]:
    """One chunk, run or fetched: a chunk is kept as one file."""
    key = key_of({"variants": [asdict(v) for v in chunk], "about": about})
    file = cache_folder() / "variants" / f"{key}.json"
    if cache:
        with suppress(OSError, ValueError, TypeError):
            return dict(zip(chunk, map(Run.from_json, json.loads(file.read_text())), strict=True))
    runs = [_slim(make(v).answer(cache=False)) for v in chunk]
    if cache:
        _keep(file, [r.to_json() for r in runs])
    return dict(zip(chunk, runs, strict=True))


def _slim(run: Run) -> Run:
    return replace(run, inputs={}, tables={}, notes=[])


def _keep(file: Path, data: list[dict[str, Any]]) -> None:
    partial = file.with_suffix(f".{os.getpid()}.part")
    with suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True)
        partial.write_text(json.dumps(data))
        os.replace(partial, file)


# What it comes to


def with_shares(findings: Iterable[Finding], tried: Iterable[Iterable[Finding]]) -> list[Finding]:
    """The findings, each with the share of readings under which it holds, and is a tie.

    ``tried``: findings by reading, those of the default readings first.
    """
    verdicts: dict[str, list[Verdict]] = defaultdict(list)
    for reading in tried:
        for f in reading:
            if f.verdict is not Verdict.NOT_MEASURED:
                verdicts[f.label].append(f.verdict)
    return [_share(f, verdicts[f.label]) if verdicts[f.label] else f for f in findings]


def _share(finding: Finding, verdicts: list[Verdict]) -> Finding:
    share, tied = (verdicts.count(v) / len(verdicts) for v in (Verdict.HOLDS, Verdict.TIE))
    return replace(finding, share=share, tied=tied, readings=len(verdicts), there=verdicts[0])
