"""A policy that raises or asks for the impossible ends the run with one line that says who, in
which call, and where.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from tidegate.errors import PolicyError
from tidegate.policies.registries import eviction
from tidegate.policy import EvictionPolicy, PlacementPolicy, PrefetchPolicy
from traces import FLAT, Given, Kernel, flat, machine, one_block, reads, run_of

# regions 0 to 3, two launches
TRACE = Given([Kernel([reads([0, 1])]), Kernel([reads([1, 2, 3])])], [4], FLAT)
FAMILIES = {"eviction": EvictionPolicy, "prefetch": PrefetchPolicy, "placement": PlacementPolicy}


class FIFO(EvictionPolicy):
    """What the broken eviction policies below do while they work."""

    def on_fault(self, region: int) -> None:
        if region not in self.order:
            self.order.move_to_tail(region)

    def on_eviction(self, region: int) -> None:
        self.order.remove(region)

    def victim(self) -> int:
        return self.order.head


def broken(family: str, method: str, does: Any) -> Any:
    """A policy that does this in its method; other methods are those of a policy that works."""
    base = FIFO if family == "eviction" else FAMILIES[family]
    return type("Broken", (base,), {method: does, "name": "broken"})()


def line(error: pytest.ExceptionInfo[PolicyError]) -> str:
    """The line, without the place at its end, which must be there if the policy raised."""
    text = str(error.value)
    assert "\n" not in text
    said, place, _ = text.partition(" (test_misbehaviour.py, line ")
    assert bool(place) == (" raised in " in text)
    return said


def run_with(family: str, policy: Any, trace: Any = TRACE, frames: int = 2, **how: Any) -> Any:
    return run_of(trace, machine(), frames, **{family: policy}, **how)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize(
    ("method", "number"),
    [("on_fault", 1), ("on_eviction", 0), ("on_launch", 1), ("start", None), ("finished", None)],
)
def test_a_method_that_raises_is_named_with_its_region(family, method, number):
    def raises(self: Any, given: int | None = None) -> None:
        if given == number:
            raise ValueError("it is Tuesday\nand more of it")
        if family == "eviction" and method in ("on_fault", "on_eviction"):
            getattr(FIFO, method)(self, given)

    with pytest.raises(PolicyError) as error:
        run_with(family, broken(family, method, raises))
    where = f"{method}({'' if number is None else number})"
    assert line(error) == f"policy 'broken' raised in {where}: ValueError: it is Tuesday"
    assert isinstance(error.value.__cause__, ValueError)


@pytest.mark.parametrize("family", FAMILIES)
def test_on_prefetch_too(family):
    def start(self: Any) -> None:
        self.memory.prefetch(2)

    def raises(self: Any, region: int) -> None:
        raise KeyError(region)

    policy = broken(family, "on_prefetch", raises)
    type(policy).start = start
    with pytest.raises(PolicyError) as error:
        run_with(family, policy)
    assert line(error) == "policy 'broken' raised in on_prefetch(2): KeyError: 2"


def test_a_victim_that_raises():
    def raises(self: Any) -> int:
        raise RuntimeError

    with pytest.raises(PolicyError) as error:
        run_with("eviction", broken("eviction", "victim", raises))
    assert line(error) == "policy 'broken' raised in victim(): RuntimeError: no message"


def test_the_policy_that_raised_is_the_one_that_is_named():
    def raises(self: Any, region: int) -> None:
        raise ValueError("me")

    second = broken("placement", "on_fault", raises)
    type(second).name = "second"
    with pytest.raises(PolicyError, match="policy 'second' raised"):
        run_of(TRACE, machine(), 2, eviction=FIFO(), prefetch="region", placement=second)


@pytest.mark.parametrize("region", [3, 4, -1, 10**6, -(2**40), 2**62])
def test_a_victim_that_is_not_resident_is_named(region):
    """Region 3 is there but not near; the others do not exist."""
    with pytest.raises(PolicyError) as error:
        run_with("eviction", broken("eviction", "victim", lambda self: region))
    assert line(error) == (
        f"policy 'broken' named region {region} in victim(), which is not resident; "
        f"it must answer one of the 2 regions in self.resident"
    )


@pytest.mark.parametrize("answer", [None, "0", 0.0, [0]])
def test_a_victim_that_is_no_region_number_is_refused(answer):
    with pytest.raises(PolicyError) as error:
        run_with("eviction", broken("eviction", "victim", lambda self: answer))
    assert (
        line(error) == f"policy 'broken' answered victim() with {answer!r}; "
        "expected the number of a resident region"
    )


def test_numpys_integers_are_region_numbers():
    assert (
        run_with(
            "eviction", broken("eviction", "victim", lambda self: np.int32(self.order.head))
        ).counts["faults"]
        == 4
    )


BAD_REQUESTS = [
    (lambda m: m.prefetch(4), "must prefetch pages within 0 to 3, got pages 4 to 4"),
    (lambda m: m.prefetch(-1), "must prefetch pages within 0 to 3, got pages -1 to -1"),
    (lambda m: m.prefetch(2, 3), "must prefetch pages within 0 to 3, got pages 2 to 4"),
    (lambda m: m.prefetch(0, 0), "must prefetch pages within 0 to 3, got pages 0 to -1"),
    (lambda m: m.advise(3, 2, "far"), "must advise pages within 0 to 3, got pages 3 to 4"),
    (
        lambda m: m.advise(0, 1, "near"),
        "must advise 'far', None, 'read-mostly' or 'read-write', got 'near'",
    ),
    (lambda m: m.evict(3), "must evict a resident region, got region 3, which is not resident"),
    (lambda m: m.evict(4), "must evict a resident region, got region 4, which is not resident"),
    (lambda m: m.evict(-1), "must evict a resident region, got region -1, which is not resident"),
    (
        lambda m: m.set_prefetch_threshold(102),
        "must set a prefetch threshold from 0 to 101, got 102",
    ),
    (lambda m: m.set_prefetch_threshold(-1), "must set a prefetch threshold from 0 to 101, got -1"),
]


@pytest.mark.parametrize(
    ("ask", "complaint"), BAD_REQUESTS, ids=[complaint for _, complaint in BAD_REQUESTS]
)
@pytest.mark.parametrize("method", ["on_fault", "on_launch", "start"])
def test_requests_that_cannot_be_carried_out_are_refused(method, ask, complaint):
    def asks(self: Any, number: int | None = None) -> None:
        if number != 0:
            ask(self.memory)

    with pytest.raises(PolicyError) as error:
        run_with("placement", broken("placement", method, asks))
    assert (
        line(error) == f"policy 'broken' raised in {method}({'' if method == 'start' else 1}): "
        f"broken {complaint}"
    )


def test_too_many_requests_in_one_call_are_refused():
    def asks(self: Any, launch: int) -> None:
        for _ in range(70_000):
            self.memory.prefetch(0)

    with pytest.raises(
        PolicyError, match="must leave at most 65536 requests in one call, got more"
    ):
        run_with("placement", broken("placement", "on_launch", asks))


def test_a_self_check_that_does_not_hold_ends_the_run():
    def finished(self: Any) -> None:
        assert set(self.order) == {17}, "my list is not the resident set"

    with pytest.raises(PolicyError) as error:
        run_with("eviction", broken("eviction", "finished", finished))
    assert line(error).startswith(
        "policy 'broken' raised in finished(): AssertionError: my list is not the resident set"
    )


@pytest.mark.parametrize("name", ["lrm", "fifo", "mru", "clock", "lru-ideal", "random"])
def test_the_self_checks_of_our_own_policies_can_fail(name, monkeypatch):
    """A policy that is told of one eviction less than there were finds a region in its list that is
    not resident.
    """
    cls = eviction.find(name)
    monkeypatch.setattr(cls, "on_eviction", lambda self, region: None)
    monkeypatch.setattr(cls, "victim", lambda self: min(self.resident))
    with pytest.raises(
        PolicyError, match=re.escape(f"policy '{name}' raised in finished(): AssertionError")
    ):
        run_of(flat([0, 1, 2]), machine(), 2, eviction=name, compiled=False)


def test_ctrl_c_in_a_policy_is_ctrl_c():
    def interrupts(self: Any, region: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_with("placement", broken("placement", "on_fault", interrupts))


def test_a_policy_without_a_name_goes_by_its_class():
    class Nameless(FIFO):
        def victim(self) -> int:
            return 99

    with pytest.raises(PolicyError, match="policy 'Nameless' named region 99 in victim"):
        run_with("eviction", Nameless())


def test_after_a_failure_the_next_run_is_as_good_as_ever():
    good = run_with("eviction", "fifo")
    with pytest.raises(PolicyError):
        run_with("eviction", broken("eviction", "victim", lambda self: 99))
    assert run_with("eviction", "fifo") == good


def test_the_same_policy_object_can_run_twice():
    policy = FIFO()
    trace = one_block(reads([0, 1, 2, 3]), [4], FLAT)
    assert run_with("eviction", policy, trace).counts == run_with("eviction", policy, trace).counts
