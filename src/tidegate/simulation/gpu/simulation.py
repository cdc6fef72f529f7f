"""A simulation: one trace, one machine, one set of policies, played to the end.

Simulation.run ──▶ for each launch: send the event, then play its segments (slots.play)
               ──▶ check_books
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from tidegate.compiled.array_table import ArrayTable
from tidegate.errors import BooksError, PolicyError, TidegateError
from tidegate.machine.machine import Machine
from tidegate.policies.interface.declaration import check_declared
from tidegate.policies.interface.events import EVENT_NAMES, LAUNCH
from tidegate.policies.interface.page_flags import COMING, DIRTY, NEAR
from tidegate.policies.interface.policy import (
    EvictionPolicy,
    PlacementPolicy,
    Policy,
    PrefetchPolicy,
    label,
)
from tidegate.policies.interface.visibility import Everything, Samples
from tidegate.simulation.calling import PolicyRun
from tidegate.simulation.gpu.driver import begin_launch, copy_before_launch, end_launch
from tidegate.simulation.gpu.driver_constants import SEED
from tidegate.simulation.gpu.future import foresee
from tidegate.simulation.gpu.memory import (
    DONE,
    IDLE,
    MORE_BLOCKS,
    NOT_RESIDENT,
    OK,
    PAUSE,
    STRAY,
    Memory,
    TouchColumns,
    as_array,
    join_blocks,
    make_constants,
    make_memory,
)
from tidegate.simulation.gpu.observation import LEFT_FAR
from tidegate.simulation.gpu.pace import pace_of, with_last
from tidegate.simulation.gpu.policy_calls import execute_first_requests
from tidegate.simulation.gpu.relay import GPUMechanism, Relay
from tidegate.simulation.gpu.slots import play, take_rest
from tidegate.simulation.gpu.view import SimulatedMemory
from tidegate.simulation.recorded import recorded_accounts
from tidegate.simulation.recording import Window
from tidegate.trace.build import blocks_of
from tidegate.trace.trace import Launch, Trace, check_launch, check_segment

_NO_TOUCHES = TouchColumns(
    np.zeros(0, np.uint32),
    np.zeros(0, np.uint8),
    np.zeros(0, np.int32),
    np.zeros(0, np.int16),
    np.zeros(0, np.int32),
)
_NOTHING = join_blocks(_NO_TOUCHES, blocks_of(1, [], bytes=0), np.zeros(0, np.int32))
_BUDGET = 1 << 23  # touches between two looks at progress and Ctrl-C: about 0.1 s


@dataclass
class LaunchRecord:
    """Times and counts of one launch."""

    name: str
    start: float
    end: float
    touches: int
    faults: int
    evictions: int
    pages_in: int


_COUNTED = "touches", "faults", "evictions", "pages_in"  # of a launch


@dataclass
class Simulation(PolicyRun):
    """One run, set up; ``run`` plays it once."""

    trace: Trace
    machine: Machine
    frames: int  # regions, or pages where the machine gives its memory out by pages
    eviction: EvictionPolicy
    prefetch: PrefetchPolicy
    placement: PlacementPolicy
    dirty_only: bool = False
    samples: int = 0  # pages sampled per observed region; 0 adapts it
    observed: int | None = None  # regions observed at a time; by default what policies declare
    watched: int | None = None  # evictions per epoch of observation.py; by default ``observed``
    compiled: bool = True  # compile policies where that is possible and pays
    # run policies in Python and check what compiled code would not: see checked.py
    checked: bool = field(default_factory=lambda: os.environ.get("TIDEGATE_CHECKED") == "1")
    window: Window | None = None  # what to record of the run (recording.py)
    launches: list[LaunchRecord] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)  # what a person should know of this run

    def __post_init__(self) -> None:
        self._policies: tuple[Policy, ...] = (self.eviction, self.prefetch, self.placement)
        for policy in self._policies:
            check_declared(policy)
        tracking = any(isinstance(p.sees, Everything) for p in self._policies)
        decision = 0.0 if self.eviction.in_driver else self.machine.driver.decision
        most = max(
            (p.sees.regions for p in self._policies if isinstance(p.sees, Samples)), default=0
        )
        if most and self.observed is not None:
            most = self.observed
        # a program does not copy out what it only read
        self.dirty_only |= not self.placement.managed
        on = self.machine if self.placement.managed else self.machine.with_copies()
        self._constants = make_constants(
            on,
            self.trace,
            self.frames,
            self.dirty_only,
            tracking,
            decision,
            most,
            self.samples,
            self.watched,
        )
        self.memory: Memory = make_memory(
            self.trace, self.machine.near.slots, self._constants, self.window
        )
        if self.machine.near.jitter:  # the same in every run
            spread = np.random.default_rng(SEED).uniform(-1, 1, self.machine.near.slots)
            self.memory.slot_pace[:] += self.machine.near.jitter * spread
        self._table, self._record = ArrayTable(self.memory), as_array(self._constants)[0]
        self.books: Any = self.memory.books

    def _run(self, progress: Callable[[int], None]) -> None:
        self._start()
        for number, launch in enumerate(self.trace.launches()):
            self._play(number, launch, progress)
        if not self.books["touches"][0]:
            raise TidegateError(f"trace {self.trace.name} is empty: it touches nothing")
        if self.placement.copies_results:
            self._copy_back()
        check_books(self)
        self._finish()

    def _in_python(self) -> Simulation:
        return replace(self, compiled=False, checked=True, launches=[], notes=[])

    def _copy_back(self) -> None:
        """Copy what is near and was written out, at the end of the program."""
        b, state = self.books[0], self.memory.page_state
        results = (state & (NEAR | DIRTY)) == NEAR | DIRTY
        state[results] &= 0xFF & ~DIRTY
        time = results.sum() * self._constants.out_per_page
        b["pages_written_back"] += results.sum()
        for clock in ("front", "transfer_out", "link_out_time"):
            b[clock] += time

    def _attach(self) -> GPUMechanism:
        future = None
        if any(getattr(p.sees, "future", False) for p in self._policies):
            future = foresee(self.trace, self.machine.near.slots)
        shared: dict[str, Any] = {}
        for policy in self._policies:
            policy.attach(
                SimulatedMemory(
                    policy, self.trace, self.machine, self.memory, self._constants, future, shared
                )
            )
        return GPUMechanism(self.memory, self._constants.room, self._constants.observe_most, future)

    def _connect(self) -> None:
        callers = [choice.caller for choice in self._choices]
        self.memory.wants[:] = 0
        for which, caller in enumerate(callers):
            self.memory.wants[which, caller.events] = 1
            self.memory.own[which] = caller.own
        self._relay = Relay(*(caller.address for caller in callers))
        self._heard = bool(self.memory.wants[:, LAUNCH].any())  # some policy handles launches

    def _calls(self) -> int:
        b = self.books[0]
        asked = b["decisions"] + b["observations"]
        # each eviction stands for an arrival
        return int(2 * b["evictions"] + asked + b["notifications"] + b["batches"])

    def _play(self, number: int, launch: Launch, progress: Callable[[int], None]) -> None:
        check_launch(launch, self.trace)
        b, near = self.books[0], self.machine.near
        slots = max(1, near.slots // launch.width)
        pace = pace_of(launch, self.machine, slots)
        if launch.flops and not self.machine.has_rate(launch.dtype):
            self._note(f"{self.machine.name} has no rate for {launch.dtype}; FP32's is used")
        b["latency"] = pace.latency
        blocks, first = _NOTHING, True
        for policy in self._policies:
            policy.memory.launch, policy.memory.place = launch.name, launch.place
        self._begin(number, launch)
        for clock in ("front", "running", "launching"):
            b[clock] += pace.overhead
        self.memory.slot_time[:slots] = b["front"]
        self.memory.slot_status[:slots] = IDLE
        self.memory.idle_slots[:slots] = np.arange(slots)
        b["slots"], b["idle"], b["next_block"] = slots, slots, 0
        b["width"] = min(launch.width, near.slots)
        # thread blocks are placed on SMs in turn, so neighbouring slots are on different ones
        first_blocks = np.arange(slots) * int(b["width"])
        self.memory.slot_utlb[:slots] = first_blocks % near.sms // near.utlb_sms
        record = LaunchRecord(launch.name, float(b["front"]), 0.0, *(int(b[c]) for c in _COUNTED))
        for segment, last in with_last(pace.segments):
            check_segment(segment, self.trace)
            rest = _NO_TOUCHES if first else take_rest(self._table, blocks, slots)
            blocks = join_blocks(rest, segment, pace.cost(segment), launch.sharing)
            first = False
            code = PAUSE
            while code == PAUSE:
                self._compile_later()
                before = int(b["touches"])
                code = play(
                    self._table,
                    self._record,
                    self._relay,
                    blocks,
                    pace.per_cost,
                    last,
                    _BUDGET,
                    None if self.window is None else True,
                )
                progress(int(b["touches"]) - before)
            if code not in (DONE, MORE_BLOCKS):
                self._check(code)
        self._end(launch)
        record.end = float(b["front"])
        for counter in _COUNTED:
            setattr(record, counter, int(b[counter]) - getattr(record, counter))
        self.launches.append(record)

    def _begin(self, number: int, launch: Launch) -> None:
        """Ask for the program's copies, and send the launch to the policies."""
        told = self._table, self._record, self._relay, _NOTHING
        if launch.copies:
            rows = [(c.first_page, c.pages, c.to == "far", c.wait) for c in launch.copies]
            self._check(copy_before_launch(*told, np.array(rows, np.int64)))
        if self._heard:
            self._check(begin_launch(*told, number))

    def _end(self, launch: Launch) -> None:
        """Discard what dies with the launch."""
        if launch.frees:
            ranges = np.array(launch.frees, np.int64)
            self._check(end_launch(self._table, self._record, self._relay, ranges))

    def _check(self, code: int) -> None:
        """Raise the error that the compiled code returned as a code."""
        if code == OK:
            return
        b = self.books[0]
        at, event = int(b["failed_at"]), int(b["failed_event"])
        if code == STRAY:
            raise TidegateError(
                f"trace {self.trace.name} touches page {at}, which belongs to no object"
            )
        self._raise_failure()
        assert code == NOT_RESIDENT, code
        raise PolicyError(
            f"policy '{label(self.eviction)}' named region {at} in {EVENT_NAMES[event]}(), "
            "which is not resident; it must answer one of the "
            f"{np.count_nonzero(self.memory.resident)} regions in self.resident"
        )

    def _note(self, text: str) -> None:
        if text not in self.notes:
            self.notes.append(text)

    def _guard(self, policy: Policy, call: str, method: Callable[[], None]) -> None:
        super()._guard(policy, call, method)
        if self.books["request_n"][0]:
            execute_first_requests(self._table, self._record, self._policies.index(policy))


def check_books(simulation: Simulation) -> None:
    """Raise BooksError unless the books of a finished run balance."""
    b, m = simulation.books[0], simulation.memory
    here = (m.page_state & (NEAR | COMING)) != 0
    parts = sum(
        b[p]
        for p in ("running", "fault_handling", "transfer_in", "transfer_out", "policy_overhead")
    )
    accounts = {
        "observed regions have their samples out": b["sampled_n"]
        == np.count_nonzero(m.sampled)
        == m.observed.sum(),
        "pages in - pages out = pages resident": (
            b["pages_in"]
            + b["pages_born"]
            + b["pages_home"]
            - b["pages_evicted"]
            - b["pages_sampled"]
            - b["pages_discarded"]
            == here.sum()
            == m.resident.sum() - _sampled(simulation)
        ),
        "frames used = frames held": b["frames_used"] == _frames_held(simulation),
        "frames used within capacity": b["frames_peak"] <= simulation.frames,
        "every stalled slot woken": b["queue_n"] == b["arrivals_n"] == 0
        and not m.slot_status.any(),
        "time = sum of its parts": abs(b["front"] - parts) <= 1e-9 * max(b["front"], 1.0),
        "touches = launches' touches": b["touches"] == sum(r.touches for r in simulation.launches),
        "evictions by region add up": b["evictions"] == m.region_evictions.sum(),
        "faults by region add up": b["faults"] == m.region_faults.sum(),
        "each fault brought its page": b["pages_in"] + b["pages_born"]
        == b["faults"] + b["pages_prefetched"],
        **recorded_accounts(m, _recorded_in_books(simulation), len(m.resident)),
    }
    for account, holds in accounts.items():
        if not holds:
            raise BooksError(
                f"the books of this run must balance, got a run where {account} does not hold; "
                "please report this as a defect"
            )


def _recorded_in_books(simulation: Simulation) -> dict[str, Any]:
    """Return what the layers of a recording must add up to: by region, or in all."""
    b, m = simulation.books[0], simulation.memory
    return {
        "touches": b["touches"],
        "faults": m.region_faults,
        "evictions": m.region_evictions,
        "prefetched": b["pages_prefetched"],
        "unused": b["pages_unused"],
        "residency": m.resident,
    }


def _frames_held(simulation: Simulation) -> int:
    """Return the resident regions or, where frames are pages, pages near or sampled; and frames of
    a region that a stream is copying out.
    """
    m, b = simulation.memory, simulation.books[0]
    leaving = int(b["out_frames"]) if b["out_busy"] else 0
    if simulation.machine.near.frame == "region":
        return int(np.count_nonzero(m.resident)) + leaving
    return int(m.resident.sum()) + leaving


def _sampled(simulation: Simulation) -> int:
    """Return the pages that were near and are sampled now."""
    sampled = simulation.memory.sampled
    return int(np.count_nonzero((sampled > 0) & (sampled < LEFT_FAR)))
