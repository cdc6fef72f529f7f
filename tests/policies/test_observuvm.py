"""ObservUVM's policies, held against the paper's text and algorithms, without a mechanism around
them.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from tidegate.errors import TidegateError
from tidegate.policies.eviction.lrm import LRM
from tidegate.policies.interface.policy import Policy
from tidegate.policies.prefetch.together import make_prefetch
from tidegate.policies.registries import eviction, prefetch
from tidegate.trace.geometry import Geometry
from tidegate.trace.trace import lay_out


class FakeMemory(SimpleNamespace):
    """Remembers what was asked for; tests say what is resident and observed."""

    def __init__(self, frames: int = 8, objects: Any = ()):
        super().__init__(
            frames=frames,
            observed=set(),
            geometry=Geometry(),
            objects=objects,
            asked=[],
            here=set(),
            observable=100,
            regions=1 << 10,
            pages=[0],  # of a region, that fault
        )

    def is_served(self, region: int) -> bool:
        return False

    def is_resident(self, region: int) -> bool:
        return region in self.here

    def faulted(self, region: int) -> list[int]:
        return self.pages

    def set_prefetch_threshold(self, percent: int) -> None:
        self.asked.append(("threshold", percent))

    def observe_prefetched(self, region: int) -> None:
        self.asked.append(("observe", region))

    def prefetch(self, first_page: int, pages: int = 1) -> None:
        self.asked.append(("prefetch", first_page // 32))


def started(policy: Policy, memory: FakeMemory | None = None) -> Any:
    policy.attach(memory or FakeMemory())  # type: ignore[arg-type]
    policy.start()
    return policy


def arrive(policy: Any, *regions: int) -> None:
    for region in regions:
        policy.on_fault(region)


def leave(policy: Any) -> int:
    region = policy.victim()
    policy.on_eviction(region)
    return region


def test_lru_is_listing_1() -> None:
    p = started(eviction.make("lru"))
    arrive(p, 1, 2, 3)
    p.on_notification(1)
    assert list(p.order) == [2, 3, 1]
    p.memory.observed = {2}
    assert p.observe() == 3
    assert leave(p) == 2


def test_lfu_promotes_by_bins_and_inserts_at_the_tail() -> None:
    p = started(eviction.make("lfu"))
    arrive(p, 1, 2, 3)  # all in the lowest bin
    p.on_notification(1)
    p.on_notification(2)
    assert p.observe() == 3  # the lowest bin is what is observed
    assert [leave(p), leave(p), leave(p)] == [3, 1, 2]


def test_lfu_forgets_counts_unless_told_to_remember() -> None:
    for remember, last_to_go in ((False, 2), (True, 1)):
        p = started(eviction.make(f"lfu(remember={remember}, width=1)"))
        arrive(p, 1)
        p.on_notification(1)
        p.on_notification(1)
        p.on_eviction(1)
        arrive(p, 1, 2)
        assert [leave(p), leave(p)][1] == last_to_go


def test_lfus_bins_are_ranges() -> None:
    """Filling a region does not move it to another bin; more uses than the range holds do."""
    for width, kept in ((8, 2), (1, 1)):
        p = started(eviction.make(f"lfu(width={width})"))
        arrive(p, 1, 1, 1, 1, 1, 1)  # the six faults that fill a region in order
        arrive(p, 2)  # one that has just come
        assert [leave(p), leave(p)] == [3 - kept, kept]
    p = started(eviction.make("lfu(width=8)"))
    arrive(p, 1, *[1] * 8, 2)
    assert leave(p) == 2


def test_cps_list_is_divided_in_two_from_the_start() -> None:
    p = started(eviction.make("cp"), FakeMemory(frames=8))
    arrive(p, *range(8))
    assert (list(p._protected), list(p._open)) == ([0, 1, 2, 3], [4, 5, 6, 7])
    assert leave(p) == 4


def test_cp_protects_the_head_and_evicts_at_the_split() -> None:
    p = started(eviction.make("cp(start_share=0.25, floor=0.01)"), FakeMemory(frames=16))
    arrive(p, *range(16))  # four of them unprotected: the newest
    assert p.victim() == 12
    leave(p)
    arrive(p, 17)
    assert p.victim() == 13


def test_cp_leaves_room_for_what_is_needed_together() -> None:
    """Two threads, each at a region's end, need four regions at a time: none evicts another."""
    p = started(eviction.make("cp(floor=0, observe_share=1)"), FakeMemory(frames=16))
    arrive(p, *range(16))
    for region in range(16, 40):  # all observed, none used: the area shrinks as far as it may
        p.observe()
        leave(p)
        arrive(p, region)
    assert len(p._open) == 4
    for region in range(100, 104):
        assert leave(p) < 100
        arrive(p, region)


def test_cp_moves_its_split_by_its_own_observations_only() -> None:
    p = started(eviction.make("cp(start_share=0.5, observe_share=1)"), FakeMemory(frames=8))
    arrive(p, *range(8))
    assert p.victim() == 4
    p.on_notification(4)  # observed by somebody else: nothing moves
    assert p.victim() == 4
    assert p.observe() == 4
    p.on_notification(4)  # still in use: the unprotected area grows towards the head
    assert p.victim() == 3
    assert p.observe() == 3
    p.on_eviction(3)  # evicted unused: it shrinks
    assert len(p._open) == 4
    assert p.victim() == 4


def test_tournament_asks_in_turn_and_retires_the_blamed() -> None:
    p = started(eviction.make("tournament(policies=fifo+mru, patience=4, blame=batches)"))
    p._active = [1, 0]  # fifo is asked first: turns go round
    arrive(p, *range(10))
    for _ in range(5):  # whatever fifo has evicted comes back; mru's choices do not
        arrive(p, leave(p))  # fifo's turn
        leave(p)  # mru's
    assert p.report() == {"left": ["mru"], "retired": ["fifo"]}


class Loop:
    """Regions 0 to ``regions`` - 1 in a circle, through fewer frames: every miss is a fault of all
    its pages. With ``shrink``, each pass leaves out so many more of the first regions, as LU does.
    """

    def __init__(self, policy: Any, regions: int, frames: int, pages: int = 32):
        self.policy = started(policy, FakeMemory(frames=frames))
        self.policy.memory.pages = list(range(pages))
        self.regions, self.frames, self.misses = regions, frames, 0

    def play(self, passes: int, shrink: int = 0) -> None:
        here = self.policy.memory.here
        for region in (r for k in range(passes) for r in range(k * shrink, self.regions)):
            if region not in here:
                self.misses += 1
                if len(here) == self.frames:
                    victim = leave(self.policy)
                    here.remove(victim)
                here.add(region)
                arrive(self.policy, region)


@pytest.mark.parametrize("blame", ["pages", "batches", "evictions"])
@pytest.mark.parametrize("width", [1, 8])
def test_a_tournament_tells_a_loop(blame: str, width: int) -> None:
    """LRU's and LFU's victims are the oldest regions, the next to be used. CP's lie half a memory
    behind them. So the first to return are theirs, and they have all the blame at the first
    judgement: each half of it, more than 1.2 times a third.

        0 ........ frames/2 ........ frames ........ regions     the first victims:
        LRU, LFU ▲        CP ▲                                   0, frames/2, 1, 2, frames/2 + 1, …
    """
    spec = f"tournament(policies=lru+lfu(width={width})+cp, patience=20, blame={blame})"
    loop = Loop(eviction.make(spec), regions=300, frames=200)
    loop.play(2)
    report = loop.policy.report()
    assert (report["left"], report["retired"]) == (["cp"], ["lru", "lfu"])
    # 100 evictions in the first pass; then every miss is a blame, or 32: T is 20 regions in each
    after = [d.after for d in loop.policy.decisions() if d.what.startswith("retired")]
    assert after == ["121 evictions"] * 2


def test_a_tournaments_patience_counts_regions_whatever_a_fault_is() -> None:
    """One contestant is blamed for ten regions that return, the other for the next ten. A judgement
    after 3, about 100 page faults, retires the first; after 100 regions both have half.
    """
    for patience, left in ((3, ["mru"]), (100, ["fifo", "mru"])):
        for blame in ("pages", "evictions"):
            spec = f"tournament(policies=fifo+mru, patience={patience}, blame={blame})"
            p = started(eviction.make(spec))
            p.memory.pages = list(range(32))
            for region in range(200):
                p._cause[region] = region // 10 % 2
                p.on_fault(region)
            assert p.report()["left"] == left


def test_cyclic_protection_is_the_worst_choice_for_a_loop_that_shrinks() -> None:
    """What CP protects is what such a loop is done with. It is still the best of the three in the
    second pass, which is when a tournament chooses; so LU's tournament keeps it.

        misses of LRU    all of each pass, until what is left of the loop fits: 300 + 290 + … + 210
        misses of CP     half of the frames stay protected, so the loop has to fit in the others
    """
    misses = {}
    for spec in ("lru", "lfu", "cp"):
        loop = Loop(eviction.make(spec), regions=300, frames=200)
        loop.play(30, shrink=10)
        misses[spec] = loop.misses
    assert misses["lru"] == misses["lfu"] == sum(range(210, 301, 10))
    assert misses["cp"] > 1.4 * misses["lru"]
    loop = Loop(eviction.make("tournament"), regions=300, frames=200)
    loop.play(30, shrink=10)
    assert loop.policy.report()["left"] == ["cp"]


def test_a_tournament_on_a_loop_misses_little_more_than_its_best_member() -> None:
    misses = {}
    for spec in ("cp", "lru", "tournament(patience=20)"):
        loop = Loop(eviction.make(spec), regions=300, frames=200)
        loop.play(10)
        misses[spec] = loop.misses
    assert misses["lru"] == 3000
    assert misses["cp"] <= misses["tournament(patience=20)"] < 1.05 * misses["cp"]


def test_every_fault_of_an_evicted_region_blames_its_cause() -> None:
    """Algorithm 1: the map is never cleared, and a prefetch blames nobody."""
    for blame, blames in (("pages", 6), ("batches", 2), ("evictions", 1)):
        p = started(eviction.make(f"tournament(policies=fifo+mru, blame={blame})"))
        p.memory.pages = [0, 1, 2]
        arrive(p, 1, 2)
        region = leave(p)
        p.on_prefetch(region)
        assert p._blames == (blame == "evictions")
        arrive(p, region, region)
        assert p._blames == blames


def test_tournament_keeps_at_least_one() -> None:
    p = started(eviction.make("tournament(policies=fifo+lrm, patience=1, margin=1)"))
    arrive(p, *range(6))
    for _ in range(20):
        arrive(p, leave(p))
    assert len(p.report()["left"]) >= 1


def test_tournament_blames_nobody_for_a_victim_that_stayed() -> None:
    """A region served in the same turn is not evicted, though it was named: its next fault is
    nobody's fault.
    """
    p = started(eviction.make("tournament(policies=fifo+mru, patience=4)"))
    arrive(p, *range(10))
    for _ in range(9):
        region = p.victim()  # the mechanism cuts its batch short here and evicts nothing
        arrive(p, region)
    assert p._blames == 0
    assert len(p.report()["left"]) == 2
    arrive(p, leave(p))
    assert p._blames == 1


def test_tournament_tells_contestants_of_everything() -> None:
    class Told(LRM):
        def start(self) -> None:
            self.told: list[str] = []

        def on_prefetch(self, region: int) -> None:
            self.told.append(f"prefetch {region}")
            super().on_prefetch(region)

        def on_launch(self, launch: int) -> None:
            self.told.append(f"launch {launch}")

    p = eviction.make("tournament(policies=lrm+lrm)")
    p.contestants[:] = [Told(), Told()]
    started(p)
    p.on_launch(3)
    p.on_prefetch(7)
    assert [q.told for q in p.contestants] == [["launch 3", "prefetch 7"]] * 2
    assert [list(q.order) for q in p.contestants] == [[7], [7]]


def test_contestants_may_have_several_options_and_be_tournaments() -> None:
    p = eviction.make(
        "tournament(policies=lfu(bins=2, remember=no)+tournament(policies=lru+cp(step=3, floor=0)))"
    )
    lfu, inner = p.contestants
    assert (lfu.bins, lfu.remember, inner.contestants[1].step) == (2, False, 3)


def test_tournament_takes_any_policies_and_refuses_nonsense(tmp_path: Any) -> None:
    mine = tmp_path / "mine.py"
    mine.write_text(
        "from tidegate.policy import EvictionPolicy\n"
        "class Mine(EvictionPolicy):\n"
        "    def on_fault(self, region): self.order.move_to_tail(region)\n"
        "    def on_eviction(self, region): self.order.remove(region)\n"
        "    def victim(self): return self.order.head\n"
    )
    p = started(eviction.make(f"tournament(policies={mine}:Mine+lrm)"))
    arrive(p, 1, 2)
    assert leave(p) == 1
    with pytest.raises(TidegateError, match="one contestant"):
        eviction.make("tournament(policies=lrm)")


def test_fdp_is_algorithm_2() -> None:
    p = started(prefetch.make("fdp(every=1, enough=4)"))
    assert p.memory.asked == [("threshold", 51)]
    for region in range(5):
        p.on_prefetch(region)
        p.on_notification(region)
    assert p.threshold == 1  # five of five useful, and five are more than T = 4
    for region in range(5, 15):
        p.on_prefetch(region)
        p.on_eviction(region)
    assert p.threshold == 51


def test_fdp_counts_only_what_it_watches() -> None:
    p = started(prefetch.make("fdp(every=1, enough=1)"))
    for region in range(10):
        p.on_notification(region)
    assert p.memory.asked == [("threshold", 51)]


def objects() -> Any:
    return lay_out({"a": 10 << 21, "b": 4 << 21}, Geometry())  # regions 0…9 and 10…13


def asked(p: Any, verb: str) -> list[int]:
    return [what for kind, what in p.memory.asked if kind == verb]


def test_rgp_runs_ahead_of_a_stream_by_triggers() -> None:
    spec = "rgp(ahead=2, streak=2, taken=at once)"
    p = started(prefetch.make(spec), FakeMemory(objects=objects()))
    p.memory.pages = [0, 1]
    arrive(p, 2)
    assert asked(p, "prefetch") == []
    p.memory.pages = [2]
    arrive(p, 2)  # three neighbours, two steps: a stream now
    assert asked(p, "prefetch") == [3, 4]
    for region in (3, 4):
        p.on_prefetch(region)
    assert asked(p, "observe") == [3, 4]
    p.memory.here = {2, 3, 4}
    p.on_notification(3)  # the trigger page of 3 was used: the next one follows
    assert asked(p, "prefetch") == [3, 4, 5]
    p.on_notification(3)
    assert asked(p, "prefetch") == [3, 4, 5]


def test_the_driver_takes_one_region_at_the_next_event() -> None:
    p = started(prefetch.make("rgp(ahead=2, streak=1)"), FakeMemory(objects=objects()))
    p.memory.pages, p.memory.here = [0, 1], {0}
    arrive(p, 0)  # a stream, which names 1; no event has followed
    assert asked(p, "prefetch") == []
    p.memory.pages = [2]
    arrive(p, 0)  # now the driver takes 1, and 2 is named
    assert asked(p, "prefetch") == [1]
    p.on_prefetch(1)
    p.on_notification(7)  # any notification is an event
    assert asked(p, "prefetch") == [1, 2]
    p.on_notification(1)  # its trigger names 3, which waits
    assert asked(p, "prefetch") == [1, 2]


def test_rgps_trigger_looks_past_regions_that_are_there() -> None:
    p = started(prefetch.make("rgp(streak=1, taken=at once)"), FakeMemory(objects=objects()))
    p.memory.pages, p.memory.here = [0, 1], {2, 3, 5}
    arrive(p, 0)
    p.on_prefetch(1)
    p.on_notification(1)
    assert asked(p, "prefetch") == [1, 4]
    p.on_prefetch(4)
    p.memory.here |= set(range(5, 10))
    p.on_notification(4)  # nothing is left of the object
    assert asked(p, "prefetch") == [1, 4]


def test_an_object_stays_a_stream_and_jumps_make_none() -> None:
    spec = "rgp(ahead=2, streak=2, taken=at once)"
    p = started(prefetch.make(spec), FakeMemory(objects=objects()))
    p.memory.pages = [0, 7]
    arrive(p, 0, 5, 2, 7, 4)
    assert asked(p, "prefetch") == []
    p.memory.pages = [0, 1, 2]
    arrive(p, 12)
    assert asked(p, "prefetch") == [13]  # within the object
    p.memory.pages = [9]
    arrive(p, 10)
    assert asked(p, "prefetch") == [13, 11, 12]
    assert p.decisions()[0].what == "streams: b"


def test_prefetchers_joined_by_plus_are_all_told() -> None:
    both = make_prefetch("fdp(every=1)+rgp(streak=1, taken=at once)")
    p = started(both, FakeMemory(objects=objects()))
    p.memory.pages = [0, 1]
    arrive(p, 1)
    p.on_prefetch(2)
    assert p.name == "fdp+rgp"
    assert asked(p, "threshold") == [51]
    assert asked(p, "prefetch") == [2]
    assert asked(p, "observe") == [2, 2]  # FDP's feedback and RGP's trigger


def test_early_adaptor_turns_bold_when_regions_fault_again() -> None:
    p = started(prefetch.make("early-adaptor(window=4)"))
    arrive(p, 1, 1, 1, 2)
    arrive(p, 3, 4, 5, 6)
    assert asked(p, "threshold") == [51, 1, 51]


def test_tournament_gives_each_policy_its_share_of_observed_regions() -> None:
    p = started(eviction.make("tournament(policies=lru+lfu)"), FakeMemory())
    p.memory.observable = 4
    arrive(p, *range(8))
    asked_for = []
    for _ in range(4):
        region = p.observe()
        asked_for.append((p._watched[region], region))
        p.memory.observed.add(region)
    assert p.observe() is None  # each has two
    assert p._watches == [2, 2]
    p.memory.observed.discard(asked_for[0][1])
    p.on_notification(asked_for[0][1])
    again = p.observe()
    assert p._watched[again] == asked_for[0][0]  # the one whose region was used has room again


@pytest.mark.parametrize(
    ("average", "afresh", "left"),
    [("all", False, ["fifo", "lrm"]), ("all", True, ["lrm"]), ("active", False, ["lrm"])],
)
def test_whose_blames_an_even_share_is_of(average: str, afresh: bool, left: list[str]) -> None:
    options = f"patience=4, blame=batches, afresh={afresh}, average={average}"
    p = started(eviction.make(f"tournament(policies=fifo+lrm+mru, {options})"))
    fifo, mru = 0, 2

    def blame(contestant: int, times: int) -> None:
        for region in range(times):
            p._cause[region] = contestant
            p.on_fault(region)

    blame(mru, 5)
    assert p.report()["retired"] == ["mru"]
    # half of all blames, which is less than 1.2 / 2; but all there are, counted afresh or among
    # those left
    blame(fifo, 5)
    assert p.report()["left"] == left
