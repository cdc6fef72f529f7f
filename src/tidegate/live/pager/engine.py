"""The engine: serves faults as the simulated driver does, with the same policy objects.

    serve ──▶ notifications: sampled pages are restored, policies are notified
          ──▶ faults, region by region: find a frame (evict if none is free) · on_fault ·
              tree prefetch · migrate
          ──▶ observe: sample the region that the policy names
    prefetch_turn ──▶ prefetches that policies asked for

It makes the same calls and the same draws in the same order as simulation/gpu/driver.py, so that
both have the same faults and victims on the same sequence of pages (tests/live/test_equal.py). The
mover moves the bytes. A set of a region's pages is the bits of an integer.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable, Iterable
from typing import Any

from tidegate.errors import TidegateError
from tidegate.live.pager.calls import Call, PolicyCalls, PolicyFailure, code_of
from tidegate.live.pager.policies import blame, check_policies, handler
from tidegate.live.pager.regions import (
    Allowance,
    Observation,
    Regions,
    RegionState,
    RemotePages,
    bits,
    tree_prefetch,
)
from tidegate.live.pager.threads import Threads
from tidegate.live.pager.tier_placement import MOST_STAYS, LiveTiers
from tidegate.live.pager.view import LiveMemory
from tidegate.live.transfer.mover import LiveMover
from tidegate.policies.interface import events
from tidegate.policies.interface.events import NO_TREE
from tidegate.policies.interface.policy import (
    EvictionPolicy,
    PlacementPolicy,
    Policy,
    PrefetchPolicy,
    label,
)
from tidegate.policies.interface.visibility import Samples
from tidegate.policy_compiler.bounded import bound_policy, pass_rounds
from tidegate.simulation.gpu.driver_constants import PREFETCH_TURN
from tidegate.trace.geometry import Geometry
from tidegate.trace.trace import Object

RESTORED = -1  # in place of touched pages: these are sampled pages to restore
EVENTS = (*("on_launch", "on_fault", "on_prefetch", "on_eviction", "on_free"), "on_notification")
COUNTS = (
    *("faults", "evictions", "notifications", "observations", "batches", "decisions"),
    *("pages_in", "pages_prefetched", "pages_evicted"),
)


class VictimServedError(Exception):
    """The victim was served in this turn: the turn ends early."""


class Engine:
    """The policies, page sets and counters of one arena."""

    def __init__(
        self,
        geometry: Geometry,
        frames: int,
        policies: tuple[EvictionPolicy, PrefetchPolicy, PlacementPolicy],
        mover: LiveMover,
        observed: int | None = None,
        samples: int = 0,
        tiers: LiveTiers | None = None,
        observe_share: float = 1.0,
        calls: PolicyCalls | None = None,
    ):
        check_policies(policies)
        self.geometry, self.frames, self.mover, self.tiers = geometry, frames, mover, tiers
        self.policies: tuple[Policy, ...] = policies
        self.eviction, self.prefetch, self.placement = policies
        kinds = ("eviction", "prefetch", "placement")
        self._kind = dict(zip(map(id, policies), kinds, strict=True))
        self._calls = calls or PolicyCalls()
        declared = max((p.sees.regions for p in policies if isinstance(p.sees, Samples)), default=0)
        most = observed if declared and observed is not None else declared
        self.ppr = geometry.pages_per_region
        self._observation = Observation(
            min(most, frames), samples, self.ppr, watched=min(declared, frames)
        )
        self.observe_most = self._observation.most
        self._allowance = Allowance(observe_share)
        self.region = Regions(self.ppr)
        self.objects: tuple[Object, ...] = ()
        self.regions = 0
        self.shared: dict[str, Any] = {}
        self.requests: list[tuple[int, ...]] = []
        self._evictions_asked: list[int] = []
        self.queue: deque[int] = deque()  # regions with wanted pages
        self._arriving: list[tuple[int, int, int]] = []  # region, pages, touched ones or RESTORED
        self._remote = RemotePages(self.ppr)
        self.threshold = NO_TREE
        self.threads = Threads.for_frames(frames)
        self._by_age: OrderedDict[int, None] = OrderedDict()  # regions with a frame, oldest first
        self.turn = self.used = 0
        self.started = False
        # by event: policies that handle it, their methods, and the calls' numbers
        self._listeners: dict[str, list[tuple[Policy, Callable[[int], Any], int]]] = {}
        self.count = dict.fromkeys(COUNTS, 0)

    # Objects come and go

    def set_objects(self, objects: tuple[Object, ...]) -> None:
        """Replace the objects. Policies that read them start again."""
        gone = {o.first_page for o in self.objects} - {o.first_page for o in objects}
        for o in (o for o in self.objects if o.first_page in gone):
            first = o.first_page // self.ppr
            for number in range(first, first + self.geometry.regions(o.bytes)):
                self._drop(number)
        self.objects = objects
        for o in objects:
            self.region.add(o)
        self.regions = max((r + 1 for r in self.region), default=0)
        if self.started:
            for policy in self.policies:
                if isinstance(policy.memory, LiveMemory) and policy.memory.read_objects:
                    self._start(policy)

    def _drop(self, number: int) -> None:
        self._free(number)
        self.mover.drop(number)
        del self.region[number]

    def discard(self, first: int, count: int) -> None:
        """Let the data of whole regions die: they read as zeros, and nothing is written back."""
        for number, region, pages in self.region.in_range(first, count):
            if pages.bit_count() == region.pages and not region.pinned:
                self._free(number)
                self.mover.discard(number)
                region.near = region.arriving = region.wanted = 0

    def _free(self, number: int) -> None:
        """Take a region whose data died from the policies."""
        region = self.region[number]
        self.used -= region.has_frame
        self._by_age.pop(number, None)
        if region.has_frame and not region.pinned:
            self.turn += 1
            self._tell("on_free", number)
            self._observation.forget(region)
            self._evictions_asked.clear()
        if region.queued:
            self.queue.remove(number)
            region.queued = False
        self._remote.forget(number)

    def start(self, resident: dict[int, int] | None = None) -> None:
        """Start the policies. ``resident``: pages that a pager that died has left near."""
        for number, pages in (resident or {}).items():
            self.region[number].near = pages
            self.used += 1
            self._by_age[number] = None
        for policy in self.policies:
            self._start(policy)
        self.started = True
        self.turn += 1
        self._tell("on_launch", 0)
        self._evict_asked()
        while self.used > self.frames:
            self._evict(self._ask_victim())

    def _start(self, policy: Policy) -> None:
        policy.attach(LiveMemory(self, policy))
        pass_rounds(policy)
        self._ask(policy, "start")
        bound_policy(policy)
        self._listeners = {
            event: [
                (p, m, code_of(self._kind[id(p)], event))
                for p in self.policies
                if (m := handler(p, event))
            ]
            for event in EVENTS
        }
        self._carry_out()
        if policy is self.eviction:  # it must know what is resident
            for number, region in self.region.items():
                if region.has_frame and not region.pinned:
                    self._tell("on_fault", number, policy)

    # Turns

    def serve(self, faults: Iterable[int], notifications: Iterable[int] = ()) -> list[int]:
        """Serve one turn: used sampled pages, then faults. Return the faults left over."""
        self.turn += 1
        self.threads.begin(self.turn)
        for page in notifications:
            self._serve_notification(page)
        by_region: dict[int, int] = {}
        for page in faults:
            number, bit = page // self.ppr, 1 << page % self.ppr
            region = self.region[number]
            if region.prefers_far & bit:
                self._serve_remote(page)
            elif not region.resident & bit:
                by_region[number] = by_region.get(number, 0) | bit
        self.count["batches"] += bool(by_region)
        left: list[int] = []
        left_regions: dict[int, int] = {}
        order = sorted(by_region) if len(by_region) > 1 else list(by_region)
        for i, number in enumerate(order):
            try:
                self._serve_region(number, by_region[number])
            except VictimServedError:
                left_regions = {r: by_region[r] for r in order[i:]}
                left = [r * self.ppr + p for r, pages in left_regions.items() for p in bits(pages)]
                for r in left_regions:
                    self.region[r].faulted = 0
                break
        self.threads.end(left_regions)
        self._end_turn()
        return left

    def prefetch_turn(self) -> None:
        """Serve some of the prefetches in the queue."""
        self.turn += 1
        self.threads.begin(self.turn)
        for _ in range(min(PREFETCH_TURN, max(1, self.frames // 2))):
            if not self.queue:
                break
            number = self.queue[0]
            region = self.region[number]
            if region.to_prefetch:
                try:
                    self._find_frame(number, region)
                except VictimServedError:
                    break
                region.served = self.turn
                self._tell("on_prefetch", number)
                self._evict_asked()
                self._migrate(number, region)
            region.queued = False
            self.queue.popleft()
        self._end_turn()

    def _end_turn(self) -> None:
        """Load what arrives in this turn, after all of its samples are taken."""
        for number, pages, touched in self._arriving:
            region = self.region[number]
            region.near |= region.arriving
            region.arriving = 0
            if touched == RESTORED:
                self.mover.restore(number, pages)
            else:
                self.mover.load(number, pages, touched, region.left_far)
        self._arriving.clear()

    def _serve_region(self, number: int, faulted: int) -> None:
        region = self.region[number]
        if not region.has_frame:
            self.threads.serve(number, faulted)
            if self.observe_most:
                self._observation.note_return(region)
        region.faulted = faulted
        self._find_frame(number, region)
        region.served = self.turn
        n = faulted.bit_count()
        self.count["faults"] += n
        region.faults += n
        self._tell("on_fault", number)
        if self._evictions_asked:
            self._evict_asked()
        if self.threshold < NO_TREE:
            region.wanted |= tree_prefetch(region, faulted, self.threshold, self.ppr)
        if region.wanted and region.to_prefetch:
            self._tell("on_prefetch", number, self.prefetch)
            self._evict_asked()
        self._migrate(number, region)
        if self.observe_most:
            self._ask_observe()

    def _serve_notification(self, page: int) -> None:
        number, bit = page // self.ppr, 1 << page % self.ppr
        region = self.region[number]
        if not region.sampled & bit:
            return  # it was restored with another page
        self.count["notifications"] += 1
        region.served = self.turn
        sampled = region.sampled
        self._observation.forget(region)
        region.arriving |= sampled
        self._arriving.append((number, sampled, RESTORED))
        self._tell("on_notification", number, self.eviction)
        self._tell("on_notification", number, self.prefetch)
        self._evict_asked()
        self._ask_observe()

    @property
    def accesses(self) -> int:
        """Uses of remote pages that lead to a notification: each is served before the next."""
        return self._remote.threshold

    def _serve_remote(self, page: int) -> None:
        """Map a page near for now that prefers far memory."""
        number, bit = page // self.ppr, 1 << page % self.ppr
        if (leaving := self._remote.map_near(page)) is not None:
            self.mover.evict(leaving // self.ppr, 1 << leaving % self.ppr)
        self.mover.load(number, bit, bit)
        if self._remote.count(self.region[number]):
            self.count["notifications"] += 1
            self._tell("on_notification", number, self.placement)
            self._evict_asked()

    def _migrate(self, number: int, region: RegionState) -> None:
        moving = (region.faulted | region.wanted) & ~region.resident
        self.count["pages_in"] += moving.bit_count()
        self.count["pages_prefetched"] += (moving & ~region.faulted).bit_count()
        if self._remote.near:
            self._remote.forget(number)
        self._arriving.append((number, moving, moving & region.faulted))
        region.arriving |= moving
        region.faulted = region.wanted = 0

    # Frames

    def _find_frame(self, number: int, region: RegionState) -> None:
        if region.has_frame:
            return
        by_page = self.tiers is not None and self.ppr == 1
        while self.used + 1 > self.frames:
            self._evict(self._ask_candidate() if by_page else self._ask_victim())
        self.used += 1
        self._by_age[number] = None

    def _ask_candidate(self) -> int:
        """Return a victim that the tiering policy lets go; one that stays counts as faulted."""
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
            self._tell("on_fault", number, self.eviction)
        return number

    def _ask_victim(self) -> int:
        self.count["decisions"] += 1
        number = self._ask(self.eviction, "victim")
        self._carry_out()
        if self.threads.in_livelock:
            other = self.region.served_longest_ago(before=self.turn - self.threads.watched)
            if other is not None:
                return other
        region = self.region.named(number)
        if region is not None:
            if number in self.threads.held and (oldest := self._oldest()) is not None:
                return oldest
            if region.served == self.turn:
                raise VictimServedError
        if region is None or not region.has_frame or region.pinned:
            raise PolicyFailure(
                "eviction",
                f"policy '{label(self.eviction)}' named region {number!r} in victim(), which is "
                f"not resident; it must answer one of the {self.used} regions in self.resident",
            )
        return int(number)

    def _oldest(self) -> int | None:
        """Return the region that got its frame first, of those that no thread waits for; if threads
        wait for all, the first of all.
        """
        first = None
        for number in self._by_age:
            region = self.region[number]
            if region.pinned or region.served == self.turn:
                continue
            if number not in self.threads.held:
                return number
            first = number if first is None else first
        return first

    def _evict(self, number: int) -> None:
        region = self.region[number]
        self.count["evictions"] += 1
        region.evictions += 1
        self._tell("on_eviction", number)
        self._observation.forget(region)
        if self.observe_most:
            self._observation.note_eviction(region)
        self.count["pages_evicted"] += region.near.bit_count()
        region.near = 0
        self.used -= 1
        self._by_age.pop(number, None)
        self.mover.evict(number)

    def _evict_asked(self) -> None:
        """Evict the regions that policies asked to evict, unless they are pinned, served or held.

        In a livelock none is evicted: the program needs several of them at a time.
        """
        if not self._evictions_asked:
            return
        if self.threads.in_livelock:
            self._evictions_asked.clear()
        while self._evictions_asked:
            number = self._evictions_asked.pop()
            region = self.region.get(number)
            if region is None or not region.has_frame or region.pinned:
                continue
            if region.served != self.turn and number not in self.threads.held:
                self._evict(number)

    # Pinned by the program

    def pin(self, number: int) -> None:
        """Load a whole region and keep it, out of the policies' sight, until ``unpin``."""
        region = self.region[number]
        if region.pinned:
            return
        if sum(r.pinned for r in self.region.values()) + 2 > self.frames:
            raise TidegateError(
                f"pinning region {number} would leave no frame of {self.frames} free; pin less"
            )
        self.turn += 1
        if region.has_frame:
            self._tell("on_eviction", number)
            self._observation.forget(region)
            self._evictions_asked.clear()
        else:
            self._find_frame(number, region)
        self._remote.forget(number)
        whole = (1 << region.pages) - 1
        if missing := whole & ~region.resident:
            self.mover.load(number, missing, missing)
        region.near, region.pinned, region.wanted, region.remote = whole, True, 0, 0
        self.mover.pin(number, whole)

    def unpin(self, number: int) -> None:
        """Hand a pinned region back to the policies."""
        region = self.region.get(number)
        if region is not None and region.pinned:
            self.turn += 1
            region.pinned = False
            self._tell("on_fault", number)
            self._evict_asked()

    # Observation

    def _ask_observe(self) -> None:
        if self.frames - self.used > self.observe_most or self._observation.is_full:
            return
        if not self._may_observe():
            return
        number = self._ask(self.eviction, "observe")
        self._carry_out()
        if number is None:
            return
        region = self.region.named(number)
        if region is None or not region.has_frame:
            raise PolicyFailure(
                "eviction",
                f"policy '{label(self.eviction)}' named region {number!r} in observe(), which is "
                "not resident; it must answer a resident region or None",
            )
        if region.sampled or region.served == self.turn or number in self.threads.held:
            return
        if sampled := self._observation.sample(region):
            self.count["observations"] += 1
            self.mover.sample(number, sampled)

    def _may_observe(self) -> bool:
        """Return whether regions must be evicted at all, and observation stays within its share."""
        if len(self.region) <= self.frames:
            return False
        return self._allowance.is_left(self.mover.observe_ns, self.count["notifications"])

    # Policies

    def _tell(self, event: str, number: int, only: Policy | None = None) -> None:
        """Relay an event to all policies that handle it, or to one."""
        for policy, method, code in self._listeners[event]:
            if only is None or policy is only:
                self._calls.begin(code, number)
                try:
                    method(number)
                except BaseException as error:
                    call = Call(self._kind[id(policy)], event, number)
                    raise blame(policy, call, error) from error
                finally:
                    self._calls.end()
                self._carry_out()

    def _ask(self, policy: Policy, method: str) -> Any:
        """Return what a policy answers."""
        call = Call(self._kind[id(policy)], method, None)
        with self._calls.of(*call):
            try:
                return getattr(policy, method)()
            except BaseException as error:
                raise blame(policy, call, error) from error

    def _carry_out(self) -> None:
        """Carry out requests of policies; evictions wait until the current event is over."""
        if not self.requests:
            return
        requests, self.requests = self.requests, []
        for verb, *what in requests:
            match verb:
                case events.ASK_PREFETCH | events.ASK_PREFETCH_ASYNC:  # no launch waits for either
                    self.request_prefetch(*what)
                case events.ASK_ADVISE if what[2] <= events.ADVICE["far"]:
                    self.advise(*what)  # of read-mostly pages, as of all, dirty ones are written
                case events.ASK_THRESHOLD:
                    (self.threshold,) = what
                case events.ASK_OBSERVE:
                    region = self.region.get(what[0])
                    if region is not None and self._may_observe():
                        left_far = self._observation.leave_one_far(region)
                        self.count["observations"] += bool(left_far)
                case events.ASK_COUNT:
                    self._remote.threshold, *_ = what
                case events.ASK_EVICT | events.ASK_EVICT_ASYNC:
                    self._evictions_asked += what

    def request_prefetch(self, first: int, count: int) -> None:
        """Mark pages as wanted and queue their regions."""
        for number, region, pages in self.region.in_range(first, count):
            pages &= ~(region.resident | region.prefers_far)
            if pages and not region.pinned:
                region.wanted |= pages
                if not region.queued:
                    region.queued = True
                    self.queue.append(number)

    def advise(self, first: int, count: int, far: int) -> None:
        """Let these pages prefer far memory, or no longer."""
        for _, region, pages in self.region.in_range(first, count):
            region.remote = region.remote | pages if far else region.remote & ~pages

    def finished(self) -> None:
        """Let each policy check its own list, as after a simulated run."""
        for policy in self.policies:
            self._ask(policy, "finished")
