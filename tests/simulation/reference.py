"""A second simulator of the same model, to test the compiled one: plain, slow and independent.

It follows the documentation (docs/mechanism.md, policies/**, notes on the driver), not the compiled
code: pages and slots are objects, sets are sets, and a policy is a function of a log of events.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import groupby, islice, takewhile
from typing import Any

from tidegate.machine.machine import Machine
from traces import Given, Touch

ROUND = 15_000.0
REGIONS_PER_PREFETCH_TURN = 16


@dataclass(eq=False)
class Page:
    number: int
    region: int
    is_near: bool = False
    is_arriving: bool = False
    was_touched: bool = False
    was_written: bool = False
    is_wanted: bool = False
    advised_far: bool = False
    on_cpu: bool = True
    has_data: bool = True  # far memory holds its data
    read_mostly: bool = False
    is_asked: bool = False  # of the inward stream
    is_sampled: bool = False  # it was taken away, so that its use is noticed
    is_noticed: bool = False
    bytes_asked: int = 0  # by the faults of the batch that is served now

    @property
    def prefers_far(self) -> bool:
        """Return whether it is not migrated when it is used."""
        return self.advised_far or self.is_sampled

    @property
    def has_room(self) -> bool:
        """Return whether it is near, or will be when the turn ends."""
        return self.is_near or self.is_arriving


@dataclass(eq=False)
class Slot:
    number: int
    time: float
    todo: deque[Touch] | None = None  # None: idle
    waits: bool = False


@dataclass
class Transfer:
    """A copy that a stream has begun."""

    region: int
    begin: float
    end: float
    handling: float = 0.0
    pages: list[Page] = field(default_factory=list)
    frames: int = 0


@dataclass
class Stream:
    """One direction of the link: regions asked for, in order, and the copy under way."""

    free_from: float = 0.0
    asked: list[int] = field(default_factory=list)
    now: Transfer | None = None
    stuck: bool = False

    @property
    def can_start(self) -> bool:
        return bool(self.asked) and not self.now and not self.stuck


@dataclass
class Turn:
    """One turn of the driver: its costs, pages on the way, and the regions that must not leave."""

    start: float
    handling: float = 0.0
    inward: float = 0.0
    outward: float = 0.0
    deciding: float = 0.0
    arriving: list[Page] = field(default_factory=list)
    served: set[int] = field(default_factory=set)
    # when each copy was asked for, in processor time since the turn began, and how long it takes
    copies: list[tuple[float, float]] = field(default_factory=list)

    @property
    def length(self) -> float:
        return self.handling + self.inward + self.outward + self.deciding

    def queue_copy(self, time: float) -> None:
        self.copies.append((self.handling + self.deciding, time))

    @property
    def copied_by(self) -> float:
        """Return when the last copy ends, if each begins as soon as it can, one after another."""
        end = 0.0
        for asked, time in self.copies:
            end = max(asked, end) + time
        return end

    @property
    def end(self) -> float:
        return self.start + self.length


class BatchIsCut(Exception):
    """The victim was served in this turn, which ends here."""


# ("prefetch", first, n) · ("evict", region) · ("advise", first, n, prefer) · ("threshold", n)
Request = tuple[Any, ...]
Observer = Callable[["Reference"], int | None]  # which region is to be observed
# (event, region, resident regions) → requests
Script = Callable[[str, int, set[int]], list[Request]]


class Reference:
    """Plays ``trace`` on ``machine``; ``count``, ``time`` and ``evicted`` are the results.

    ``threshold``: of tree prefetch, None for none. ``prefetcher`` and ``placer``: scripts that
    answer events with requests.
    """

    def __init__(
        self,
        trace: Given,
        machine: Machine,
        frames: int,
        victim: Callable[[Reference], int],
        *,
        threshold: int | None = None,
        dirty_only: bool = False,
        user_space: bool = False,
        prefetcher: Script | None = None,
        placer: Script | None = None,
        observer: Observer | None = None,
        observable: int = 0,
        samples: int = 0,
    ):
        self.trace, self.machine, self.room, self.choose = trace, machine, frames, victim
        self.inward, self.outward = Stream(), Stream()
        self.going = -1  # the region that the outward stream is about to copy
        self.staying: set[int] = set()  # asked to leave, and no longer
        self.deciding = 0.0  # of the inward stream's next copy
        self.expecting: list[Slot] = []  # slots that wait for pages on their way
        self.on_hold = False  # the driver waits for a copy
        self.frames = frames * (
            trace.geometry.pages_per_region if machine.near.frame == "page" else 1
        )
        self.threshold, self.dirty_only, self.user_space = threshold, dirty_only, user_space
        self.scripts, self.placer = [s for s in (prefetcher, placer) if s], placer
        self.prefetcher = prefetcher
        self.observer, self.observable, self.fixed_samples = observer, observable, samples
        self.samples = samples or 1
        self.notices: list[tuple[float, Page]] = []
        self.draws = xorshift(0x9E3779B97F4A7C15)
        # regions evicted, in epochs of as many as may be observed
        self.leavings: list[list[int]] = [[]]
        # returns of regions that left in the epoch before this one, and in this one
        self.returned: list[int] = [0, 0]
        per_region = trace.geometry.pages_per_region
        unwritten = trace.unwritten()
        self.page: dict[int, Page] = {}
        self.region: dict[int, list[Page]] = defaultdict(list)
        for o in trace.objects:
            for number in range(o.first_page, o.first_page + o.pages):
                self.page[number] = Page(number, number // per_region)
                self.page[number].read_mostly = o.read_mostly
                if unwritten[number]:
                    self.page[number].on_cpu = False
                    self.page[number].has_data = not trace.first_touch
                self.region[number // per_region].append(self.page[number])
        # for the policies: (kind, region, touches so far), and the region of each touch
        self.log: list[tuple[str, int, int]] = []
        self.touched_regions: list[int] = []
        self.evicted: list[int] = []
        self.freed: list[int] = []
        self.count: Counter[str] = Counter()
        self.time: Counter[str] = Counter()
        self.now = 0.0  # the latest moment any slot or the driver has got to
        self.free_from = 0.0  # the driver has been free since then
        self.link_free = 0.0  # when remote accesses so far will have crossed
        self.no_prefetch_before = 0.0
        self.turn: Turn | None = None
        # the region whose event was sent and whose pages do not migrate yet
        self.serving: set[int] = set()
        self.known: set[int] = set()  # regions that the driver or a stream has served before
        self.served: set[int] = set()  # in the current turn, or the last one
        self.waiting: list[Slot] = []
        self.to_prefetch: list[int] = []
        self.to_evict: list[tuple[int, bool]] = []  # and whether a runtime asked for it
        self.after_faults = False
        self.was_cut = False  # the last batch of faults
        self.in_order = future_of(trace, machine.near.slots)

    # The program

    def play(self) -> Reference:
        for number, kernel in enumerate(self.trace.kernels):
            self.copy(kernel.told.get("copies", ()))
            self.launch(number)
            slots = max(1, self.machine.near.slots // kernel.width)
            near = self.machine.near
            self.width = min(kernel.width, near.slots)
            self.per_byte = slots * max(1 / near.bandwidth, kernel.intensity / near.flops)
            self.per_far_byte = 1 / (self.machine.link.inward * self.machine.link.remote_share)
            self.sharing = kernel.told.get("sharing", ())
            self.run_to(self.now + near.launch_overhead)
            self.slots = [Slot(number, self.now) for number in range(slots)]
            # a block without touches takes no time
            blocks = deque(block for block in kernel.blocks if block)
            while self.one_round(blocks):
                pass
            for first, end in kernel.told.get("frees", ()):
                self.free([self.page[n] for n in range(first, end) if n in self.page])
        return self

    def one_round(self, blocks: deque[Any]) -> bool:
        """Advance the driver if it is done or has work, else every slot.

        Return False when the launch is over.
        """
        for slot in self.slots:
            if slot.todo is None and blocks:
                slot.todo = deque(blocks.popleft())
        moving = [s for s in self.slots if s.todo is not None and not s.waits]
        if not moving and not self.waiting and not self.expecting:
            return False
        earliest = min((s.time for s in moving), default=math.inf)
        if self.inward.can_start or self.outward.can_start:
            self.start_copies()
            return True
        work = self.waiting or self.to_prefetch or self.notices
        if self.turn or self.on_hold or not work:
            if self.next_end() <= earliest:
                self.end_next()
                return True
        elif self.waiting and not (self.to_prefetch and self.after_faults):
            self.serve_faults()
            return True
        elif self.to_prefetch:
            self.serve_prefetches()
            return True
        elif self.notices:
            self.begin_turn(min(time for time, _ in self.notices))
            self.serve_notices()
            self.close_bill()
            return True
        limit = min(earliest + ROUND, self.next_end())
        self.link_free = max(self.link_free, earliest)
        for slot in moving:
            if slot.time < limit:
                self.move(slot, limit)
        return True

    def move(self, slot: Slot, limit: float) -> None:
        """Make touches until the block ends, a page is absent or the limit is reached."""
        while slot.todo and slot.time < limit:
            page = self.page[slot.todo[0].page]
            if page.is_near:
                self.touch_near(slot)
            elif page.prefers_far:
                self.touch_far(slot)
            elif page.is_asked:
                slot.waits = True
                self.expecting.append(slot)
                self.count["waits"] += 1
                break
            else:
                slot.waits = True
                self.waiting.append(slot)
                self.count["stalls"] += 1
                break
        if not slot.todo:
            slot.todo = None
        self.run_to(slot.time)

    def touch_near(self, slot: Slot) -> None:
        touch = slot.todo.popleft()
        page = self.page[touch.page]
        page.was_touched = True
        page.was_written |= bool(touch.write)
        self.spend(
            slot, "near_time", max(self.machine.near.latency, touch.bytes * self.per_byte), page
        )

    def touch_far(self, slot: Slot) -> None:
        touch = slot.todo.popleft()
        page, latency = self.page[touch.page], self.machine.link.remote_latency
        crossing = touch.bytes
        if page.is_sampled:
            self.notice(page, slot.time + latency)
        elif touch.reference < len(self.sharing):
            crossing = int(crossing * self.sharing[touch.reference])
        self.count["remote_touches"] += 1
        self.count["remote_bytes"] += crossing
        page.has_data = True
        # all that the link was asked for goes over it one after another
        self.link_free += crossing * self.per_far_byte
        near = max(self.machine.near.latency, touch.bytes * self.per_byte)
        alone = slot.time + max(near, crossing * self.per_far_byte)
        self.spend(slot, "remote_time", max(alone, self.link_free) + latency - slot.time, page)

    def spend(self, slot: Slot, what: str, time: float, page: Page) -> None:
        slot.time += time
        self.time[what] += time
        self.count["touches"] += 1
        self.touched_regions.append(page.region)

    def run_to(self, moment: float) -> None:
        """Let slots (or a launch) run up to this moment."""
        if moment > self.now:
            self.time["running"] += moment - self.now
            self.now = moment

    # The driver

    def begin_turn(self, start: float) -> Turn:
        self.turn = Turn(max(self.free_from, start))
        self.served = self.turn.served
        return self.turn

    def close_bill(self) -> None:
        """Compute the turn's length; if the link works both ways at once, without the overlap."""
        turn, link, overlap = self.turn, self.machine.link, 0.0
        self.time["link_in_time"] += turn.inward
        self.time["link_out_time"] += turn.outward
        if self.machine.driver.pipelined and turn.outward:
            together = (turn.inward * link.inward + turn.outward * link.outward) / link.both
            alone = turn.outward
            turn.outward = max(turn.outward, together, turn.inward) - turn.inward
            overlap = alone - turn.outward
        if self.machine.driver.asynchronous:
            self.hide_handling(overlap)
        for stream, more in ((self.inward, turn.inward), (self.outward, turn.outward)):
            if stream.now and stream.now.end > turn.start:
                stream.now.end += more
        self.time["driver_time"] += turn.length

    def hide_handling(self, overlap: float) -> None:
        """Count only the processor time that is not beside a copy.

        The turn lasts until both the processor and the last copy are done; copies that go both ways
        at once end earlier by ``overlap``.
        """
        turn = self.turn
        working, copying = turn.handling + turn.deciding, turn.inward + turn.outward
        if not working or not copying:
            return
        seen = max(working, turn.copied_by - overlap, copying) - copying
        turn.handling, turn.deciding = (
            seen * part / working for part in (turn.handling, turn.deciding)
        )

    def end_turn(self) -> None:
        turn = self.turn
        self.turn = None
        self.free_from = turn.end
        for page in turn.arriving:
            page.is_arriving, page.is_near = False, True
        nobody_ran = turn.end - self.now
        if nobody_ran > 0:
            share = nobody_ran / turn.length
            self.time["fault_handling"] += share * turn.handling
            self.time["transfer_in"] += share * turn.inward
            self.time["transfer_out"] += share * turn.outward
            self.time["policy_overhead"] += share * turn.deciding
            self.now = turn.end
        self.look_again(turn.end)
        self.wake(turn.end)

    def wake(self, moment: float) -> None:
        def is_there(slot: Slot) -> bool:
            page = self.page[slot.todo[0].page]
            return page.is_near or page.prefers_far

        here = [s for s in (*self.waiting, *self.expecting) if is_there(s)]
        self.waiting = [s for s in self.waiting if s not in here]
        self.expecting = [s for s in self.expecting if s not in here]
        lost = [
            s
            for s in self.expecting
            if not (self.page[s.todo[0].page].is_asked or self.page[s.todo[0].page].is_arriving)
        ]
        self.waiting += lost
        self.expecting = [s for s in self.expecting if s not in lost]
        for slot in here:
            slot.waits = False
            slot.time = max(slot.time, moment)
            if self.page[slot.todo[0].page].is_near:
                self.touch_near(slot)
            else:  # it was advised to be far while the slot waited for it
                self.link_free = max(self.link_free, moment)
                self.touch_far(slot)
            self.run_to(slot.time)

    def serve_faults(self) -> None:
        turn = self.begin_turn(min(s.time for s in self.waiting))
        self.serve_notices()
        self.after_faults = True
        self.count["batches"] += 1
        turn.handling += self.machine.driver.batch_overhead
        raw = self.fill_batch()
        self.count["raw_faults"] += len(raw)
        pages = [self.page[number] for number in sorted({touch.page for touch in raw})]
        for page in pages:
            own = [touch for touch in raw if touch.page == page.number]
            page.bytes_asked = sum(map(self.asked_by, own))
        try:
            for region, group in groupby(pages, key=lambda page: page.region):
                faulted = list(group)
                if self.outward.now and self.outward.now.region == region:
                    self.on_hold = True
                    raise BatchIsCut
                self.stay(region)
                self.watch_return(region)
                self.find_frame(region, len(faulted))
                turn.served.add(region)
                self.count["faults"] += len(faulted)
                self.log.append(("arrival", region, self.count["touches"]))
                self.tell("fault", region)
                self.evict_as_asked()
                for page in self.tree(region, faulted):
                    page.is_wanted = True
                early = [
                    p
                    for p in self.region[region]
                    if p.is_wanted and p not in faulted and not p.has_room
                ]
                if early and self.prefetcher:
                    self.obey(self.prefetcher("prefetch", region, self.resident))
                    self.evict_as_asked()
                self.serving = {region}
                self.make_room_beside(region, faulted, len(faulted))
                self.serving = set()
                self.migrate(region, faulted)
                self.ask_observer()
            self.was_cut = False
        except BatchIsCut:
            self.was_cut = True
        self.close_bill()

    def fill_batch(self) -> list[Touch]:
        """Return the faults of the next batch.

        Without windows it is filled in the order of stalls. With them each µTLB raises as many
        faults as its window holds, and the µTLBs follow one another by number. A slot that stands
        for several thread blocks is on the µTLB of its first, and the windows grow with it.
        """
        near, most = self.machine.near, self.machine.driver.batch_faults
        if near.utlb_faults is None:
            return [touch for slot in self.waiting for touch in self.raised_by(slot)][:most]
        by_utlb: dict[int, list[Touch]] = defaultdict(list)
        for slot in self.waiting:
            sm = slot.number * self.width % near.sms  # thread blocks go to the SMs in turn
            by_utlb[sm // near.utlb_sms] += self.raised_by(slot)
        window = near.utlb_faults * self.width
        return [touch for utlb in sorted(by_utlb) for touch in by_utlb[utlb][:window]][:most]

    def raised_by(self, slot: Slot) -> list[Touch]:
        """Return the faults of a slot: of the touch that it waits for and of those behind it that
        do not depend on it, as many as a block raises at once.

        Loads do not depend on loads, nor stores on stores. After a cut batch, slots raise only what
        they wait for.
        """
        near = self.machine.near
        reach = 1 if self.was_cut else near.block_faults or near.utlb_faults or 1
        window = islice(slot.todo, reach)
        first = slot.todo[0]
        alike = takewhile(lambda touch: touch.write == first.write, window)
        return [touch for touch in alike if touch is first or self.is_absent(touch.page)]

    def is_absent(self, number: int) -> bool:
        """Return whether a touch of this page would fault now."""
        page = self.page.get(number)
        return page is not None and not (page.has_room or page.prefers_far or page.is_asked)

    def asked_by(self, touch: Touch) -> int:
        """Return how many bytes of its page a fault asks for.

        Many threads together ask for all they use; one access, of less than 128 bytes, for what the
        hardware asks for it.
        """
        return touch.bytes if touch.bytes >= 128 else self.fault_bytes

    @property
    def fault_bytes(self) -> int:
        return self.machine.driver.fault_bytes or self.trace.geometry.page

    def serve_prefetches(self) -> None:
        turn = self.begin_turn(self.no_prefetch_before)
        self.after_faults = False
        try:
            for _ in range(min(REGIONS_PER_PREFETCH_TURN, max(1, self.room // 2))):
                if not self.to_prefetch:
                    break
                region = self.to_prefetch[0]
                wanted = [
                    page for page in self.region[region] if page.is_wanted and not page.has_room
                ]
                if wanted:
                    if self.outward.now and self.outward.now.region == region:
                        self.on_hold = True
                        raise BatchIsCut
                    self.stay(region)
                    self.find_frame(region, len(wanted))
                    turn.served.add(region)
                    self.log.append(("arrival", region, self.count["touches"]))
                    self.tell("prefetch", region)
                    self.evict_as_asked()
                    self.serving = {region}
                    self.make_room_beside(region, [], len(wanted))
                    self.serving = set()
                    self.migrate(region, [])
                self.to_prefetch.pop(0)
        except BatchIsCut:
            pass
        self.close_bill()

    def make_room_beside(self, region: int, faulted: list[Page], had: int) -> None:
        """Take frames for wanted pages, where frames are pages; drop those that get none.

        ``had``: frames of the region that are taken already. Evictions may lead to more requests.
        """
        wanted: list[Page] = []
        while self.machine.near.frame == "page":
            wanted = [
                p
                for p in self.region[region]
                if p.is_wanted and p not in faulted and not p.has_room
            ]
            if len(faulted) + len(wanted) <= had:
                break
            try:
                self.find_frame(region, len(faulted) + len(wanted))
            except BatchIsCut:
                for page in wanted[had - len(faulted) :]:
                    page.is_wanted = False
                break
            had = len(faulted) + len(wanted)

    def launch(self, number: int) -> None:
        """Send a launch to the policies and execute their requests before it begins."""
        if not self.scripts:
            return
        if self.turn:
            self.end_turn()
        while self.on_hold:
            self.end_copy()
        self.begin_turn(self.now)
        self.tell("launch", number)
        self.evict_as_asked()
        self.close_bill()
        self.end_turn()
        self.no_prefetch_before = self.now
        while self.to_prefetch:
            self.serve_prefetches()
            self.end_turn()
            while self.on_hold:
                self.end_copy()

    @property
    def resident(self) -> set[int]:
        """Regions with a frame: their pages are near, coming, or sampled."""
        return {page.region for page in self.page.values() if page.has_room or page.is_sampled}

    @property
    def holding(self) -> set[int]:
        """Regions that policies see as resident."""
        return self.resident | self.serving

    @property
    def frames_used(self) -> int:
        """Resident regions or, where frames are pages, those near or arriving and the sampled
        ones, which keep theirs.
        """
        leaving = self.outward.now.frames if self.outward.now else 0
        if self.machine.near.frame == "region":
            return len(self.resident | self.serving) + leaving
        return sum(page.has_room or page.is_sampled for page in self.page.values()) + leaving

    def find_frame(self, region: int, pages: int = 0) -> None:
        """Make room for one more region, or for so many pages."""
        need = pages if self.machine.near.frame == "page" else 1
        if self.machine.near.frame == "region" and region in self.resident:
            return
        while self.frames_used + need > self.frames:
            if self.outward.now:
                self.on_hold = True
                raise BatchIsCut
            self.count["decisions"] += 1
            if self.user_space:
                self.turn.deciding += self.machine.driver.decision
            victim = self.choose(self)
            if victim in self.turn.served:
                raise BatchIsCut
            if self.inward.now and self.inward.now.region == victim:
                self.on_hold = True
                raise BatchIsCut
            assert victim in self.resident
            self.evict(victim, self.machine.driver.victims_mapped)
        self.count["frames_peak"] = max(self.count["frames_peak"], self.frames_used + need)

    def evict(self, region: int, mapped: bool = False) -> None:
        driver, back = self.machine.driver, self.depart(region, mapped)
        self.turn.handling += driver.evict_overhead + runs_of(back) * driver.copy_overhead
        self.turn.outward += self.way_out(back)
        self.turn.queue_copy(self.way_out(back))

    def way_out(self, back: list[Page]) -> float:
        """Return how long the link takes to write pages of a region back."""
        link = self.machine.link
        whole = len(back) * self.trace.geometry.page / link.outward
        return whole + runs_of(back) * link.run_overhead_outward

    def depart(self, region: int, mapped: bool) -> list[Page]:
        """Take a region's pages away; return those that are to be written back.

        What a runtime sends to the CPU is mapped there.
        """
        self.count["evictions"] += 1
        self.evicted.append(region)
        self.log.append(("eviction", region, self.count["touches"]))
        self.tell("eviction", region)
        self.forget(region)
        leaving = [page for page in self.region[region] if page.is_near]
        back = [p for p in leaving if p.was_written or not (self.dirty_only or p.read_mostly)]
        self.count["pages_evicted"] += len(leaving)
        self.count["pages_written_back"] += len(back)
        self.count["pages_unused"] += sum(not page.was_touched for page in leaving)
        for page in back:
            page.has_data = True
        for page in leaving:
            page.on_cpu |= mapped and page.has_data
            page.is_near = page.was_touched = page.was_written = False
        return back

    def migrate(self, region: int, faulted: list[Page]) -> int:
        """Migrate faulted and wanted pages; return how many did not fault."""
        turn = self.turn
        moving = [
            p for p in self.region[region] if (p in faulted or p.is_wanted) and not p.has_room
        ]
        handling, inward = self.bring(region, moving, faulted)
        turn.handling += handling
        turn.inward += inward
        turn.queue_copy(inward)
        for page in self.region[region]:
            page.is_wanted = False
        for page in moving:
            page.is_asked = False
        turn.arriving += moving
        early = len([page for page in moving if page not in faulted])
        self.count["pages_prefetched"] += early
        return early

    def bring(self, region: int, moving: list[Page], faulted: list[Page]) -> tuple[float, float]:
        """Let pages of a region arrive; return the times of handling and transfer.

        Of a page that faulted in part, that part is a copy and the rest is in the copy of its run.
        """
        link, driver, size = self.machine.link, self.machine.driver, self.trace.geometry.page
        moved = [page for page in moving if page.has_data]
        runs = runs_of(moved)
        copies = runs + sum(page in faulted and self.is_partly_asked(page) for page in moved)
        mapped_kib = sum(page.on_cpu for page in moving) * size / 1024
        for page in moving:
            page.is_arriving, page.on_cpu = True, False
        self.count["pages_in"] += len(moved)
        self.count["pages_born"] += len(moving) - len(moved)
        self.count["copies_in"] += copies
        each = driver.unmap_per_kib
        if not faulted and driver.unmap_prefetched_per_kib is not None:
            each = driver.unmap_prefetched_per_kib
        handling = driver.region_overhead + mapped_kib * each + runs * driver.copy_overhead
        if region not in self.known:
            handling += driver.first_overhead
        self.known.add(region)
        return handling, copies * link.run_overhead + len(moved) * size / link.inward

    def is_partly_asked(self, page: Page) -> bool:
        """Return whether its faults ask for less than the page, rounded up to whole faults."""
        parts = math.ceil(max(1, page.bytes_asked) / self.fault_bytes)
        return parts * self.fault_bytes < self.trace.geometry.page

    # Lifetimes

    def free(self, dead: list[Page]) -> None:
        """Discard pages whose data died."""
        for region, group in groupby(dead, key=lambda page: page.region):
            self.discard(region, list(group))
            self.let_streams_evict()
        self.look_again(self.now)

    def discard(self, region: int, dead: list[Page]) -> None:
        near = [page for page in dead if page.has_room]
        if near and not any(p.has_room for p in self.region[region] if p not in dead):
            self.log.append(("eviction", region, self.count["touches"]))
            self.freed.append(region)
            self.tell("free", region)
        self.count["pages_discarded"] += len(near)
        for page in dead:
            if self.turn and page in self.turn.arriving:
                self.turn.arriving.remove(page)
            page.is_near = page.is_arriving = page.was_touched = page.was_written = False
            page.is_wanted = page.is_asked = page.has_data = page.on_cpu = False

    # Copy streams

    def copy(self, copies: Any) -> None:
        """Ask for the program's copies; wait where it does."""
        for c in copies:
            if c.to == "near":
                for number in range(c.first_page, c.first_page + c.pages):
                    if number in self.page:
                        self.ask_in(self.page[number])
            else:
                numbers = set(range(c.first_page, c.first_page + c.pages))
                for region in sorted(self.region):
                    if {p.number for p in self.region[region]} <= numbers:
                        self.ask_out(region)
        for c in copies:
            numbers = range(c.first_page, c.first_page + c.pages) if c.wait else ()
            while any(map(self.is_on_its_way, numbers)):
                self.start_copies()
                if self.next_end() < math.inf:
                    self.end_next()

    def is_on_its_way(self, number: int) -> bool:
        region = number // self.trace.geometry.pages_per_region
        asked = region in self.outward.asked and region not in self.staying
        leaving = asked or bool(self.outward.now and self.outward.now.region == region)
        return leaving or (number in self.page and self.page[number].is_asked)

    def ask_in(self, page: Page) -> None:
        self.stay(page.region)
        if page.has_room or page.is_asked or page.prefers_far:
            return
        page.is_asked = True
        if page.region not in self.inward.asked:
            self._ask(self.inward, page.region)

    def ask_out(self, region: int) -> None:
        if region in self.resident and region != self.going:
            self.staying.discard(region)
            if region not in self.outward.asked:
                self._ask(self.outward, region)

    def _ask(self, stream: Stream, region: int) -> None:
        if not stream.asked and not stream.now:
            stream.free_from = max(stream.free_from, self.now)
        stream.asked.append(region)

    def stay(self, region: int) -> None:
        if region in self.outward.asked:
            self.staying.add(region)

    def look_again(self, moment: float) -> None:
        for stream in (self.inward, self.outward):
            if stream.stuck:
                stream.stuck = False
                stream.free_from = max(stream.free_from, moment)

    def start_copies(self) -> None:
        while self.inward.can_start or self.outward.can_start:
            if self.outward.can_start:
                self.start_out()
            else:
                self.start_in()

    def in_use(self, region: int) -> bool:
        served = self.turn is not None and region in self.turn.served
        return served or bool(self.inward.now and self.inward.now.region == region)

    def start_out(self) -> None:
        region = self.outward.asked[0]
        goes = region not in self.staying and region in self.resident
        if goes and self.in_use(region):
            self.outward.stuck = True
            return
        self.outward.asked.pop(0)
        self.staying.discard(region)
        self.inward.stuck = False
        if goes:
            self.leave(region)

    def leave(self, region: int) -> None:
        before = self.frames_used
        self.going = region
        back = self.depart(region, mapped=True)
        self.going = -1
        frames = before - self.frames_used
        if back:
            time = self.way_out(back) * (self.crowded if self.inward.now else 1.0)
            self.time["link_out_time"] += time
            begin = self.outward.free_from
            if self.turn:
                time += max(0.0, min(self.turn.outward, self.turn.end - begin))
            self.outward.now = Transfer(region, begin, begin + time, frames=frames)
        self.let_streams_evict()

    @property
    def crowded(self) -> float:
        link = self.machine.link
        return max(1.0, (link.inward + link.outward) / link.both)

    def let_streams_evict(self) -> None:
        while self.to_evict:
            self.ask_out(self.to_evict.pop()[0])

    def start_in(self) -> None:
        region = self.inward.asked[0]

        def asked() -> list[Page]:
            return [p for p in self.region[region] if p.is_asked and not p.is_arriving]

        room = len(asked())
        if room:
            if self.outward.now and self.outward.now.region == region:
                self.inward.stuck = True
                return
            if not self.find_frames_beside(region, room):
                self.inward.stuck = True
                return
        self.inward.asked.pop(0)
        if not room:
            return
        self.serving = {region}
        self.log.append(("arrival", region, self.count["touches"]))
        self.tell("prefetch", region)
        self.let_streams_evict()
        self.serving = set()
        pages = asked()[:room] if self.machine.near.frame == "page" else asked()
        for page in pages:
            page.is_wanted = False
        handling, time = self.bring(region, pages, [])
        handling, self.deciding = handling + self.deciding, 0.0
        self.count["pages_prefetched"] += len(pages)
        time *= self.crowded if self.outward.now else 1.0
        self.time["link_in_time"] += time
        begin = self.inward.free_from
        if self.turn:
            time += max(0.0, min(self.turn.inward, self.turn.end - begin))
        self.inward.now = Transfer(region, begin, begin + handling + time, handling, pages)
        if asked() and region not in self.inward.asked:  # while frames were found for the others
            self.inward.asked.append(region)
        late = [s for s in self.waiting if self.page[s.todo[0].page].is_asked]
        self.waiting = [s for s in self.waiting if s not in late]
        self.expecting += late

    def find_frames_beside(self, region: int, pages: int) -> bool:
        """Find frames for the inward stream; return False if it has to wait."""
        while True:
            need = pages
            if self.machine.near.frame == "region":
                need = region not in self.resident
            if self.frames_used + need <= self.frames:
                self.count["frames_peak"] = max(self.count["frames_peak"], self.frames_used + need)
                return True
            if self.outward.now or self.outward.asked:
                return False
            self.count["decisions"] += 1
            if self.user_space:
                self.deciding += self.machine.driver.decision
            victim = self.choose(self)
            if self.in_use(victim):
                return False
            assert victim in self.resident
            self.outward.free_from = max(self.outward.free_from, self.inward.free_from)
            self.leave(victim)

    def next_end(self) -> float:
        ends = [stream.now.end for stream in (self.inward, self.outward) if stream.now]
        return min([*ends, self.turn.end] if self.turn else ends, default=math.inf)

    def end_next(self) -> None:
        if self.turn and self.turn.end <= self.next_end():
            self.end_turn()
        else:
            self.end_copy()

    def end_copy(self) -> None:
        """End the copy that ends first."""
        came, left = self.inward.now, self.outward.now
        self.on_hold = False
        if came and not (left and left.end < came.end):
            self.inward.now = None
            for page in came.pages:
                if page.is_arriving:
                    page.is_arriving, page.is_asked, page.is_near = False, False, True
            if (exposed := came.end - self.now) > 0:
                handling = exposed * came.handling / (came.end - came.begin)
                self.time["fault_handling"] += handling
                self.time["transfer_in"] += exposed - handling
            self.inward.free_from = came.end
        else:
            came, self.outward.now = left, None
            if (exposed := came.end - self.now) > 0:
                self.time["transfer_out"] += exposed
            self.outward.free_from = came.end
        self.now = max(self.now, came.end)
        self.look_again(came.end)
        if came.pages:
            self.wake(came.end)

    def tree(self, region: int, faulted: list[Page]) -> set[Page]:
        if self.threshold is None:
            return set()
        pages = self.region[region]
        occupied = {p for p in pages if p.has_room or p in faulted}
        wanted = tree_rule(
            [p in occupied for p in pages],
            [pages.index(p) for p in faulted],
            self.threshold,
            self.trace.geometry.pages_per_region,
            self.machine.driver.round_tails,
        )
        return {pages[i] for i in wanted if not (pages[i].prefers_far or pages[i].is_asked)}

    # Observation

    def observed(self) -> set[int]:
        return {page.region for page in self.page.values() if page.is_sampled}

    def ask_observer(self) -> None:
        """Observe a region when few frames are free and counters are left."""
        per_region = (
            1 if self.machine.near.frame == "region" else self.trace.geometry.pages_per_region
        )
        if not self.observer or self.frames - self.frames_used > self.observable * per_region:
            return
        out = sum(page.is_sampled for page in self.page.values())
        if len(self.observed()) >= self.observable or out >= self.machine.driver.counters:
            return
        region = self.observer(self)
        if region is None or region in self.observed() or region in self.served:
            return
        here = [page for page in self.region[region] if page.is_near and not page.prefers_far]
        need = min(self.samples, len(here), self.machine.driver.counters - out)
        if need > 0:
            self.count["observations"] += 1
        for i, page in enumerate(here):
            if need > 0 and next(self.draws) % (len(here) - i) < need:
                need -= 1
                page.is_sampled = True
                page.is_near = page.was_written = False
                page.has_data = True
                out_time = self.trace.geometry.page / self.machine.link.outward
                self.turn.deciding += self.machine.driver.sample + out_time
                self.time["link_out_time"] += out_time
                self.count["pages_sampled"] += 1

    def notice(self, page: Page, time: float) -> None:
        if page.is_sampled and not page.is_noticed:
            page.is_noticed = True
            self.notices.append((time, page))

    def serve_notices(self) -> None:
        """Stop observing noticed regions and return their sampled pages."""
        noticed, self.notices = self.notices, []
        driver, fetched = self.machine.driver, 0
        for _, page in noticed:
            if not page.is_noticed:
                continue  # it left, or came home with another
            self.count["notifications"] += 1
            if fetched % driver.batch_notifications == 0:
                self.turn.deciding += driver.notification
            fetched += 1
            self.served.add(page.region)
            for own in (p for p in self.region[page.region] if p.is_sampled):
                own.is_sampled = own.is_noticed = False
                own.is_arriving = True
                self.turn.arriving.append(own)
                home = (
                    self.machine.link.run_overhead
                    + self.trace.geometry.page / self.machine.link.inward
                )
                self.turn.deciding += home
                self.time["link_in_time"] += home
                self.count["pages_home"] += 1
            self.log.append(("notice", page.region, self.count["touches"]))
            self.ask_observer()

    def forget(self, region: int) -> None:
        """Stop observing an evicted region and record its eviction for two epochs."""
        for page in self.region[region]:
            if page.is_sampled:
                page.is_sampled = page.is_noticed = page.was_touched = False
        if not self.observable:
            return
        self.leavings[-1].append(region)
        if len(self.leavings[-1]) == self.observable:
            if len(self.leavings) > 1 and not self.fixed_samples:
                self.adapt(self.returned[0] / self.observable)
            self.leavings.append([])
            self.returned = [self.returned[1], 0]

    def adapt(self, back: float) -> None:
        if back > 0.5:
            most = self.trace.geometry.pages_per_region // 2
            self.samples = max(1, min(2 * self.samples, most))
        elif back <= 0.2:
            self.samples = max(1, self.samples // 2)

    def watch_return(self, region: int) -> None:
        """Count the return of a region that left in this epoch or the one before, once."""
        if region in self.resident or not self.observable:
            return
        for age, epoch in (
            (1, self.leavings[-1]),
            (0, self.leavings[-2] if len(self.leavings) > 1 else []),
        ):
            if region in epoch:
                epoch[epoch.index(region)] = -1
                if region not in epoch:
                    self.returned[age] += 1
                return

    # Policies

    def tell(self, event: str, number: int) -> None:
        for script in self.scripts:
            self.obey(script(event, number, self.resident), script is self.placer)

    def obey(self, requests: list[Request], by_runtime: bool = False) -> None:
        for verb, *rest in requests:
            if verb == "evict":
                self.to_evict += [(region, by_runtime) for region in rest]
            elif verb == "evict_async":
                self.ask_out(*rest)
            elif verb == "threshold":
                self.threshold = rest[0] if rest[0] <= 100 else None
            else:
                for number in range(rest[0], rest[0] + rest[1]):
                    if number in self.page:
                        do = {
                            "advise": self.advise,
                            "prefetch": self.want,
                            "prefetch_async": self.ask_in,
                        }[verb]
                        do(self.page[number], *rest[2:])

    def advise(self, page: Page, prefer: str | None) -> None:
        if prefer in ("read-mostly", "read-write"):
            page.read_mostly = prefer == "read-mostly"
        else:
            page.advised_far = prefer == "far"

    def want(self, page: Page) -> None:
        if page.has_room or page.prefers_far or page.is_asked:
            return
        page.is_wanted = True
        if page.region not in self.to_prefetch:
            self.to_prefetch.append(page.region)

    def evict_as_asked(self) -> None:
        """Evict by request, newest first, but for regions gone or served in this turn."""
        while self.to_evict:
            region, by_runtime = self.to_evict.pop()
            copied = self.inward.now and self.inward.now.region == region
            if region in self.resident and region not in self.served and not copied:
                self.evict(region, by_runtime)


def xorshift(x: int) -> Iterator[int]:
    """xorshift64*, upper 31 bits (Vigna, 2016)."""
    word = (1 << 64) - 1
    while True:
        x ^= x >> 12
        x = (x ^ x << 25) & word
        x ^= x >> 27
        yield (x * 0x2545F4914F6CDD1D & word) >> 33


def runs_of(pages: list[Page]) -> int:
    """Return how many contiguous runs these pages of one region form."""
    numbers = {page.number for page in pages}
    return sum(number - 1 not in numbers for number in numbers)


def tree_rule(
    occupied: list[bool], faulted: list[int], threshold: int, leaves: int, round_up: bool = False
) -> set[int]:
    """Return tree prefetch: for each fault the largest node more than ``threshold`` % occupied.

    ``occupied`` may be shorter than ``leaves``: an object's last region ends early, and its nodes
    with it; with ``round_up`` they end at the next power of two.
    """
    end = len(occupied)
    if round_up:
        end = next(2**n for n in range(leaves) if 2**n >= end)
    taken: set[int] = set()
    for leaf in faulted:
        nodes = []
        size = 1
        while size <= leaves:
            node = [i for i in range(end) if i // size == leaf // size]
            full = sum(occupied[i] for i in node if i < len(occupied))
            if size == 1 or 100 * full > threshold * len(node):
                nodes.append(node)
            size *= 2
        taken.update(max(nodes, key=len))
    return {i for i in taken if i < len(occupied) and not occupied[i]}


def future_of(trace: Given, slots: int) -> dict[int, list[float]]:
    """Return the places of each region's touches, if slots walk in step and nothing is absent.

    The place of a touch before which the region holds no data is infinite.
    """
    regions: list[int] = []
    births: set[int] = set()  # touches of regions without data
    unwritten = trace.unwritten()
    data = {
        number
        for o in trace.objects
        for number in range(o.first_page, o.first_page + o.pages)
        if not (unwritten[number] and trace.first_touch)
    }
    for kernel in trace.kernels:
        blocks = deque(deque(block) for block in kernel.blocks if block)
        lanes: list[deque[Touch]] = [deque() for _ in range(max(1, slots // kernel.width))]
        while blocks or any(lanes):
            for i, lane in enumerate(lanes):
                if not lane and blocks:
                    lanes[i] = blocks.popleft()
                if lanes[i]:
                    page, per_region = lanes[i].popleft().page, trace.geometry.pages_per_region
                    region = page // per_region
                    if data.isdisjoint(range(region * per_region, (region + 1) * per_region)):
                        births.add(len(regions))
                    data.add(page)
                    regions.append(region)
        for first, end in kernel.told.get("frees", ()):
            data.difference_update(range(first, end))
    places = defaultdict(list)
    for place, region in enumerate(regions):
        places[region].append(math.inf if place in births else place)
    return places


# Victims, by the log alone


def lrm(r: Reference) -> int:
    return min(r.holding, key=lambda region: _last(r, region))


def lru(r: Reference) -> int:
    """Return the region whose last known use, a fault or a notification, is oldest."""
    return min(r.holding, key=lambda region: _last(r, region, ("arrival", "notice")))


def watch_lru(r: Reference) -> int | None:
    free = r.holding - r.observed()
    return min(free, key=lambda region: _last(r, region, ("arrival", "notice"))) if free else None


def mru(r: Reference) -> int:
    free = r.holding - r.served
    return max(free or r.holding, key=lambda region: _last(r, region))


def fifo(r: Reference) -> int:
    return min(r.holding, key=lambda region: _stay(r, region)[0])


def lru_ideal(r: Reference) -> int:
    def latest(region: int) -> tuple[int, int]:
        _, came = _stay(r, region)
        last = max(
            (i for i, touched in enumerate(r.touched_regions) if touched == region), default=-1
        )
        return max(came, last), region

    return min(r.holding, key=latest)


def belady(r: Reference) -> int:
    def due(region: int) -> tuple[float, int]:
        places = r.in_order[region]
        done = r.touched_regions.count(region)
        return (places[done] if done < len(places) else math.inf), -region

    free = r.holding - r.served
    return max(free, key=due) if free else max(r.holding)


def clock() -> Callable[[Reference], int]:
    """Return CLOCK with a hand of its own, for one run."""
    ring: list[int] = []
    passed: dict[int, int] = {}  # a touch with a later number than this sets the bit
    read = 0

    def victim(r: Reference) -> int:
        nonlocal read
        for kind, region, when in r.log[read:]:
            if kind == "eviction":
                ring.remove(region)
            elif region not in ring:
                ring.append(region)
                passed[region] = when
        read = len(r.log)
        while ring[0] in r.touched_regions[passed[ring[0]] + 1 :]:
            passed[ring[0]] = len(r.touched_regions) - 1
            ring.append(ring.pop(0))
        return ring[0]

    return victim


def _last(r: Reference, region: int, kinds: tuple[str, ...] = ("arrival",)) -> int:
    """Return the place in the log of the latest migration into a region, or of another kind."""
    return max(i for i, (kind, of, _) in enumerate(r.log) if kind in kinds and of == region)


def _stay(r: Reference, region: int) -> tuple[int, int]:
    """Return the place in the log and the touches at which the region got its frame."""
    mine = [(i, kind, when) for i, (kind, of, when) in enumerate(r.log) if of == region]
    gone = max((n for n, (_, kind, _) in enumerate(mine) if kind == "eviction"), default=-1)
    return mine[gone + 1][0], mine[gone + 1][2]
