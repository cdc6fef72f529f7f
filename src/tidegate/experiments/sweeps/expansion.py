"""Expansion: from shared keywords, axes, zipped lists and seeds to the specifications of runs.

run   × every combination of the axes × the rows of each zip × the seeds
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from tidegate.errors import TidegateError, UnknownName
from tidegate.experiments.settings import SIZES, all_settings, check_whole
from tidegate.experiments.specification import RunSpec
from tidegate.machine.machine import load_machine
from tidegate.options import expand, parse_spec, spec_name
from tidegate.policies.prefetch.together import make_prefetch
from tidegate.policies.registries import eviction, placement, prefetch, tiering
from tidegate.policies.systems import find_system
from tidegate.trace.load import is_trace_file
from tidegate.workloads.program import workloads

KEYWORDS = ("workload", *(f.name for f, _ in all_settings()))
MOST_RUNS = 10_000_000
_MOST_SEEDS = 1_000_000
_NAMED: dict[str, Any] = {
    "workload": workloads,
    "eviction": eviction,
    "prefetch": prefetch,
    "placement": placement,
    "tiering": tiering,
}


def expand_runs(
    run: Mapping[str, Any],
    axes: Mapping[str, Any],
    zips: Sequence[Mapping[str, Any]] = (),
    seeds: int | Sequence[int] = (),
) -> list[RunSpec]:
    """Return the specification of every run; refuse what is unknown, empty or contradictory.

    >>> len(expand_runs({"workload": "cyclic"}, {"near": ["1GiB", "2GiB"], "slots": [1, 8]}))
    4
    """
    _check(run, axes, zips)
    choices = [[{name: value} for value in _axis_values(name, v)] for name, v in axes.items()]
    choices += [_rows(columns) for columns in zips]
    total = 1
    for choice in choices:
        total *= len(choice)
    if total > MOST_RUNS:
        raise TidegateError(
            f"a sweep must have at most {MOST_RUNS:,} runs, got {total:,}; make several sweeps"
        )
    specs = [_specify(run, chosen) for chosen in itertools.product(*choices)]
    numbers = _numbers(seeds)
    return _repeated(specs, numbers) if numbers else specs


def _check(
    run: Mapping[str, Any], axes: Mapping[str, Any], zips: Sequence[Mapping[str, Any]]
) -> None:
    """Refuse unknown keywords, those given twice, and two that say the same thing."""
    given: list[str] = []
    for part in (run, axes, *zips):
        for name in part:
            if name not in KEYWORDS:
                raise UnknownName("keyword of a run", name, KEYWORDS)
            if name in given:
                raise TidegateError(
                    f"{name} is given twice, in [run], [axes] or [[zip]]; give it once"
                )
            given.append(name)
    if len(sizes := [name for name in SIZES if name in given]) > 1:
        raise TidegateError(
            f"{' and '.join(sizes)} are both given; they contradict one another, give one"
        )
    if "workload" not in given:
        raise TidegateError(
            'a sweep needs a workload, such as workload = ["matmul"] in [axes], got none'
        )


def _axis_values(name: str, values: Any) -> list[Any]:
    """Return the values of an axis; a text may be a sweep of options itself."""
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise TidegateError(f"axis {name} must be a list, such as [{values!r}], got {values!r}")
    found = [one for v in values for one in (expand(v) if isinstance(v, str) else [v])]
    if not found:
        raise TidegateError(f"axis {name} is empty, so the sweep has no runs; give it values")
    text, count = Counter(map(str, found)).most_common(1)[0]
    if count > 1:
        raise TidegateError(f"axis {name} has {text} twice; give each value once")
    return found


def _rows(columns: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the rows of lists that are zipped."""
    lists = {name: list(values) for name, values in columns.items() if _is_list(name, values)}
    lengths = {name: len(values) for name, values in lists.items()}
    if len(set(lengths.values())) != 1 or not min(lengths.values()):
        said = ", ".join(f"{name} has {n}" for name, n in lengths.items()) or "there are none"
        raise TidegateError(f"lists of a zip must have one length, at least 1; {said}")
    return [dict(zip(lists, row, strict=True)) for row in zip(*lists.values(), strict=True)]


def _is_list(name: str, values: Any) -> bool:
    if not isinstance(values, list | tuple):
        raise TidegateError(f"{name} of a zip must be a list, got {values!r}")
    return True


def _specify(run: Mapping[str, Any], chosen: Iterable[Mapping[str, Any]]) -> RunSpec:
    settings = dict(run)
    for part in chosen:
        settings.update(part)
    return RunSpec.from_settings(settings.pop("workload"), settings)


_LOOKED_UP = 1000  # texts: those of a sweep of seeds differ in their seeds only


def look_up(specs: Iterable[RunSpec]) -> None:
    """Refuse unknown names and options before the first run begins."""
    seen: set[tuple[str, str]] = set()
    for spec in specs:
        for field, registry in (*_NAMED.items(), ("machine", None), ("system", None)):
            given = getattr(spec, field)
            if not isinstance(given, str) or (field, given) in seen:
                continue
            seen.add((field, given))
            if len(seen) > _LOOKED_UP:
                return
            if field == "machine":
                load_machine(given)
            elif field == "system":
                find_system(given)
            elif field == "prefetch":
                make_prefetch(given)
            elif field != "workload" or not is_trace_file(given):
                registry.make(given)


# Seeds


def _numbers(seeds: Any) -> list[int]:
    if isinstance(seeds, int):
        check_whole("seeds", seeds, 1, _MOST_SEEDS)
        return list(range(seeds))
    if not isinstance(seeds, list | tuple) or len(set(seeds)) < len(seeds):
        raise TidegateError(
            f"seeds must be a number of repeats or a list of different seeds, got {seeds!r}"
        )
    for seed in seeds:
        check_whole("a seed", seed, 0, 2**31 - 1)
    return list(seeds)


def _repeated(specs: Sequence[RunSpec], seeds: Sequence[int]) -> list[RunSpec]:
    """Return every run with every seed; one that takes no seed is always the same, so once."""
    known: dict[tuple[str, str], bool] = {}
    found: list[RunSpec] = []
    for spec in specs:
        repeats = [_seeded(spec, seed, known) for seed in seeds]
        found += [spec] if repeats[0] == spec else repeats
    if not any(known.values()):
        raise TidegateError(
            "seeds were given, but no workload or policy of the sweep takes one that it does not "
            "have; leave seeds out"
        )
    return found


def _seeded(spec: RunSpec, seed: int, known: dict[tuple[str, str], bool]) -> RunSpec:
    """Return a run with this seed in all that has an option of that name and does not give it."""
    changed: dict[str, Any] = {}
    for field in _NAMED:
        given = getattr(spec, field)
        if isinstance(given, str):
            if (field, given) not in known:
                known[field, given] = _takes_seed(field, given)
            if known[field, given]:
                changed[field] = _with_option(given, f"seed={seed}")
    return replace(spec, **changed)


def _takes_seed(field: str, given: str) -> bool:
    name = spec_name(given)
    if ".parquet" in name:
        return False
    made: Any = make_prefetch(name) if field == "prefetch" else _NAMED[field].find(name)
    return "seed" in made.options() and "seed" not in parse_spec(given, made.bare)[1]


def _with_option(given: str, option: str) -> str:
    return f"{given[:-1]}, {option})" if given.endswith(")") else f"{given}({option})"
