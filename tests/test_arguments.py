"""Every public callable refuses an argument that it does not know, and one that it would ignore."""

from __future__ import annotations

import importlib
import inspect
from concurrent.futures import ThreadPoolExecutor
from itertools import combinations
from typing import Any

import pytest

import tidegate
from tidegate import RunSpec, TidegateError, compare, run
from tidegate.errors import UnknownName
from tidegate.experiments import run_grid
from tidegate.experiments.comparison_spec import ComparisonSpec

MODULES = (
    "tidegate",
    "tidegate.analysis",
    "tidegate.compiler",
    "tidegate.experiments",
    "tidegate.live",
    "tidegate.machine",
    "tidegate.policy",
    "tidegate.workload",
    "tidegate.plugins",
    "tidegate.trace",
    "tidegate.trace.importers",
    "tidegate.workloads",
)
SMALL = "cyclic(bytes=8MiB)"


def _callables() -> dict[str, Any]:
    found = {}
    for module in MODULES:
        home = importlib.import_module(module)
        for name in getattr(home, "__all__", None) or vars(home):
            value = getattr(home, name)
            own = getattr(value, "__module__", "") or type(value).__module__
            if not name.startswith("_") and callable(value) and own.startswith("tidegate"):
                found[f"{module}.{name}"] = value
    return found


CALLABLES = _callables()


def test_the_walk_finds_what_people_use():
    assert {"tidegate.run", "tidegate.compare", "tidegate.policy.Order", "tidegate.Arena"} <= set(
        CALLABLES
    )
    assert len(CALLABLES) > 60


@pytest.mark.parametrize("name", CALLABLES)
def test_an_unknown_keyword_is_refused(name):
    """Those that take any keyword get what they need beside it."""
    call = CALLABLES[name]
    needed: tuple[Any, ...] = ()
    if call in (run, compare):
        needed = (SMALL,)
    elif name.endswith("import_trace"):
        needed = (__file__, "lackey")
    if not needed:
        try:
            parameters = inspect.signature(call).parameters.values()
        except ValueError:
            parameters = ()
        needed = tuple(None for p in parameters if p.default is p.empty and p.kind < 2)
    with pytest.raises(
        (TypeError, TidegateError), match=r"no_such_argument|keyword|abstract|takes no arg"
    ):
        call(*needed, no_such_argument=1)


def test_the_nearest_name_is_offered():
    with pytest.raises(UnknownName, match="did you mean 'eviction'"):
        RunSpec.from_settings(SMALL, {"evicton": "lru"})


# Arguments that would be ignored


GIVEN: dict[str, Any] = {
    "eviction": ["lrm"],
    "prefetch": ["none"],
    "system": ["uvm"],
    "tiering": ["bam"],
}
TOGETHER = {frozenset({"eviction", "prefetch"}), frozenset({"eviction", "tiering"})}


@pytest.mark.parametrize("pair", list(combinations(GIVEN, 2)), ids=str)
def test_two_things_to_compare_are_refused_or_combined(pair):
    given = {name: GIVEN[name] for name in pair}
    if frozenset(pair) in TOGETHER:
        assert ComparisonSpec.make(SMALL, given).runs
        return
    with pytest.raises(TidegateError, match="both given"):
        ComparisonSpec.make(SMALL, given)


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"near": "8MiB", "oversubscribe": "50%"}, "both given"),
    (
        {"system": "tm", "eviction": "lru", "prefetch": "none", "placement": "um"},
        "nothing is left of it",
    ),
    ({"middle": "8MiB"}, "without tiering"),
    ({"flush": False}, "without tiering"),
    ({"tiering": "bam", "prefetch": "none"}, "both given"),
    ({"tiering": "bam", "dirty_only": True}, "both given"),
    ({"compiled": "no"}, "compiled must be True or False"),
    ({"dirty_only": "no"}, "dirty_only must be True or False"),
    ({"pipelined": "no"}, "pipelined must be True or False"),
    ({"geometry": ""}, "geometry must be PAGE/REGION"),
    ({"slots": 10**30}, "slots must be a whole number, at most"),
    ({"scale": 1e300}, "scale must be at most"),
]


@pytest.mark.parametrize(("given", "says"), WRONG, ids=[str(given) for given, _ in WRONG])
def test_what_would_be_ignored_is_refused(given, says):
    with pytest.raises(TidegateError, match=says):
        RunSpec.from_settings(SMALL, given).prepare()


def test_workers_beside_an_executor_are_refused():
    with (
        ThreadPoolExecutor(1) as executor,
        pytest.raises(TidegateError, match="workers and executor were both given"),
    ):
        run_grid([RunSpec(SMALL)], workers=2, executor=executor)


@pytest.mark.parametrize("name", ["observed", "samples", "watched"])
def test_settings_of_observation_that_nobody_uses_are_noted(name):
    def notes(eviction: str) -> list[str]:
        spec = RunSpec(SMALL, eviction=eviction).change(**{name: 3})
        return [note for note in spec.run(cache=False).notes if "no effect" in note]

    assert notes("lrm") == [f"{name} = 3 has no effect: none of lrm, tree and um observes"]
    assert notes("lru") == []


def test_all_of_it_is_public():
    assert set(tidegate.__all__) == {name for name in tidegate.__all__ if hasattr(tidegate, name)}
