"""Readings: what a paper leaves open, and the share of its readings under which a claim holds.

A paper declares its open points, option → values, the default first:

    {"lfu.remember": (False, True), "machine.pipelined": (False, True), "SPM.density": (…), …}

A reading chooses one value for each. There are more readings than can be run, so ``choose`` draws
some, always the same. A system depends on a few options only, so most readings share most of their
runs: a ``VariedRun`` is a run that differs.
"""

from __future__ import annotations

import hashlib
import itertools
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from math import prod
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Generic, TypeVar

from tidegate.errors import TidegateError
from tidegate.experiments.runs import Run
from tidegate.experiments.specification import RunSpec
from tidegate.experiments.sweeps.parts import FIGURES
from tidegate.experiments.sweeps.places import Folder
from tidegate.experiments.sweeps.sweep import Sweep
from tidegate.files import cache_folder
from tidegate.options import Configurable
from tidegate.papers.ledger import Finding, Verdict
from tidegate.papers.results import Key
from tidegate.papers.setup import Setup

S = TypeVar("S", bound=Setup)
Reading = dict[str, Any]
Points = Mapping[str, Sequence[Any]]


@dataclass(frozen=True)
class VariedRun:
    """One run of a grid, with the options in force that its system depends on."""

    key: Key
    options: tuple[tuple[str, Any], ...]


@dataclass(frozen=True)
class Readings(Generic[S]):
    """What a paper leaves open.

    ``depends``: the owners of options (policies, ``machine``) that matter to a system, and
    ``always`` those that matter to all; an application's options matter to its own runs.
    ``specify``: the specification of a run of the grid under
    a reading's options. ``reduce``: the setup with which readings are tried. ``includes``: whether
    a run of the grid belongs to the reading of that number. ``remark``: added to the report's note.
    """

    points: Points
    always: tuple[str, ...]
    depends: Mapping[str, tuple[str, ...]]
    specify: Callable[[S, Key, Reading], Any]
    reduce: Callable[[S], S] = lambda setup: setup
    includes: Callable[[S, Key, int], bool] = lambda setup, key, number: True
    remark: str = ""

    def grids(self, setup: S, keys: Iterable[Key]) -> list[dict[Key, VariedRun]]:
        """Return each reading as a grid of variants."""
        every = list(keys)
        return [
            {key: self.variant(key, reading) for key in every if self.includes(setup, key, number)}
            for number, reading in enumerate(choose(self.points, setup.readings))
        ]

    def variant(self, key: Key, reading: Reading) -> VariedRun:
        """Return the run under a reading, with the options of its application and those that its
        system depends on.
        """
        # an application of a size is named by its first word
        own = key[0][0] if isinstance(key[0], tuple) else key[0]
        owners = {*self.always, *self.depends.get(key[1], ()), own}
        given = ((k, v) for k, v in reading.items() if k.partition(".")[0] in owners)
        return VariedRun(key, tuple(given))

    def specification(self, variant: VariedRun, setup: S) -> Any:
        """Return the run specification of a variant."""
        return self.specify(setup, variant.key, dict(variant.options))

    def note(self, setup: S) -> str:
        """Return a sentence for the report."""
        count = len(choose(self.points, setup.readings))
        return f"Open readings: {count} combinations of {', '.join(self.points)}{self.remark}."


def choose(points: Points, count: int) -> list[Reading]:
    """Return the default reading and ``count - 1`` others, drawn the same way every time.

    >>> choose({"a": (0, 1), "b": (0, 1, 2)}, 3)[0], len(choose({"a": (0, 1), "b": (0, 1, 2)}, 99))
    ({'a': 0, 'b': 0}, 6)
    """
    total = prod(len(values) for values in points.values())
    drawn = {0: None}
    for i in itertools.count():
        if len(drawn) >= min(count, total):
            break
        digest = hashlib.sha256(str(i).encode()).digest()
        drawn.setdefault(int.from_bytes(digest) % total)
    return [_reading(points, n) for n in drawn]


def _reading(points: Points, number: int) -> Reading:
    reading = {}
    for name, values in points.items():
        number, digit = divmod(number, len(values))
        reading[name] = values[digit]
    return reading


def distinct(grids: Iterable[Mapping[Key, VariedRun]]) -> list[VariedRun]:
    """Return all variants that differ, by application, so that each trace is made once."""
    every = dict.fromkeys(v for grid in grids for v in grid.values())
    return sorted(every, key=lambda v: (str(v.key[0]), v.key[2]))


def own_options(owner: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return those of a reading's options that belong to one policy, by their own names."""
    split = ((k.partition("."), v) for k, v in options.items())
    return {name: v for (of, _, name), v in split if of == owner}


def spell_policy(policy: str, options: Mapping[str, Any]) -> str:
    """Return a policy with more options; those it has already are kept.

    >>> spell_policy("lfu", {"bins": 8}), spell_policy("rdm(partial=no)", {"threshold": 0.1})
    ('lfu(bins=8)', 'rdm(partial=no, threshold=0.1)')
    """
    more = ", ".join(f"{k}={v}" for k, v in options.items())
    if not more:
        return policy
    return f"{policy[:-1]}, {more})" if policy.endswith(")") else f"{policy}({more})"


def counts_at(
    scale: float, policy: type[Configurable], options: Mapping[str, Any]
) -> dict[str, Any]:
    """Return a policy's options with those that count regions at this scale, given or default.

    >>> from tidegate.policies.prefetch.fdp import FDP
    >>> counts_at(1 / 8, FDP, {"every": 4}), counts_at(1 / 8, FDP, {"enough": 64})
    ({'every': 4, 'enough': 2}, {'enough': 8})
    """
    scaled = dict(options)
    for name, option in policy.options().items():
        if option.counts_regions and scale != 1:
            scaled[name] = max(1, round(scale * scaled.get(name, option.default)))
    return scaled


# Running variants


def run_variants(
    variants: Mapping[VariedRun, RunSpec],
    *,
    shares_traces: bool = True,
    workers: int | None = None,
    cache: bool = True,
    progress: Callable[[int], None] = lambda runs: None,
) -> dict[VariedRun, Run]:
    """Run all variants, without timelines: a sweep whose store is in the cache folder."""
    with ExitStack() as stack:
        place = Folder(cache_folder() / "variants")
        if not cache or not place.is_writable():
            place = Folder(Path(stack.enter_context(TemporaryDirectory())))
        sweep = Sweep(variants.values(), place)
        known = set(sweep.results.known())
        swept = sweep.run(
            workers=workers, detail=FIGURES, shares_traces=shares_traces, progress=progress
        )
        if swept.failures:
            raise TidegateError(f"{swept.failures[0][1]}, in the run of {swept.failures[0][0]}")
        runs = [replace(run, from_store=run.key in known) for run in sweep.runs()]
        return dict(zip(variants, runs, strict=True))


# Shares


def with_shares(findings: Iterable[Finding], tried: Iterable[Iterable[Finding]]) -> list[Finding]:
    """Return the findings, each with the shares of readings under which it holds and is a tie.

    ``tried``: findings by reading, those of the default reading first.
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
