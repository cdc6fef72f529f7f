"""What a policy declares is checked before it runs: levels, handlers, and the arguments of verbs.

A generator: every verb and every look-up with every kind of wrong number, every handler with every
level, every level's constructor. None passes, and each refusal is one line with its place.
"""

from __future__ import annotations

import inspect
from itertools import product
from typing import Any

import pytest

from tidegate.errors import PolicyError
from tidegate.policies.interface.declaration import check_declared
from tidegate.policies.interface.events import EVENT_NAMES
from tidegate.policies.interface.memory_view import MemoryView
from tidegate.policies.interface.tier_policy import Tier, TierPolicy
from tidegate.policies.registries import eviction, placement, prefetch, tiering
from tidegate.policy import (
    Everything,
    EvictionPolicy,
    Faults,
    PlacementPolicy,
    PrefetchPolicy,
    Samples,
    TouchBits,
)
from traces import FLAT, Given, Kernel, machine, reads, run_of

# the last pages die with their launch
TRACE = Given(
    [Kernel([reads([0, 1])]), Kernel([reads([1, 2, 3])], told={"frees": ((2, 4),)})], [4], FLAT
)
KINDS = {"eviction": EvictionPolicy, "prefetch": PrefetchPolicy, "placement": PlacementPolicy}
LEVELS = (Faults(), Samples(), TouchBits(), Everything(), Everything(future=True))


def policy_of(base: type, **members: Any) -> Any:
    members |= {"victim": lambda self: min(self.resident)} if base is EvictionPolicy else {}
    return type("Mine", (base,), members)()


@pytest.mark.parametrize("family", [eviction, prefetch, placement, tiering], ids=lambda f: f.family)
def test_what_comes_with_tidegate_is_declared_well(family):
    for name in family.names():
        check_declared(family.make(name))


# Levels


@pytest.mark.parametrize("regions", [-3, 0, 1.5, "9", None, True, 10**30, float("nan"), 2**31])
def test_samples_of_a_wrong_number_of_regions(regions):
    with pytest.raises(PolicyError, match=r"Samples\(regions=…\) must be a whole number from 1"):
        Samples(regions=regions)


@pytest.mark.parametrize("future", [1, "yes", None])
def test_a_future_that_is_not_true_or_false(future):
    with pytest.raises(PolicyError, match="must be True or False"):
        Everything(future=future)


@pytest.mark.parametrize(("family", "sees"), list(product(KINDS, (None, Samples, "samples", 3))))
def test_a_level_that_is_none(family, sees):
    with pytest.raises(PolicyError, match="expected a level such as Faults"):
        run_of(TRACE, machine(), 2, **{family: policy_of(KINDS[family], sees=sees)})


def test_a_level_under_another_name():
    with pytest.raises(PolicyError, match=r"has see = Samples\(regions=100\).*write sees ="):
        check_declared(policy_of(PrefetchPolicy, see=Samples()))


# Handlers


@pytest.mark.parametrize("level", LEVELS, ids=str)
@pytest.mark.parametrize("family", KINDS)
@pytest.mark.parametrize("name", EVENT_NAMES.values())
def test_a_handler_is_called_or_refused(family, name, level):
    """It is never defined in vain."""
    calls = []
    members = {"sees": level, name: lambda self, region=0: calls.append(name)}
    if name == "victim":
        members[name] = lambda self: calls.append(name) or min(self.resident)
    if name == "on_prefetch":
        members["start"] = lambda self: self.memory.prefetch(3)
    policy = type("Mine", (KINDS[family],), {"victim": lambda s: min(s.resident), **members})
    if family != "eviction" and name != "victim":
        del policy.victim
    possible = family == "eviction" or name.startswith("on_")
    seen = isinstance(level, Samples) or name not in ("observe", "on_notification")
    if not (possible and seen):
        with pytest.raises(PolicyError) as error:
            run_of(TRACE, machine(), 2, **{family: policy()})
        assert "test_declared.py, line" in str(error.value)
        assert f"{name}()" in str(error.value)
        assert "\n" not in str(error.value)
        return
    run_of(TRACE, machine(), 2, **{family: policy()})
    assert calls or name == "on_notification"  # which needs an observed page that is used again


@pytest.mark.parametrize(
    ("base", "name", "meant"),
    [
        (EvictionPolicy, "on_evict", "on_eviction"),
        (PrefetchPolicy, "on_faults", "on_fault"),
        (PlacementPolicy, "on_lunch", "on_launch"),
        (TierPolicy, "on_touched", "on_touch"),
        (TierPolicy, "on_fault", None),
        (EvictionPolicy, "on_touch", None),
        (EvictionPolicy, "place", None),
        (PrefetchPolicy, "spill", None),
    ],
)
def test_a_handler_that_does_not_exist(base, name, meant):
    more = {"place": lambda self, page: Tier.FAR} if base is TierPolicy else {}
    policy = policy_of(base, **{**more, name: lambda self, region: None})
    with pytest.raises(PolicyError, match=rf"defines {name}\(\) .*never called") as error:
        check_declared(policy)
    assert (f"did you mean {meant}?" in str(error.value)) == (meant is not None)


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("on_fault", lambda self: None),
        ("on_fault", lambda self, a, b: None),
        ("on_launch", lambda self, *, number: None),
        ("observe", lambda self, region: None),
    ],
)
def test_a_handler_that_cannot_be_called(name, wrong):
    policy = policy_of(EvictionPolicy, sees=Samples(), **{name: wrong})
    with pytest.raises(PolicyError, match=rf"{name}\(\) must take .*test_declared.py, line"):
        check_declared(policy)


# Verbs and look-ups

WRONG = (-1, 4, 10**30, -(10**30), 2**63 - 1, 0.5, float("nan"), float("inf"), "0", None, [0])


def _verbs() -> list[str]:
    """The methods of memory that take numbers, as its class declares them."""
    found = inspect.getmembers(MemoryView, inspect.isfunction)
    return [n for n, f in found if n[0] != "_" and len(inspect.signature(f).parameters) > 1]


def _calls() -> list[tuple[str, tuple[Any, ...]]]:
    calls = []
    for name in _verbs():
        parameters = list(inspect.signature(getattr(MemoryView, name)).parameters)[1:]
        right: dict[str, Any] = {"pages": 1, "prefer": "far", "percent": 51, "accesses": 2}
        for at, wrong in product(parameters, WRONG):
            if (at, wrong) in (("prefer", None), ("percent", 4), ("accesses", 4)):
                continue
            if at == "pages" and wrong == 4:
                continue  # from page 0 on there are four
            calls.append((name, tuple(wrong if p == at else right.get(p, 0) for p in parameters)))
    return calls


def test_the_generator_finds_all_verbs():
    assert {"prefetch", "evict", "advise", "count_remote", "observe_prefetched"} <= set(_verbs())
    assert len(_calls()) > 150


@pytest.mark.parametrize("name", _verbs())
def test_wrong_arguments_are_refused(name):
    """All at once in one run: each call must raise, or the policy says that it did not."""
    level = Samples() if name in ("observe_prefetched", "count_remote") else Everything(future=True)
    passed, lines = [], []

    class Mine(PlacementPolicy):
        sees = level

        def on_fault(self, region: int) -> None:
            for verb, arguments in _calls():
                if verb != name:
                    continue
                try:
                    getattr(self.memory, verb)(*arguments)
                    passed.append((verb, arguments))
                except Exception as error:
                    lines.append(str(error))

    run_of(TRACE, machine(), 2, placement=Mine())
    assert passed == []
    assert lines
    assert not any("\n" in line for line in lines)


@pytest.mark.parametrize(
    "call", [lambda m: m.prefetch(0.5, 1.5), lambda m: m.is_resident(-1), lambda m: m.evict("0")]
)
def test_the_line_names_policy_call_file_and_line(call):
    policy = policy_of(PlacementPolicy, on_fault=lambda self, region: call(self.memory))
    with pytest.raises(PolicyError) as error:
        run_of(TRACE, machine(), 2, placement=policy)
    said = str(error.value)
    assert said.startswith("policy 'Mine' raised in on_fault(0): ")
    assert "(test_declared.py, line " in said
    assert "\n" not in said
