"""A policy sees what it declares, and no more."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tidegate.errors import PolicyError
from tidegate.policy import (
    Everything,
    EvictionPolicy,
    Faults,
    PlacementPolicy,
    PrefetchPolicy,
    Samples,
    TouchBits,
)
from traces import PAGES, Given, Kernel, Touch, machine, one_block, reads, run_of, simulation_of

# Region 0 comes, region 1 comes, region 0 is used again, region 2 comes and region 0 or 1 has to go
TOUCHES = [
    Touch(0, reference=5),
    Touch(1),
    Touch(PAGES + 3, reference=6),
    Touch(0, reference=7),
    Touch(2 * PAGES),
]
TRACE = one_block(TOUCHES, [3 * PAGES - 2])

LOOKS: dict[str, Callable[[Any], Any]] = {
    "accesses": lambda memory: memory.accesses,
    "touched": lambda memory: memory.touched(0),
    "now": lambda memory: memory.now,
    "last_touch": lambda memory: memory.last_touch(0),
    "page_touches": lambda memory: memory.page_touches(0).tolist(),
    "last_reference": lambda memory: memory.last_reference(0),
    "last_toucher": lambda memory: memory.last_toucher(0),
    "touch_count": lambda memory: memory.touch_count(0),
    "next_touch": lambda memory: memory.next_touch(0),
}
NEEDED = {
    "accesses": "Samples()",
    "touched": "TouchBits()",
    "now": "Everything()",
    "last_touch": "Everything()",
    "last_reference": "Everything()",
    "last_toucher": "Everything()",
    "touch_count": "Everything()",
    "page_touches": "Everything()",
    "next_touch": "Everything(future=True)",
}
# what each level may look at while region 0 leaves
ALLOWED = {
    Faults(): set(),
    Samples(): {"accesses"},
    TouchBits(): {"touched"},
    Everything(): {
        "accesses",
        "touched",
        "now",
        "last_touch",
        "last_reference",
        "last_toucher",
        "touch_count",
        "page_touches",
    },
    Everything(future=True): set(LOOKS),
}


def peeping(base: type, level: Any, event: str, look: Callable[[Any], Any]) -> Any:
    """A policy of that kind and level, which looks at that event and keeps what it saw."""

    def peep(self: Any, number: int) -> None:
        self.seen.append(look(self.memory))

    policy = type("Peeping", (base,), {"sees": level, event: peep})()
    policy.seen = []
    return policy


@pytest.mark.parametrize("look", LOOKS)
@pytest.mark.parametrize("level", ALLOWED, ids=str)
@pytest.mark.parametrize(
    ("family", "base"), [("prefetch", PrefetchPolicy), ("placement", PlacementPolicy)]
)
def test_each_level_sees_its_share(family, base, level, look):
    policy = peeping(base, level, "on_eviction", LOOKS[look])
    if look in ALLOWED[level]:
        run_of(TRACE, machine(), 2, **{family: policy})
        assert len(policy.seen) == 1
    else:
        with pytest.raises(PolicyError) as error:
            run_of(TRACE, machine(), 2, **{family: policy})
        assert str(error.value).startswith(
            "policy 'Peeping' raised in on_eviction(0): "
            f"Peeping must declare sees = {NEEDED[look]} to use memory.{look}, got sees = {level} "
            "(test_visibility.py, line "
        )


@pytest.mark.parametrize("event", ["on_fault", "on_launch"])
def test_touch_bits_are_handed_over_at_eviction_and_no_earlier(event):
    with pytest.raises(
        PolicyError, match=r"touch bits of region 0 in on_eviction\(0\), not earlier"
    ):
        run_of(
            TRACE,
            machine(),
            2,
            placement=peeping(PlacementPolicy, TouchBits(), event, LOOKS["touched"]),
        )
    with pytest.raises(
        PolicyError, match=r"on_eviction\(0\).*touch bits of region 1 in on_eviction\(1\)"
    ):
        run_of(
            TRACE,
            machine(),
            2,
            placement=peeping(PlacementPolicy, TouchBits(), "on_eviction", lambda m: m.touched(1)),
        )


LEAKS = list(LOOKS)


@pytest.mark.parametrize("look", LEAKS)
def test_what_one_policy_declares_another_does_not_see(look):
    """Belady sees everything; a prefetcher beside it still sees faults alone."""
    with pytest.raises(PolicyError, match=f"to use memory.{look}, got"):
        run_of(
            TRACE,
            machine(),
            2,
            eviction="belady",
            prefetch=peeping(PrefetchPolicy, Faults(), "on_fault", LOOKS[look]),
        )


class Witness(EvictionPolicy):
    """FIFO that writes down all it sees, at every call."""

    sees = Everything(future=True)

    def start(self) -> None:
        self.seen: list[tuple[Any, ...]] = []

    def on_fault(self, region: int) -> None:
        m = self.memory
        self.seen.append(
            (
                "fault",
                region,
                m.now,
                m.faulted(region).tolist(),
                m.is_served(region),
                m.resident - {region},
            )
        )
        if region not in self.order:
            self.order.move_to_tail(region)

    def on_eviction(self, region: int) -> None:
        m = self.memory
        self.seen.append(
            (
                "eviction",
                region,
                m.touched(region).tolist(),
                m.near(region).tolist(),
                sorted(m.resident),
            )
        )
        self.order.remove(region)

    def victim(self) -> int:
        m = self.memory
        regions = range(m.regions)
        self.seen.append(
            (
                "victim",
                m.now,
                [m.last_touch(r) for r in regions],
                [m.next_touch(r) for r in regions],
                [m.last_reference(p) for p in (0, 1, 2, PAGES + 3)],
                [m.is_served(r) for r in regions],
            )
        )
        return self.order.head


def test_what_is_seen_is_what_happened():
    witness = Witness()
    simulation_of(TRACE, machine(), 2, eviction=witness).run()
    never = 2**31 - 1
    some = [True, True] + [False] * 6
    assert witness.seen == [
        ("fault", 0, 0, [0], True, set()),
        ("fault", 0, 1, [1], True, set()),
        ("fault", 1, 2, [3], True, {0}),
        ("victim", 4, [3, 2, -1], [never, never, 4], [7, 0, -1, 6], [False] * 3),
        ("eviction", 0, some, some, [0, 1]),
        ("fault", 2, 4, [0], True, {1}),
    ]


def test_a_policy_sees_the_machine_and_the_objects():
    class Looker(PlacementPolicy):
        def on_launch(self, launch: int) -> None:
            m = self.memory
            self.seen = (
                m.frames,
                m.regions,
                m.geometry,
                [(o.name, o.first_page, o.pages) for o in m.objects],
            )

    looker = Looker()
    run_of(Given([Kernel([reads([0])])], [3, 9]), machine(), 2, placement=looker)
    assert looker.seen == (2, 3, TRACE.geometry, [("o0", 0, 3), ("o1", PAGES, 9)])


def test_near_and_touched_are_as_long_as_the_region_is():
    """An object's last region ends where the object ends."""

    class Looker(PlacementPolicy):
        sees = Everything()

        def on_eviction(self, region: int) -> None:
            self.seen = len(self.memory.near(region)), len(self.memory.touched(region))

    looker = Looker()
    run_of(one_block(reads([0, PAGES]), [3, 9]), machine(), 1, placement=looker)
    assert looker.seen == (3, 3)


def test_a_method_that_is_not_defined_is_never_called():
    class Counting(PlacementPolicy):
        calls = 0

        def on_launch(self, launch: int) -> None:
            type(self).calls += 1

    simulation = simulation_of(TRACE, machine(), 2, placement=Counting())
    simulation.run()
    assert Counting.calls == 1
    assert simulation.memory.wants[2].sum() == 1


def test_an_eviction_policy_hears_of_prefetches_as_of_faults():
    class Fetching(PlacementPolicy):
        def on_launch(self, launch: int) -> None:
            self.memory.prefetch(PAGES, 2)

    class Hearing(EvictionPolicy):
        def start(self) -> None:
            self.heard: list[int] = []

        def on_fault(self, region: int) -> None:
            self.heard.append(region)

        def victim(self) -> int:
            return self.heard[0]

    hearing = Hearing()
    run_of(one_block(reads([0]), [2 * PAGES]), machine(), 2, eviction=hearing, placement=Fetching())
    assert hearing.heard == [1, 0]


def test_a_prefetcher_hears_when_the_tree_brings_pages_that_did_not_fault():
    class Hearing(PrefetchPolicy):
        def start(self) -> None:
            self.memory.set_prefetch_threshold(51)
            self.heard: list[tuple[str, int]] = []

        def on_fault(self, region: int) -> None:
            self.heard.append(("fault", region))

        def on_prefetch(self, region: int) -> None:
            self.heard.append(("prefetch", region))

    hearing = Hearing()
    run_of(one_block(reads([0, 1, 2, 3, 4]), [PAGES]), machine(), 1, prefetch=hearing)
    fault, ahead = ("fault", 0), ("prefetch", 0)
    # pages 0, 1, 2 (and 3), 4 (and 5 to 7)
    assert hearing.heard == [fault, fault, fault, ahead, fault, ahead]
