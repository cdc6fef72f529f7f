"""A second simulator of three tiers, to test the compiled one: plain, slow and independent.

It follows GMT's text (2.1, 2.2) and docs/gmt.md, not the compiled code: frames are a list, tiers
are lists, and a page's history is a list of the tiers that would have been right.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from tidegate.machine.machine import Machine

STAY, MIDDLE, FAR = "stay", "middle", "far"
MOST_STAYS = 64


class Placement:
    """Base of placements. ``full``: what leaves a full middle, the "oldest" or the "newcomer"."""

    full, keeps_middle, by_cpu = "oldest", True, False
    read_ahead = 0  # pages an SSD read brings to a page cache; 0: the middle is none

    def touched(self, world: World, page: int) -> None: ...
    def returned(self, world: World, page: int, away: int) -> None: ...

    def place(self, page: int) -> str:
        raise NotImplementedError


class Bam(Placement):
    keeps_middle = False

    def place(self, page: int) -> str:
        return FAR


class Order(Placement):
    def place(self, page: int) -> str:
        return MIDDLE


class Hmm(Order):
    """A page cache that reads ``read_ahead`` pages together, or with 0 the order of tiers."""

    by_cpu = True

    def __init__(self, read_ahead: int = 2):
        self.read_ahead = read_ahead


class Random(Placement):
    """A coin for every victim: splitmix64, counted from 1."""

    def __init__(self, seed: int = 0, share: float = 0.5):
        self.seed, self.share, self.drawn = seed, share, 0

    def place(self, page: int) -> str:
        self.drawn += 1
        z = ((self.seed + 1) * 0xD1342543DE82EF95 + self.drawn * 0x9E3779B97F4A7C15) % 2**64
        z = ((z ^ z >> 30) * 0xBF58476D1CE4E5B9) % 2**64
        z = ((z ^ z >> 27) * 0x94D049BB133111EB) % 2**64
        return MIDDLE if ((z ^ z >> 31) >> 11) / 2**53 < self.share else FAR


class Reuse(Placement):
    """GMT-Reuse. ``batch`` and ``samples`` are in pairs, as they are for this near memory."""

    def __init__(
        self,
        near: int,
        middle: int,
        batch: int,
        samples: int,
        window: int = 64,
        idle: float = 0.8,
        full: str = "discard",
        reach: str = "middle",
        unknown: str = "middle",
        every: int = 1,
        weights: str = "page",
    ):
        self.shared = weights == "shared"
        self.near, self.limit = near, middle if reach == "middle" else near + middle
        self.batch, self.samples, self.window, self.idle, self.every = (
            batch,
            samples,
            window,
            idle,
            every,
        )
        self.full = "newcomer" if full == "discard" else "oldest"
        self.unknown = MIDDLE if unknown == "middle" else FAR
        self.slope, self.offset = 1.0, 0.0
        self.pairs, self.fresh, self.sampled = [(1, 0)], list[tuple[int, int]](), 0
        # the tier that would have been right at a page's latest return
        self.right: dict[int, str] = {}
        self.weights: dict[tuple[int, str], dict[str, int]] = defaultdict(
            lambda: dict.fromkeys((STAY, MIDDLE, FAR), 0)
        )
        self.latest: dict[int, str | None] = {}  # what was predicted
        self.recent: deque[bool] = deque(maxlen=window)  # was the reuse of the latest victims long?
        self.predictions = self.hits = 0

    def touched(self, world: World, page: int) -> None:
        """Sample a pair: touches, and other pages, since this page's last touch.

        After every batch fit a line through all pairs.
        """
        before = world.trail[:-1]
        if page in before and self.sampled < self.samples and page % self.every == 0:
            since = len(before) - before[::-1].index(page)
            self.fresh.append((len(world.trail) - since, len(set(before[since:]))))
            self.sampled += 1
            if len(self.fresh) == self.batch or self.sampled == self.samples:
                self.pairs += self.fresh
                self.fresh = []
                self.fit()

    def fit(self) -> None:
        n, x, y = float(len(self.pairs)), 0.0, 0.0
        xx, xy = 0.0, 0.0
        for a, b in self.pairs:
            x, y, xx, xy = x + a, y + b, xx + a * a, xy + a * b
        if n * xx - x * x > 0:
            self.slope = (n * xy - x * y) / (n * xx - x * x)
            self.offset = (y - self.slope * x) / n

    def returned(self, world: World, page: int, away: int) -> None:
        distance = self.slope * away + self.offset
        right = STAY if distance < self.near else MIDDLE if distance < self.limit else FAR
        if self.latest.get(page) is not None:
            self.predictions += 1
            self.hits += self.latest[page] == right
        self.latest[page] = None
        if page in self.right:
            row = self.weights[-1 if self.shared else page, self.right[page]]
            if row[right] == 63 and not self.shared:
                for to in row:
                    row[to] //= 2
            row[right] += 1
        self.right[page] = right

    def place(self, page: int) -> str:
        if page not in self.right:
            return self.unknown
        state = self.right[page]
        row = self.weights[-1 if self.shared else page, state]
        most = max(row.values())
        found = (
            state
            if row[state] == most
            else next(to for to in (STAY, MIDDLE, FAR) if row[to] == most)
        )
        self.latest[page] = found
        if found == STAY:
            return STAY
        crowded = sum(self.recent) > int(self.idle * self.window)
        self.recent.append(found == FAR)
        return MIDDLE if crowded else found


@dataclass
class Servers:
    """Links and the SSD as queues: when each is free, and how long misses take, in ns."""

    machine: Machine
    page: int
    by_cpu: bool
    looks_up: bool
    shared: bool = True
    hybrid: bool = True
    spare: bool = False
    now: float = 0.0
    free: dict[str, float] = field(default_factory=lambda: defaultdict(float))

    def __post_init__(self) -> None:
        self.under_way: deque[float] = deque([0.0] * self.machine.near.slots)
        self.arrivals: dict[str, list[float]] = {"in": [0.0] * 8, "out": [0.0] * 8}
        self.batch_begin, self.batch = 0.0, list[int]()  # the driver's latest batch, its blocks

    def transfer(self, way: str, ready: float) -> float:
        """Move a page between near and middle: by DMA, or by zero-copy if eight more are moving."""
        link, storage = self.machine.link, self.machine.storage
        assert storage is not None
        rate = link.inward if way == "in" else link.outward
        if self.hybrid and self.arrivals[way][-8] <= ready:
            done = self.use(way, ready, link.run_overhead + self.page / rate)
        else:
            done = self.use(way, ready, self.page / (rate * link.remote_share))
            done = max(done, ready + storage.host_page)
        self.arrivals[way].append(done)
        return done

    def use(self, server: str, begin: float, time: float) -> float:
        self.free[server] = max(begin, self.free[server]) + time
        if self.shared and server in ("read", "write"):
            self.free["read"] = self.free["write"] = self.free[server]
        return self.free[server]

    def wait(self) -> None:
        """Wait for room among the misses under way."""
        self.now = max(self.now, self.under_way.popleft())

    def drain(self) -> None:
        self.now = max(self.now, *self.under_way)
        self.under_way = deque([0.0] * self.machine.near.slots)

    def write(self) -> float:
        assert self.machine.storage is not None
        return self.use("write", self.now, self.page / self.machine.storage.write)

    def miss(self, page: int, read: int, out: str) -> None:
        """``read``: pages read from the SSD. ``out``: where bytes of a victim go: "middle", "far"
        or "nowhere".
        """
        self.under_way.append(
            self.by_driver(page, read, out) if self.by_cpu else self.by_gpu(read, out)
        )

    def by_gpu(self, read: int, out: str) -> float:
        storage = self.machine.storage
        assert storage is not None
        gone = self.now
        if out == "middle":
            gone = self.transfer("out", self.now)
        elif out == "far":
            gone = self.write()
        ready = self.now + (storage.lookup if self.looks_up else 0.0)
        if not self.spare:
            ready = max(ready, gone)
        if not read:
            return max(gone, self.transfer("in", ready))
        time = read * self.page / storage.read
        return max(gone, self.use("read", ready, time), ready + storage.page_read)

    def by_driver(self, page: int, read: int, out: str) -> float:
        m, storage = self.machine, self.machine.storage
        assert storage is not None
        time = max(self.now, self.free["driver"])
        if self.now >= self.batch_begin or len(self.batch) == m.driver.batch_faults:
            self.batch_begin, self.batch = time, []
            time += m.driver.batch_overhead
        block = page * self.page >> 21
        time += m.link.run_overhead + m.driver.region_overhead * (block not in self.batch)
        self.batch.append(block)
        if out != "nowhere":
            time += self.page / m.link.outward
        if out == "far":
            self.write()
        if read:
            reading = storage.page_read + (read - 1) * self.page / storage.read
            time = self.use("read", time, reading)
        time += self.page / m.link.inward
        self.free["driver"] = time
        return time


class World:
    """One run: ``touches`` are (page, written, bytes)."""

    def __init__(
        self,
        touches: Sequence[tuple[int, bool, int]],
        near: int,
        middle: int,
        placement: Placement,
        machine: Machine,
        page_bytes: int = 65536,
        flush: bool = True,
        hybrid: bool = True,
        spare: bool = False,
    ):
        if spare:
            near = max(1, near - machine.near.slots)
        self.near, self.middle_room = near, middle if placement.keeps_middle else 0
        self.placement, self.machine = placement, machine
        self.frames: list[int] = []
        self.used: set[int] = set()  # CLOCK's bits
        self.dirty: set[int] = set()
        self.middle: list[int] = []
        self.dirty_copies: set[int] = set()  # of a page cache: written before the page went near
        self.left: dict[int, int] = {}
        self.trail: list[int] = []
        self.hand = self.hits = self.middle_hits = self.reads = self.writes = self.stays = 0
        self.time = Servers(
            machine,
            page_bytes,
            placement.by_cpu,
            self.middle_room > 0 and not placement.by_cpu,
            hybrid=hybrid,
            spare=spare,
        )
        self.caches = placement.read_ahead > 0 and self.middle_room > 0
        self.time.now += machine.near.launch_overhead
        self.touches = touches
        for page, written, size in touches:
            self.touch(page, written, size)
        self.time.drain()
        if flush:
            was_clean = set(self.frames) - self.dirty
            for page in list(self.frames):
                if page in self.dirty and placement.by_cpu:
                    self.time.now += page_bytes / machine.link.outward
                self.clean(page)
            for page in list(self.middle):
                self.clean(page)
                if page in self.dirty_copies and page in was_clean:
                    self.dirty.add(page)
                    self.clean(page)
            self.time.now = max(self.time.now, self.time.free["write"])

    def touch(self, page: int, written: bool, size: int) -> None:
        self.trail.append(page)
        self.placement.touched(self, page)
        self.time.now += size / self.machine.near.bandwidth
        if page in self.frames:
            self.hits += 1
            self.used.add(page)
        else:
            self.time.wait()
            if page in self.left:
                self.placement.returned(self, page, len(self.trail) - self.left[page])
            far = page not in self.middle
            self.reads += far
            self.middle_hits += not far
            if not far and self.caches:
                self.dirty_copies |= self.dirty & {page}
                self.dirty.discard(page)
            elif not far:
                self.middle.remove(page)
            out = "nowhere"
            if len(self.frames) < self.near:
                self.frames.append(page)
            else:
                out = self.make_room(page)
            read = self.read_through(page) if far and self.caches else int(far)
            self.time.miss(page, read, out)
        if written:
            self.dirty.add(page)

    def make_room(self, newcomer: int) -> str:
        """Let CLOCK find pages until the placement sends one away."""
        for tries in range(min(MOST_STAYS, self.near - 1) + 1):
            while self.frames[self.hand] in self.used:
                self.used.remove(self.frames[self.hand])
                self.hand = (self.hand + 1) % self.near
            victim = self.frames[self.hand]
            to = self.placement.place(victim)
            if to != STAY:
                break
            if tries == min(MOST_STAYS, self.near - 1):
                to = MIDDLE
                break
            self.stays += 1
            self.hand = (self.hand + 1) % self.near
        self.frames[self.hand] = newcomer
        self.hand = (self.hand + 1) % self.near
        self.left[victim] = len(self.trail)
        if self.caches and (victim in self.middle or victim not in self.dirty):
            # a copy is there, or the SSD's is as good
            moved = victim in self.dirty
            self.dirty |= self.dirty_copies & {victim}
            self.dirty_copies.discard(victim)
            return "middle" if moved else "nowhere"
        if to == MIDDLE and self.middle_room:
            if len(self.middle) == self.middle_room and self.placement.full == "oldest":
                self.spill()
            if len(self.middle) < self.middle_room:
                self.middle.append(victim)
                return "middle"
        if victim not in self.dirty:
            return "nowhere"
        self.dirty.remove(victim)
        self.writes += 1
        return "far"

    def read_through(self, page: int) -> int:
        """Read a page and its absent neighbours to the page cache; return how many."""
        ahead = self.placement.read_ahead
        first = page // ahead * ahead
        last = max(page for page, _, _ in self.touches)
        there = {*self.frames, *self.middle} - {page}
        wanted = [p for p in range(first, min(first + ahead, last + 1)) if p not in there]
        for other in wanted:
            if len(self.middle) == self.middle_room:
                self.spill()
            self.middle.append(other)
        return len(wanted)

    def spill(self) -> None:
        """Let the oldest page of the middle go; of a near page that is a copy."""
        page = self.middle.pop(0)
        if page not in self.frames:
            self.clean(page)
        elif page in self.dirty_copies:
            self.dirty_copies.remove(page)
            self.writes += 1
            self.time.write()

    def clean(self, page: int) -> None:
        """Write a dirty page from where it is."""
        if page in self.dirty:
            self.dirty.remove(page)
            self.writes += 1
            self.time.write()

    def tier(self, page: int) -> str:
        return "near" if page in self.frames else "middle" if page in self.middle else "far"


State = tuple[frozenset[int], frozenset[int]]  # near and middle


def fewest_reads(pages: Sequence[int], near: int, middle: int) -> int:
    """Return the fewest SSD reads of all victims, places and spilled pages, tried one by one."""
    worlds: dict[State, int] = {(frozenset(), frozenset()): 0}
    for page in pages:
        after: dict[State, int] = {}
        for (close, host), reads in worlds.items():
            for state, cost in _decisions(page, close, host, near, middle):
                after[state] = min(after.get(state, reads + cost), reads + cost)
        worlds = after
    return min(worlds.values())


def _decisions(
    page: int, close: frozenset[int], host: frozenset[int], near: int, middle: int
) -> list[tuple[State, int]]:
    if page in close:
        return [((close, host), 0)]
    cost, host = int(page not in host), host - {page}
    if len(close) < near:
        return [((close | {page}, host), cost)]
    found = []
    for victim in close:
        rest = close - {victim} | {page}
        found.append(((rest, host), cost))
        kept = (
            [host]
            if len(host) < middle
            else [host - {spilled} for spilled in host]
            if middle
            else []
        )
        found += [((rest, less | {victim}), cost) for less in kept]
    return found


def distinct_written(touches: Sequence[tuple[int, bool, int]]) -> int:
    return len({page for page, written, _ in touches if written})
