"""A run over three tiers: one trace, one machine, a placement and maybe an eviction policy."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from operator import index
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tidegate.compiled.array_table import ArrayTable
from tidegate.compiled.jit import jit
from tidegate.errors import PolicyError, TidegateError
from tidegate.machine.machine import Machine
from tidegate.policies.interface.declaration import check_declared, handled_events
from tidegate.policies.interface.policy import EvictionPolicy, label
from tidegate.policies.interface.tier_policy import (
    NEVER,
    RETURN,
    SPILL,
    TOUCH,
    VICTIM,
    Spill,
    TierPolicy,
)
from tidegate.policies.interface.visibility import Everything
from tidegate.simulation.calling import PolicyRun
from tidegate.simulation.gpu.memory import TouchColumns, columns_of
from tidegate.simulation.recorded import Recording, read_recording
from tidegate.simulation.recording import TIER_LAYERS, Window, make_recorder
from tidegate.simulation.tiers import engine
from tidegate.simulation.tiers.books import check_books
from tidegate.simulation.tiers.candidates import PolicyAddresses
from tidegate.simulation.tiers.jitter import jittered_launches
from tidegate.simulation.tiers.recorded_moves import MARKS, mark, record_touches
from tidegate.simulation.tiers.relay import TierMechanism
from tidegate.simulation.tiers.service import ServiceCosts, costs_of
from tidegate.simulation.tiers.state import (
    BAD_PLACE,
    BAD_SPILL,
    BAD_VICTIM,
    COUNTS,
    FINISHED,
    IN_MIDDLE,
    WAIT_DRIVER,
    WAIT_HOST,
    WAIT_STORAGE,
    TierConstants,
    Tiers,
    make_tiers,
)
from tidegate.simulation.tiers.timeline import Timeline
from tidegate.simulation.tiers.view import NearTier, SimulatedTiers
from tidegate.trace.trace import Segment, Trace, check_segment

MOST_STAYS = 64  # candidates that may stay before one has to go; the paper does not say
BLOCK = 1 << 21  # bytes that the driver handles together
LAUNCH_COUNTS = ("touches", "middle_hits", "far_reads", "near_written", "middle_written")


class Tiered(PolicyRun):
    """Three tiers of ``near`` and ``middle`` pages and an SSD, set up for a trace.

    ``eviction``: None is CLOCK. ``flush``: dirty pages are written at the end, and the run lasts
    until they are. ``shared``: the SSD reads and writes from one queue. ``read_ahead``: where the
    CPU serves misses, only the SSD's bandwidth counts. ``transfers``: by "hybrid" or "zero-copy".
    ``spare``: as many frames as misses may be under way are set apart, so that no page waits for
    its victim. ``jitter``: touches move by less than so many places. ``compiled``: the tiering
    policy is compiled if it can be and it pays. ``checked``: it runs in Python, and what compiled
    code would not notice is checked (see checked.py). ``window``: what to record (recording.py).
    """

    def __init__(
        self,
        trace: Trace,
        machine: Machine,
        near: int,
        middle: int,
        placement: TierPolicy,
        eviction: EvictionPolicy | None = None,
        *,
        service: str | None = None,
        shared: bool = True,
        read_ahead: bool = False,
        transfers: str = "hybrid",
        spare: bool = False,
        jitter: int = 0,
        most_stays: int = MOST_STAYS,
        flush: bool = True,
        compiled: bool = True,
        checked: bool | None = None,
        window: Window | None = None,
    ):
        _check_sizes(near, middle, most_stays)
        _check_policies(placement, eviction, near)
        self._policies = (placement,) if eviction is None else (placement, eviction)
        self._given_near = near
        if spare:
            near = max(1, near - machine.near.slots)
        self.trace, self.machine, self.near = trace, machine, near
        self.middle = middle if placement.keeps_middle else 0
        self.placement, self.eviction, self.flush = placement, eviction, flush
        self.service = service or placement.service
        self.settings: dict[str, Any] = {
            "service": self.service,
            "shared": shared,
            "read_ahead": read_ahead,
            "transfers": transfers,
            "spare": spare,
            "jitter": jitter,
            "most_stays": most_stays,
            "flush": flush,
        }
        self.costs: ServiceCosts = costs_of(
            machine,
            trace.geometry.page,
            self.service,
            self.middle > 0,
            shared,
            read_ahead,
            transfers,
            spare,
        )
        self._sees_future = any(
            isinstance(p.sees, Everything) and p.sees.future for p in (placement, eviction) if p
        )
        self.memory: Tiers = make_tiers(
            trace.pages,
            machine.near.slots,
            placement.sampling(near),
            self._sees_future,
            self._constants(most_stays),
            self.costs,
            make_recorder(window, trace.pages, len(MARKS), len(TIER_LAYERS)),
        )
        self.window, self._story_touches = window, [np.zeros(0, np.int64)]
        self.chooses = VICTIM in handled_events(placement)  # the placement, not CLOCK
        self.launches: dict[str, list[Any]] = {
            name: [] for name in ("name", "start", "end", *LAUNCH_COUNTS)
        }
        self.timeline = Timeline()
        self.notes: list[str] = []  # what a person should know of this run
        self.checked = os.environ.get("TIDEGATE_CHECKED") == "1" if checked is None else checked
        self.compiled = compiled

    def _constants(self, most_stays: int) -> TierConstants:
        """Return what the compiled engine asks of the policies, and sizes."""
        placement, eviction = self.placement, self.eviction
        handled = handled_events(placement)
        return TierConstants(
            near=self.near,
            middle=self.middle,
            makes_room=placement.makes_room,
            most_stays=min(most_stays, self.near - 1),
            clock=eviction is None and VICTIM not in handled,
            chooses=VICTIM in handled,
            wants_return=RETURN in handled,
            wants_touch=TOUCH in handled,
            wants_observe=eviction is not None
            and type(eviction).observe is not EvictionPolicy.observe,
            records=eviction is not None,
            inclusive=placement.inclusive and self.middle > 0,
            read_ahead=placement.read_ahead_pages,
            block_pages=max(1, BLOCK // self.trace.geometry.page),
        )

    def _run(self, progress: Callable[[int], None]) -> None:
        self._start()
        uses, done = self._uses(), 0
        nothing = np.zeros(0, np.int32)
        for name, segments in self._launches():
            start, before = self.time, self.counts
            engine.launch(self._table)
            for s in segments:
                check_segment(s, self.trace)
                next_uses = uses[done : done + s.touches] if len(uses) else nothing
                self._walk(columns_of(s, s.bytes), next_uses)
                done += s.touches
                progress(s.touches)
                self._compile_later()
            engine.settle(self._table)
            self._record(name, start, before)
        engine.finish(self._table, self.flush)
        self._record_walk(nothing)
        self.timeline.end(self.time, self.counts)
        check_books(self)
        self._finish()

    def _walk(self, touches: TouchColumns, next_uses: NDArray[np.int32]) -> None:
        """Make the touches of a segment, and add a row to the timeline every so many."""
        first, end = 0, len(touches.page)
        while first < end:
            last = min(end, first + self.timeline.until_row(self.memory.counts["touches"][0]))
            columns: Any = [column[first:last] for column in touches]
            part = TouchColumns(*columns)
            later = next_uses[first:last] if len(next_uses) else next_uses
            self._raise(int(engine.walk(self._table, self._addresses, part, later)))
            self._record_walk(part.page)
            self.timeline.add(self.time, self.counts)
            first = last

    def _record_walk(self, pages: NDArray[Any]) -> None:
        """Add the touches that were just made to the recording, if there is one."""
        if self.window is None:
            return
        first = int(self.memory.counts["touches"][0]) - len(pages)
        if len(pages):
            record_touches(self._table, pages, first)
        if self.window.regions == 1:
            own = np.flatnonzero(pages == self.window.first_region)
            self._story_touches.append(first + own)
        mark(self._table)

    def recording(self) -> Recording:
        """Return what a finished run recorded; of one page, with its touches between its moves."""
        ones = np.ones(self.trace.pages, np.int64)
        touches = int(self.memory.counts["touches"][0])
        found = read_recording(self.memory, MARKS, touches, ones, TIER_LAYERS)
        own = np.concatenate(self._story_touches)
        for line in found.story:
            line["touches"] = int(np.searchsorted(own, line["touch"]))
        return found

    def _launches(self) -> Iterator[tuple[str, Iterator[Segment]]]:
        return jittered_launches(self.trace, self.settings["jitter"])

    def _record(self, name: str, start: float, before: dict[str, int]) -> None:
        """Record a launch that is over."""
        counted = [self.counts[c] - before[c] for c in LAUNCH_COUNTS]
        for column, value in zip(self.launches, (name, start, self.time, *counted), strict=True):
            self.launches[column].append(value)

    def _in_python(self) -> Tiered:
        return Tiered(
            self.trace,
            self.machine,
            self._given_near,
            self.middle,
            self.placement,
            self.eviction,
            **self.settings,
            compiled=False,
            checked=True,
            window=self.window,
        )

    def _attach(self) -> TierMechanism:
        self.placement.attach(SimulatedTiers(self.memory, self.near, self.middle))
        if self.eviction is not None:
            self.eviction.attach(NearTier(self.eviction, self.trace, self.memory, self.near))
        return TierMechanism(self.memory, self.near, self.middle)

    def _connect(self) -> None:
        self.placement.memory.tiers = self.memory = self._mechanism.tiers  # type: ignore[attr-defined]
        self._table = ArrayTable(self.memory)
        # without an eviction policy the second is not called
        placement, eviction = self._choices[0].caller, self._choices[-1].caller
        self._addresses = PolicyAddresses(
            placement.address, placement.own, eviction.address, eviction.own
        )

    def _calls(self) -> int:
        c = self.counts
        return 2 * c["evictions"] + c["touches"] * bool(self.memory.constants["wants_touch"][0])

    def _uses(self) -> NDArray[np.int32]:
        """Return when the page of every touch is touched next, from 1; empty without the future."""
        if not self._sees_future:
            return np.zeros(0, np.int32)
        parts = [s.page for _, segments in self._launches() for s in segments]
        uses = np.concatenate(parts) if parts else np.zeros(0, np.int32)
        if len(uses) >= NEVER:
            raise TidegateError(
                f"a trace whose future is seen must have at most {NEVER - 1:,} touches, "
                f"got {len(uses):,}"
            )
        _next_uses(uses, np.full(self.trace.pages, NEVER, np.int32))
        return uses

    def _raise(self, stopped: int) -> None:
        if stopped == FINISHED:
            return
        self._raise_failure()
        by_eviction = self.eviction is not None and stopped == BAD_VICTIM
        chooser = self._policies[1 if by_eviction else 0]
        wrong = {
            BAD_PLACE: "answered place() with something else than Tier.STAY, MIDDLE or FAR",
            BAD_SPILL: "named a page in spill() that is not in the middle",
            BAD_VICTIM: "named a page in victim() that is not near",
        }[stopped]
        raise PolicyError(f"policy '{label(chooser)}' {wrong}")

    # Results

    @property
    def counts(self) -> dict[str, int]:
        return dict(zip(COUNTS, self.memory.counts[0].item(), strict=True))

    @property
    def time(self) -> float:
        return float(self.memory.clock["now"][0])

    @property
    def parts(self) -> dict[str, float]:
        """Parts of time.

        Waiting for the SSD is split by how long it read and wrote, for the host by direction.
        """
        clock, waits = self.memory.clock[0], self.memory.waits
        reading = clock["read_busy"] / ((clock["read_busy"] + clock["write_busy"]) or 1.0)
        inward = clock["in_busy"] / ((clock["in_busy"] + clock["out_busy"]) or 1.0)
        found = {
            "compute": clock["compute"] + clock["launching"],
            "fault_handling": waits[WAIT_DRIVER],
            "transfer_in": waits[WAIT_HOST] * inward,
            "transfer_out": waits[WAIT_HOST] * (1 - inward),
            "storage_read": waits[WAIT_STORAGE] * reading,
            "storage_write": waits[WAIT_STORAGE] * (1 - reading),
        }
        return {part: float(ns) for part, ns in found.items()}

    @property
    def busy(self) -> dict[str, float]:
        """How long each server was busy, in ns."""
        servers = {"driver": "driver", "storage_read": "read", "storage_write": "write"}
        servers |= {"link_in": "in", "link_out": "out"}
        return {name: float(self.memory.clock[f"{s}_busy"][0]) for name, s in servers.items()}

    def tier_of(self, page: int) -> str:
        """Return where a page is now: near, middle or far."""
        at = self.memory.where[page]
        return "near" if at >= 0 else "middle" if at <= IN_MIDDLE else "far"


def _check_sizes(near: int, middle: int, most_stays: int) -> None:
    """Raise if a size cannot be."""
    if near < 1:
        raise TidegateError(f"near memory must have at least 1 page, got {near}")
    if middle < 0:
        raise TidegateError(f"the middle must have at least 0 pages, got {middle}")
    if most_stays < 0:
        raise TidegateError(f"most_stays must be at least 0, got {most_stays}")


def _check_policies(placement: TierPolicy, eviction: EvictionPolicy | None, near: int) -> None:
    """Raise if the policies do not go together, or declare what cannot be."""
    for policy in filter(None, (placement, eviction)):
        check_declared(policy)
    handled = handled_events(placement)
    if eviction is not None and VICTIM in handled:
        raise TidegateError(
            f"{label(placement)} chooses victims itself; leave the eviction policy out"
        )
    _check_placement(placement, near)
    if placement.makes_room == Spill.ASKED and SPILL not in handled:
        raise PolicyError(
            f"{label(placement)} has no method spill(); makes_room = Spill.ASKED needs one"
        )


def _check_placement(placement: TierPolicy, near: int) -> None:
    """Raise PolicyError unless a placement declares itself properly."""
    if type(placement).place is TierPolicy.place:
        raise PolicyError(
            f"{label(placement)} has no method place(page); it must answer Tier.STAY, MIDDLE or FAR"
        )
    if placement.makes_room not in tuple(Spill):
        raise PolicyError(
            f"{label(placement)}: makes_room must be Spill.NOBODY, OLDEST or ASKED, "
            f"got {placement.makes_room!r}"
        )
    if placement.inclusive and placement.makes_room != Spill.OLDEST:
        raise PolicyError(
            f"{label(placement)}: makes_room must be Spill.OLDEST where inclusive is True"
        )
    if placement.read_ahead_pages < 1:
        raise PolicyError(
            f"{label(placement)}: read_ahead_pages must be at least 1, "
            f"got {placement.read_ahead_pages!r}"
        )
    try:
        batch, total, every = (index(n) for n in placement.sampling(near))
        fine = batch >= 0 and total >= 0 and every >= 1
    except Exception as error:
        raise PolicyError(
            f"{label(placement)}: sampling({near}) must return three numbers, got an error: {error}"
        ) from error
    if not fine:
        raise PolicyError(
            f"{label(placement)}: sampling({near}) must return pairs in a batch and in all, 0 or "
            f"more, and one page in 1 or more, got {(batch, total, every)}"
        )


@jit
def _next_uses(pages: Any, seen: Any) -> None:
    """Replace every page by the number of its next touch, from 1."""
    for i in range(len(pages) - 1, -1, -1):
        page = pages[i]
        pages[i] = seen[page]
        seen[page] = i + 1
