"""The engine: serves faults as the simulated driver does, with the same policy objects; a Mover
moves the bytes.

    serve ──▶ notices: sampled pages come home, policies are told
          ──▶ faults, region by region: a frame (evict if there is none) · on_fault · tree prefetch · migrate
          ──▶ observe: which region's next use is to be noticed?
    prefetch_turn ──▶ what policies asked for ahead of its use

It is the plain twin of simulation/gpu/driver.py: same order of calls, same draws, so that on the
same sequence of pages both have the same faults and the same victims (tests/live/test_equal.py). A
region's pages are the bits of an integer.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Any, Protocol

from tidegate.errors import PolicyError, TidegateError
from tidegate.live.pager.observation import Observation
from tidegate.live.pager.page_bits import bits, span
from tidegate.live.pager.region import Region, want_subtrees
from tidegate.live.pager.relay import Relay, check_policies
from tidegate.live.pager.remote_pages import Lent
from tidegate.live.pager.tier_placement import MOST_STAYS, LiveTiers
from tidegate.live.pager.view import LiveMemory
from tidegate.policies.interface.events import (
    ASK_ADVISE,
    ASK_COUNT,
    ASK_OBSERVE,
    ASK_PREFETCH,
    ASK_THRESHOLD,
    NO_TREE,
)
from tidegate.policies.interface.policy import (
    EvictionPolicy,
    PlacementPolicy,
    Policy,
    PrefetchPolicy,
    label,
)
from tidegate.policies.interface.visibility import Samples
from tidegate.simulation.gpu.memory import PREFETCH_TURN
from tidegate.trace.geometry import Geometry
from tidegate.trace.trace import Object

HOME = -1  # sampled pages on their way home
# so many faults in a row of pages that were among the latest to fault: nobody gets on
PING_PONG, RECENT = 12, 3


class Mover(Protocol):
    """Moves bytes. The engine has the last word on what is where; the mover on how."""

    def load(self, region: int, pages: int, touched: int, apart: int = 0) -> None:
        """Bring these pages near.

        ``touched``: somebody waits for them; ``apart``: further ones whose use must show.
        """

    def evict(self, region: int, pages: int | None = None) -> None:
        """Send these pages far (all, if not said), losing no write."""

    def sample(self, region: int, pages: int) -> None:
        """Take these near pages away, so that their next use is a fault."""

    def bring_home(self, region: int, pages: int) -> None:
        """Make sampled pages usable again, or load those that were left far."""

    def drop(self, region: int) -> None:
        """Forget this region's content, near and far: its object is gone."""

    def hold(self, region: int, pages: int) -> None:
        """These near pages must stay where they are, writes included."""

    def touched(self, region: int) -> int:
        """Which pages were used since they came near, if ``track_touches`` asked for it."""


class Cut(Exception):
    """The victim was served in this very turn: the turn ends here."""


class Engine:
    """Policies, page sets and counters of one arena."""

    def __init__(
        self,
        geometry: Geometry,
        frames: int,
        eviction: EvictionPolicy,
        prefetch: PrefetchPolicy,
        placement: PlacementPolicy,
        mover: Mover,
        observed: int | None = None,
        samples: int = 0,
        tiers: LiveTiers | None = None,
    ):
        self.tiers = tiers
        self.geometry, self.frames, self.mover = geometry, frames, mover
        self.eviction, self.prefetch, self.placement = eviction, prefetch, placement
        self.policies: tuple[Policy, ...] = (eviction, prefetch, placement)
        check_policies(self.policies)
        declared = max(
            (p.sees.regions for p in self.policies if isinstance(p.sees, Samples)), default=0
        )
        most = observed if declared and observed is not None else declared
        self._observation = Observation(
            min(most, frames), samples, geometry.pages_per_region, min(declared, frames)
        )
        self.observe_most = self._observation.most
        self.ppr = geometry.pages_per_region
        self.region: dict[int, Region] = {}
        self.objects: tuple[Object, ...] = ()
        self.regions = 0
        self.shared: dict[str, Any] = {}
        self.requests: list[tuple[int, ...]] = []
        self._evict_asked: list[int] = []
        self.queue: deque[int] = deque()  # regions with wanted pages
        # region, pages and those that somebody waits for, or HOME
        self._arriving: list[tuple[int, int, int]] = []
        self._lent = Lent(geometry.pages_per_region)
        self.threshold = NO_TREE
        # regions that faulted, and their pages
        self._latest: deque[tuple[int, int]] = deque(maxlen=RECENT)
        self._returns = 0  # faults in a row of those
        self.turn = self.used = 0
        self.started = False
        self._relay = Relay(self.policies, self._carry_out)
        self.count = dict.fromkeys(
            (
                "faults",
                "evictions",
                "notifications",
                "observations",
                "pages_in",
                "pages_prefetched",
                "pages_evicted",
                "batches",
                "decisions",
            ),
            0,
        )
        self.victims: list[int] | None = None  # kept if a test asks for it

    # Objects come and go

    def set_objects(self, objects: tuple[Object, ...]) -> None:
        """These are the objects now. A policy that planned by the old ones plans anew."""
        gone = {o.first_page for o in self.objects} - {o.first_page for o in objects}
        for o in (o for o in self.objects if o.first_page in gone):
            self._release(o)
        self.objects = objects
        for o in objects:
            first = o.first_page // self.ppr
            for i in range(self.geometry.regions(o.bytes)):
                if first + i not in self.region:
                    self.region[first + i] = Region(min(self.ppr, o.pages - i * self.ppr))
        self.regions = max((r + 1 for r in self.region), default=0)
        if self.started:
            for policy in self.policies:
                if isinstance(policy.memory, LiveMemory) and policy.memory.read_objects:
                    self._start(policy)

    def start(self, resident: dict[int, int] | None = None) -> None:
        """Policies begin, with these pages near already if memory was left to us by a pager that
        died.
        """
        for number, pages in (resident or {}).items():
            self.region[number].near = pages
            self.used += 1
        for policy in self.policies:
            self._start(policy)
        self.started = True
        self.turn += 1
        self._relay.tell("on_launch", 0)
        self._evict_as_asked()
        while self.used > self.frames:
            self._evict(self._ask_victim())

    def _start(self, policy: Policy) -> None:
        policy.attach(LiveMemory(self, policy))
        self._relay.ask(policy, "start")
        self._relay.started()
        self._carry_out()
        if policy is self.eviction:  # what it knew of is still there
            for number, region in self.region.items():
                if region.here and not region.held:
                    self._relay.tell("on_fault", number, policy)

    def _release(self, o: Object) -> None:
        first = o.first_page // self.ppr
        for number in range(first, first + self.geometry.regions(o.bytes)):
            region = self.region[number]
            if region.here and not region.held:
                self.turn += 1
                self._relay.tell("on_eviction", number)
                self._observation.forget(region)
                self._evict_asked.clear()
            self.used -= bool(region.here)
            if region.queued:
                self.queue.remove(number)
            self._lent.own_now(number)
            self.mover.drop(number)
            del self.region[number]

    # Turns

    def serve(self, faults: Iterable[int], notices: Iterable[int] = ()) -> list[int]:
        """One turn: pages whose sampled use was noticed, then pages that faulted.

        Answers the faults left over.
        """
        self.turn += 1
        for page in notices:
            self._serve_notice(page)
        left: list[int] = []
        by_region: dict[int, int] = {}
        for page in faults:
            number, bit = page // self.ppr, 1 << page % self.ppr
            region = self.region[number]
            if region.remote & bit:
                self._pass_through(page)
            elif not region.here & bit:
                by_region[number] = by_region.get(number, 0) | bit
        self.count["batches"] += bool(by_region)
        order = sorted(by_region) if len(by_region) > 1 else list(by_region)
        for i, number in enumerate(order):
            try:
                self._serve_region(number, by_region[number])
            except Cut:
                left = [r * self.ppr + p for r in order[i:] for p in bits(by_region[r])]
                for r in order[i:]:
                    self.region[r].faulted = 0
                break
        self._finish_turn()
        return left

    def prefetch_turn(self) -> None:
        """Carry out some of the prefetches that were asked for."""
        self.turn += 1
        for _ in range(min(PREFETCH_TURN, max(1, self.frames // 2))):
            if not self.queue:
                break
            number = self.queue[0]
            region = self.region[number]
            if region.to_come:
                try:
                    self._make_room(region)
                except Cut:
                    break
                region.served = self.turn
                self._relay.tell("on_prefetch", number)
                self._evict_as_asked()
                self._migrate(number, region)
            region.queued = False
            self.queue.popleft()
        self._finish_turn()

    def _finish_turn(self) -> None:
        """What comes can be used when the turn ends, and no sooner: who waits for it must find
        samples taken.
        """
        for number, pages, touched in self._arriving:
            region = self.region[number]
            region.near |= region.coming
            region.coming = 0
            if touched == HOME:
                self.mover.bring_home(number, pages)
            else:
                self.mover.load(number, pages, touched, region.left_far)
        self._arriving.clear()

    def _serve_region(self, number: int, faulted: int) -> None:
        region = self.region[number]
        if not region.near | region.coming:
            self._returns = self._returns + 1 if (number, faulted) in self._latest else 0
            self._latest.append((number, faulted))
            self._observation.returns(region)
        region.faulted = faulted
        self._make_room(region)
        region.served = self.turn
        n = faulted.bit_count()
        self.count["faults"] += n
        region.faults += n
        self._relay.tell("on_fault", number)
        if self._evict_asked:
            self._evict_as_asked()
        if self.threshold < NO_TREE:
            region.wanted |= want_subtrees(region, faulted, self.threshold, self.ppr)
        if region.wanted and region.to_come:
            self._relay.tell("on_prefetch", number, self.prefetch)
            self._evict_as_asked()
        self._migrate(number, region)
        if self.observe_most:
            self._ask_observe()

    def _serve_notice(self, page: int) -> None:
        number, bit = page // self.ppr, 1 << page % self.ppr
        region = self.region[number]
        if not region.sampled & bit:
            return  # it came home with another page
        self.count["notifications"] += 1
        region.served = self.turn
        home = region.sampled
        self._observation.forget(region)
        region.coming |= home
        self._arriving.append((number, home, HOME))
        self._relay.tell("on_notification", number, self.eviction)
        self._relay.tell("on_notification", number, self.prefetch)
        self._evict_as_asked()
        self._ask_observe()

    def _pass_through(self, page: int) -> None:
        """A use of a page that prefers far memory."""
        number, bit = page // self.ppr, 1 << page % self.ppr
        if (gone := self._lent.lend(page)) is not None:
            self.mover.evict(gone // self.ppr, 1 << gone % self.ppr)
        self.mover.load(number, bit, bit)
        if self._lent.count(self.region[number]):
            self.count["notifications"] += 1
            self._relay.tell("on_notification", number, self.placement)
            self._evict_as_asked()

    # Frames

    def _make_room(self, region: Region) -> None:
        if region.here:
            return
        while self.used + 1 > self.frames:
            self._evict(
                self._candidate()
                if self.tiers is not None and self.ppr == 1
                else self._ask_victim()
            )
        self.used += 1

    def _candidate(self) -> int:
        """The victim, once the placement over tiers lets one go.

        One that stays counts as just asked for.
        """
        assert self.tiers is not None
        before = -1
        most = min(MOST_STAYS, self.frames - 1)
        for attempt in range(most + 1):
            number = self._ask_victim()
            if not self.tiers.stays(number):
                break
            if attempt == most or number == before:
                self.tiers.must_leave(number)
                break
            before = number
            self._relay.tell("on_fault", number, self.eviction)
        return number

    def _ask_victim(self) -> int:
        self.count["decisions"] += 1
        number = self._relay.ask(self.eviction, "victim")
        self._carry_out()
        region = self.region.get(number)
        if self._returns >= PING_PONG and (other := self._in_nobodys_way()) is not None:
            return other
        if region is not None and region.served == self.turn:
            raise Cut
        if region is None or not region.here or region.held:
            raise PolicyError(
                f"policy '{label(self.eviction)}' named region {number} in victim(), which is not resident; "
                f"it must answer one of the {self.used} regions in self.resident"
            )
        return int(number)

    def _in_nobodys_way(self) -> int | None:
        """The resident region that was served longest ago, in place of the policy's choice.

        A processor can need two regions at a time, which a simulated block never does. A policy
        that always sends away the one that just came (mru) would send them away in turn for ever.
        """
        able = [
            n
            for n, r in self.region.items()
            if r.near | r.coming and not r.held and r.served < self.turn - RECENT
        ]
        return min(able, key=lambda n: self.region[n].served, default=None)

    def _evict(self, number: int) -> None:
        region = self.region[number]
        self.count["evictions"] += 1
        region.evictions += 1
        if self.victims is not None:
            self.victims.append(number)
        self._relay.tell("on_eviction", number)
        self._observation.forget(region)
        if self.observe_most:
            self._observation.leaves(region)
        self.count["pages_evicted"] += region.near.bit_count()
        region.near = 0
        self.used -= 1
        self.mover.evict(number)

    def _evict_as_asked(self) -> None:
        while self._evict_asked:
            number = self._evict_asked.pop()
            region = self.region.get(number)
            if (
                region is not None
                and region.here
                and not region.held
                and region.served != self.turn
            ):
                self._evict(number)

    def _migrate(self, number: int, region: Region) -> None:
        moving = (region.faulted | region.wanted) & ~region.here
        self.count["pages_in"] += moving.bit_count()
        self.count["pages_prefetched"] += (moving & ~region.faulted).bit_count()
        touched = moving & region.faulted
        self._lent.own_now(number)
        region.coming |= moving
        region.faulted = region.wanted = 0
        self._arriving.append((number, moving, touched))

    # Pinned by the user

    def hold(self, number: int) -> None:
        """Bring a region in whole and keep it, out of the policies' sight, until it is let go."""
        region = self.region[number]
        if region.held:
            return
        if sum(r.held for r in self.region.values()) + 2 > self.frames:
            raise TidegateError(
                f"pinning region {number} would leave fewer than one frame of {self.frames} free; pin less"
            )
        self.turn += 1
        if region.here:
            self._relay.tell("on_eviction", number)
            self._observation.forget(region)
            self._evict_asked.clear()
        else:
            self._make_room(region)
        self._lent.own_now(number)
        whole = (1 << region.pages) - 1
        missing = whole & ~region.here
        if missing:
            self.mover.load(number, missing, missing)
        region.near, region.held, region.wanted, region.remote = whole, True, 0, 0
        self.mover.hold(number, whole)

    def let_go(self, number: int) -> None:
        """The policies' business again."""
        region = self.region.get(number)
        if region is not None and region.held:
            self.turn += 1
            region.held = False
            self._relay.tell("on_fault", number)
            self._evict_as_asked()

    # Observation

    def _ask_observe(self) -> None:
        if self.frames - self.used > self.observe_most or self._observation.is_full:
            return
        number = self._relay.ask(self.eviction, "observe")
        self._carry_out()
        if number is None:
            return
        region = self.region.get(number)
        if region is None or not region.here:
            raise PolicyError(
                f"policy '{label(self.eviction)}' named region {number} in observe(), which is not resident; "
                "it must answer a resident region or None"
            )
        if (
            not region.sampled
            and region.served != self.turn
            and (taken := self._observation.sample(region))
        ):
            self.count["observations"] += 1
            self.mover.sample(number, taken)

    # Policies

    def _carry_out(self) -> None:
        """Do what policies asked for; evictions wait until the call that led to them is over."""
        if not self.requests:
            return
        asked, self.requests = self.requests, []
        for verb, *what in asked:
            if verb == ASK_PREFETCH:
                self.want(*what)
            elif verb == ASK_ADVISE:
                self.advise(*what)
            elif verb == ASK_THRESHOLD:
                (self.threshold,) = what
            elif verb == ASK_OBSERVE:
                (number,) = what
                self.count["observations"] += bool(
                    self._observation.leave_one_far(self.region[number])
                )
            elif verb == ASK_COUNT:
                (self._lent.threshold,) = what
            else:
                self._evict_asked += what

    def want(self, first: int, count: int) -> None:
        """Mark pages as wanted and put their regions in line."""
        for number in range(first // self.ppr, -(-(first + count) // self.ppr)):
            region = self.region.get(number)
            if region is None or region.held:
                continue
            low, high = (
                max(0, first - number * self.ppr),
                min(region.pages, first + count - number * self.ppr),
            )
            pages = span(low, high) & ~(region.here | region.remote)
            if pages:
                region.wanted |= pages
                if not region.queued:
                    region.queued = True
                    self.queue.append(number)

    def advise(self, first: int, count: int, far: int) -> None:
        """These pages prefer far memory, or no longer do."""
        for number in range(first // self.ppr, -(-(first + count) // self.ppr)):
            region = self.region.get(number)
            if region is not None:
                low, high = (
                    max(0, first - number * self.ppr),
                    min(region.pages, first + count - number * self.ppr),
                )
                mask = span(low, high) & ~region.sampled
                region.remote = region.remote | mask if far else region.remote & ~mask

    def finished(self) -> None:
        """Each policy checks its own list, as after a simulated run."""
        for policy in self.policies:
            self._relay.ask(policy, "finished")
