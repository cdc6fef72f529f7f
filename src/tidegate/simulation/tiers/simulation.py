"""Tiered: one run over three tiers, from a trace to balanced books."""

from __future__ import annotations

from collections.abc import Callable
from operator import index
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tidegate.compiled.array_table import ArrayTable
from tidegate.compiled.jit import jit
from tidegate.errors import BooksError, PolicyError, TidegateError
from tidegate.machine.machine import Machine
from tidegate.policies.interface.policy import EvictionPolicy, label
from tidegate.policies.interface.tier_events import RETURN, SPILL, TOUCH, VICTIM
from tidegate.policies.interface.tier_policy import ASKED, NOBODY, OLDEST, TierPolicy
from tidegate.policies.interface.visibility import Everything
from tidegate.registry import error_line
from tidegate.simulation.gpu.memory import columns_of
from tidegate.simulation.tiers import engine
from tidegate.simulation.tiers.relay import Twin, call_eviction, call_placement, defines
from tidegate.simulation.tiers.service import Costs, costs_of
from tidegate.simulation.tiers.state import (
    COMPUTE,
    COUNTS,
    DIRTY,
    IN_BUSY,
    IN_MIDDLE,
    LAUNCHING,
    NOW,
    OUT_BUSY,
    READ_BUSY,
    WAIT_DRIVER,
    WAIT_HOST,
    WAIT_STORAGE,
    WRITE_BUSY,
    Tiers,
    make_tiers,
)
from tidegate.simulation.tiers.view import NearTier, SimulatedTiers
from tidegate.trace.trace import Trace, check_segment

NEVER = 2**31 - 1  # when a page is touched next that is not touched again
MOST_STAYS = 64  # candidates that may stay before one has to go; the paper does not say
CENSUS = 1 << 16  # pages that are counted together
LAUNCH_COUNTS = ("touches", "middle_hits", "far_reads", "near_written", "middle_written")


class Tiered:
    """Three tiers of ``near`` and ``middle`` pages and an SSD, set up for a trace.

    ``eviction``: None is CLOCK. ``flush``: what is dirty at the end is written, and the run lasts
    until it is. ``shared``: the SSD reads and writes from one queue. ``read_ahead``: where the CPU
    serves misses, only the SSD's bandwidth shows.
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
        most_stays: int = MOST_STAYS,
        flush: bool = True,
        compiled: bool = True,
    ):
        if near < 1:
            raise TidegateError(
                f"near memory of {near} pages holds nothing; give it at least one page"
            )
        if middle < 0:
            raise TidegateError(f"a middle of {middle} pages is none; expected at least 0")
        if most_stays < 0:
            raise TidegateError(f"{most_stays} candidates cannot stay; expected at least 0")
        if eviction is not None and defines(placement, VICTIM):
            raise TidegateError(
                f"{label(placement)} chooses victims itself; leave the eviction policy out"
            )
        _check_placement(placement, near)
        if placement.makes_room == ASKED and not defines(placement, SPILL):
            raise PolicyError(
                f"{label(placement)} has makes_room = ASKED, but no method spill that could be asked"
            )
        self.trace, self.machine, self.near = trace, machine, near
        self.middle = middle if placement.keeps_middle else 0
        self.placement, self.eviction, self.flush = placement, eviction, flush
        self.service = service or placement.service
        self.settings = {
            "service": self.service,
            "shared": shared,
            "read_ahead": read_ahead,
            "most_stays": most_stays,
            "flush": flush,
        }
        self.costs: Costs = costs_of(
            machine, trace.geometry.page, self.service, self.middle > 0, shared, read_ahead
        )
        self._sees_future = any(
            isinstance(p.sees, Everything) and p.sees.future for p in (placement, eviction) if p
        )
        rules = engine.Rules(
            near=near,
            middle=self.middle,
            makes_room=placement.makes_room,
            most_stays=min(most_stays, near - 1),
            clock=eviction is None and not defines(placement, VICTIM),
            chooses=defines(placement, VICTIM),
            wants_return=defines(placement, RETURN),
            wants_touch=defines(placement, TOUCH),
            wants_observe=eviction is not None
            and type(eviction).observe is not EvictionPolicy.observe,
            records=eviction is not None,
        )
        self.m: Tiers = make_tiers(
            trace.pages,
            machine.near.slots,
            placement.sampling(near),
            self._sees_future,
            rules,
            self.costs,
        )
        self.chooses = defines(placement, VICTIM)  # the placement does, not CLOCK
        self.launches: dict[str, list[Any]] = {
            name: [] for name in ("name", "start", "end", *LAUNCH_COUNTS)
        }
        self._compiled = compiled

    def run(self, progress: Callable[[int], None] = lambda touches: None) -> None:
        """Walk through the trace, then check the books."""
        placement, eviction = self._callers = self._attach()
        calls = engine.Calls(placement.address, placement.own, eviction.address, eviction.own)
        uses, done, m = self._uses(), 0, ArrayTable(self.m)
        nothing = np.zeros(0, np.int32)
        for launch in self.trace.launches():
            start, before = self.time, self.counts
            engine.launch(m)
            for s in launch.segments:
                check_segment(s, self.trace)
                next_uses = uses[done : done + s.touches] if len(uses) else nothing
                self._raise(int(engine.walk(m, calls, columns_of(s), next_uses)))
                done += s.touches
                progress(s.touches)
            engine.settle(m)
            self._note(launch.name, start, before)
        engine.finish(m, self.flush)
        placement.finish()
        check_books(self)
        for policy in (self.placement, self.eviction):
            if policy is not None:
                _guard(policy, "finished", policy.finished)

    def _note(self, name: str, start: float, before: dict[str, int]) -> None:
        """A launch is over."""
        counted = [self.counts[c] - before[c] for c in LAUNCH_COUNTS]
        for column, value in zip(self.launches, (name, start, self.time, *counted), strict=True):
            self.launches[column].append(value)

    def _attach(self) -> tuple[Any, Any]:
        self.placement.attach(SimulatedTiers(self.m, self.near, self.middle))
        _guard(self.placement, "start", self.placement.start)
        placement: Any
        if self._compiled and self.placement.compiled is not None:
            placement = Twin(self.placement, self.m, self.near, self.middle)
        else:
            placement = call_placement(self.placement)
        if self.eviction is None:
            return placement, placement  # never called, but the walk is compiled for two
        self.eviction.attach(NearTier(self.eviction, self.trace, self.m, self.near))
        _guard(self.eviction, "start", self.eviction.start)
        return placement, call_eviction(self.eviction)

    def _uses(self) -> NDArray[np.int32]:
        """When the page of every touch is touched next, counted from 1; nothing unless the future
        is seen.
        """
        if not self._sees_future:
            return np.zeros(0, np.int32)
        parts = [s.page for launch in self.trace.launches() for s in launch.segments]
        uses = np.concatenate(parts) if parts else np.zeros(0, np.int32)
        if len(uses) >= NEVER:
            raise TidegateError(
                f"{len(uses):,} touches are too many to look ahead over; at most {NEVER - 1:,} are possible"
            )
        _next_uses(uses, np.full(self.trace.pages, NEVER, np.int32))
        return uses

    def _raise(self, stopped: int) -> None:
        if stopped == engine.FINISHED:
            return
        for caller in self._callers:
            caller.failed()
        chooser = (
            self.eviction
            if self.eviction is not None and stopped == engine.BAD_VICTIM
            else self.placement
        )
        wrong = {
            engine.BAD_PLACE: "answered place() with something else than STAY, MIDDLE or FAR",
            engine.BAD_SPILL: "named a page in spill() that is not in the middle",
            engine.BAD_VICTIM: "named a page in victim() that is not near",
        }[stopped]
        raise PolicyError(f"policy '{label(chooser)}' {wrong}")

    # What came of it

    @property
    def counts(self) -> dict[str, int]:
        return dict(zip(COUNTS, self.m.count.tolist(), strict=True))

    @property
    def time(self) -> float:
        return float(self.m.clock[NOW])

    @property
    def parts(self) -> dict[str, float]:
        """Time by what it went on.

        Waiting for the SSD is split by how long it read and wrote, for the host by direction.
        """
        c = self.m.clock
        reading = c[READ_BUSY] / ((c[READ_BUSY] + c[WRITE_BUSY]) or 1.0)
        inward = c[IN_BUSY] / ((c[IN_BUSY] + c[OUT_BUSY]) or 1.0)
        found = {
            "compute": c[COMPUTE] + c[LAUNCHING],
            "fault_handling": c[WAIT_DRIVER],
            "transfer_in": c[WAIT_HOST] * inward,
            "transfer_out": c[WAIT_HOST] * (1 - inward),
            "storage_read": c[WAIT_STORAGE] * reading,
            "storage_write": c[WAIT_STORAGE] * (1 - reading),
        }
        return {part: float(ns) for part, ns in found.items()}

    def tier_of(self, page: int) -> str:
        """Where a page is now: near, middle or far."""
        at = self.m.where[page]
        return "near" if at >= 0 else "middle" if at <= IN_MIDDLE else "far"


def check_books(s: Tiered) -> None:
    """Every run ends with its books balanced, or does not end well."""
    c = s.counts
    near, own_frame, middle, own_place, dirty_middle = _census(s.m)
    dirty = int((s.m.frames[:near] & DIRTY != 0).sum()), dirty_middle
    accounts = {
        "near pages = frames used, within capacity": near == c["near_used"] <= s.near,
        "middle pages = places used, within capacity": middle == c["middle_used"] <= s.middle,
        "every near page has a frame of its own": own_frame == near,
        "every middle page has a place of its own": own_place == middle,
        "every touch hits or misses": c["touches"] == c["hits"] + c["middle_hits"] + c["far_reads"],
        "what came near left or is there": c["middle_hits"] + c["far_reads"]
        == c["evictions"] + near,
        "what went to the middle left or is there": c["to_middle"]
        == c["middle_hits"] + c["middle_spilled"] + middle,
        "every victim went somewhere": c["evictions"] == c["to_middle"] + c["to_far"],
        "what went far was written or dropped": c["to_far"] == c["near_written"] + c["dropped"],
        "what was dirty at the end was flushed": (c["near_flushed"], c["middle_flushed"])
        == (dirty if s.flush else (0, 0)),
        "time is the sum of its parts": abs(s.time - sum(s.parts.values()))
        <= 1e-9 * max(1.0, s.time),
    }
    wrong = [name for name, balanced in accounts.items() if not balanced]
    if wrong:
        raise BooksError(
            f"the books do not balance after {s.trace.name} under {label(s.placement)}: {'; '.join(wrong)}"
        )


def _census(m: Tiers) -> NDArray[np.int64]:
    """Pages that are near, and those whose frame holds them; in the middle, whose place holds them,
    and that are dirty.
    """
    found = np.zeros(5, np.int64)
    for first in range(0, len(m.where), CENSUS):  # in parts: there may be many pages
        where = m.where[first : first + CENSUS]
        near, middle = np.flatnonzero(where >= 0), np.flatnonzero(where <= IN_MIDDLE)
        queued = m.queue[IN_MIDDLE - where[middle]]
        held, placed = m.held[where[near]] == first + near, queued >> 1 == first + middle
        found += [len(near), held.sum(), len(middle), placed.sum(), (queued & 1).sum()]
    return found


def _guard(policy: TierPolicy | EvictionPolicy, call: str, method: Callable[[], None]) -> None:
    try:
        method()
    except Exception as error:
        raise PolicyError(
            f"policy '{label(policy)}' raised in {call}(): {error_line(error, type(policy))}"
        ) from error


def _check_placement(placement: TierPolicy, near: int) -> None:
    """What a placement says of itself, before anything depends on it."""
    if type(placement).place is TierPolicy.place:
        raise PolicyError(
            f"{label(placement)} has no method place(page); it must answer STAY, MIDDLE or FAR"
        )
    if placement.makes_room not in (NOBODY, OLDEST, ASKED):
        raise PolicyError(
            f"{label(placement)} has makes_room = {placement.makes_room!r}; expected NOBODY, OLDEST or ASKED"
        )
    try:
        batch, total, every = (index(n) for n in placement.sampling(near))
        fine = batch >= 0 and total >= 0 and every >= 1
    except Exception as error:
        raise PolicyError(
            f"{label(placement)}: sampling({near}) failed: {error}; expected three numbers"
        ) from error
    if not fine:
        raise PolicyError(
            f"{label(placement)}: sampling({near}) answered {(batch, total, every)}; expected pairs in a batch and in all, "
            "0 or more, and one page in 1 or more"
        )


@jit
def _next_uses(pages: Any, seen: Any) -> None:
    """Write over every page the number of its next touch, from 1."""
    for i in range(len(pages) - 1, -1, -1):
        page = pages[i]
        pages[i] = seen[page]
        seen[page] = i + 1
