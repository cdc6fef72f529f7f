"""Policies with a limit of rounds: the same in Python and compiled, and as the limit says."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.errors import PolicyError
from tidegate.policies.registries import eviction, prefetch
from tidegate.policy import EvictionPolicy, Marks, Order, first
from tidegate.policy_compiler.bounded import bound_policy
from tidegate.policy_compiler.compiled import compile_policy
from tidegate.policy_compiler.source import CannotCompile, restore_class
from traces import PAGES, machine, one_block, reads, run_of

REGIONS = 40


class Loops(EvictionPolicy):
    """Each kind of loop once, over an order of all regions."""

    def start(self) -> None:
        self.seen = Order(range(REGIONS))
        self.marked = Marks()

    def on_fault(self, region: int) -> None:
        self.order.move_to_tail(region)

    def on_eviction(self, region: int) -> None:
        self.order.remove(region)

    def victim(self) -> int:
        return self.order.head

    def by_for(self) -> int:
        last = -1
        for region in self.seen:
            last = region
        return last

    def by_while(self) -> int:
        count = 0
        while count < REGIONS:
            count += 1
        return count

    def by_next(self, wanted: int) -> int:
        return next((r for r in self.seen if r == wanted), -1)

    def by_first(self) -> int | None:
        return first(self.seen, unless=range(10))

    def by_islice(self, skip: int) -> list[int]:
        found = Order()
        for region in islice(self.seen, skip, None):
            found.move_to_tail(region)
        return list(found)

    def by_sum(self) -> int:
        return sum(1 for _ in self.seen)

    def on_notification(self, region: int) -> None:
        """Do nothing: it names the loops, as only what events reach is limited."""
        self.by_for(), self.by_while(), self.by_next(0), self.by_first()
        self.by_islice(0), self.by_sum()


@pytest.fixture
def limited() -> Iterator[Any]:
    policy: Any = Loops()
    policy.start()

    def limit(rounds: int) -> Any:
        restore_class(policy)
        policy.most_rounds = rounds
        bound_policy(policy)
        return policy

    yield limit
    restore_class(policy)
    assert type(policy) is Loops


@pytest.mark.parametrize("rounds", [1, 7, 39, 40, 41, 100])
def test_loops_end_after_so_many_rounds(limited: Any, rounds: int) -> None:
    policy = limited(rounds)
    seen = min(rounds, REGIONS)
    assert policy.by_for() == seen - 1
    assert policy.by_while() == seen
    assert policy.by_next(seen - 1) == seen - 1
    assert policy.by_next(seen) == -1
    assert policy.by_first() == (10 if rounds > 10 else None)
    assert policy.by_sum() == seen


@given(st.integers(1, 50), st.integers(0, 45))
def test_islice_sees_the_first_items_alone(rounds: int, skip: int) -> None:
    policy: Any = Loops()
    policy.start()
    policy.most_rounds = rounds
    bound_policy(policy)
    assert policy.by_islice(skip) == list(range(min(rounds, REGIONS)))[skip:]


def test_without_a_limit_nothing_changes(limited: Any) -> None:
    policy = limited(0)
    assert type(policy) is Loops
    assert policy.by_for() == REGIONS - 1


class Last(EvictionPolicy):
    """Evict the last region that a loop sees."""

    def on_fault(self, region: int) -> None:
        self.order.move_to_tail(region)

    def on_eviction(self, region: int) -> None:
        self.order.remove(region)

    def victim(self) -> int:
        last = self.order.head
        for region in self.order:
            last = region
        return last


class Third(Last):
    def victim(self) -> int:
        return next(islice(self.order, 2, None), self.order.tail)


def run(policy: Any, rounds: int, compiled: bool) -> dict[str, Any]:
    policy = eviction.resolve(policy)
    policy.most_rounds = rounds
    pages = [r * PAGES for turn in range(6) for r in range(turn % 3, REGIONS)]
    trace = one_block(reads(pages), [REGIONS * PAGES])
    return run_of(trace, machine(), 16, eviction=policy, compiled=compiled).summary


@pytest.mark.oracle
@pytest.mark.parametrize(
    ("name", "rounds"),
    [("cp", 1), ("cp", 1000), ("lfu(bins=8, width=1)", 3), ("tournament(patience=2)", 3)],
)
def test_compiled_equals_python(name: str, rounds: int) -> None:
    assert run(name, rounds, compiled=True) == run(name, rounds, compiled=False)


@pytest.mark.parametrize("compiled", [False, True])
def test_a_small_limit_makes_a_difference(compiled: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both run in the same way, and the third region is the last that three rounds see."""
    monkeypatch.setattr("tidegate.simulation.calling.LONG_RUN", 0)
    limited, third = run(Last(), 3, compiled), run(Third(), 0, compiled)
    assert limited["eviction"] == "Last"
    without = {"eviction", "policy"}
    assert {k: v for k, v in limited.items() if k not in without} == {
        k: v for k, v in third.items() if k not in without
    }
    assert limited["evictions"] != run(Last(), 0, compiled)["evictions"]


def test_a_large_limit_makes_none() -> None:
    for name in ("cp", "tournament(patience=2)"):
        assert run(name, 100_000, compiled=True) == run(name, 0, compiled=True)


class Lists(EvictionPolicy):
    most_rounds = 5

    def on_fault(self, region: int) -> None:
        self.order.move_to_tail(region)

    def victim(self) -> int:
        return [r for r in self.order][0]  # noqa: C416, RUF015


class Otherwise(EvictionPolicy):
    most_rounds = 5

    def on_fault(self, region: int) -> None:
        self.order.move_to_tail(region)

    def victim(self) -> int:
        for region in self.order:
            if region > 3:
                return region
        else:
            return self.order.head


@pytest.mark.parametrize(
    ("cls", "said"),
    [(Lists, "the rounds of a comprehension cannot be limited"), (Otherwise, "has no 'else'")],
)
def test_what_cannot_be_limited_is_refused(cls: type[EvictionPolicy], said: str) -> None:
    trace = one_block(reads(range(0, REGIONS * PAGES, PAGES)), [REGIONS * PAGES])
    with pytest.raises(PolicyError, match=said):
        run_of(trace, machine(), 8, eviction=cls(), compiled=False)


def test_parts_have_the_limit_of_the_whole() -> None:
    policy: Any = prefetch.make("stop-when-full(of=rgp)")
    policy.most_rounds = 9
    trace = one_block(reads(range(0, REGIONS * PAGES, PAGES)), [REGIONS * PAGES])
    run_of(trace, machine(), 8, prefetch=policy)
    assert policy.parts[0].most_rounds == 9


def test_the_limit_is_compiled_in() -> None:
    """Two limits are two functions."""
    made = set()
    for rounds in (0, 4, 5):
        policy: Any = eviction.make("fifo")
        policy.most_rounds = rounds
        policy.start()
        try:
            made.add(compile_policy(policy, "Faults()").address)  # type: ignore[union-attr]
        except CannotCompile as why:  # pragma: no cover
            pytest.fail(str(why))
    assert len(made) == 3
