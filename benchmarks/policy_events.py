"""What does an event cost a compiled policy, beside ``lru`` and beside the same class in Python?

The events of one run are recorded through the class in Python, then played back to the compiled
function and to the class, without the rest of the mechanism. How long a class takes to compile,
and to load from the cache, is measured in the same run.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from numba import int16, int64, njit

from benchmarks.row import Row
from tidegate import RunSpec
from tidegate.compiled.intrinsics import call_at
from tidegate.policies.interface.events import (
    EVENT_BITS,
    EVENT_NAMES,
    EVICTION,
    FAULT,
    NOTIFICATION,
    OBSERVE,
    PREFETCH,
)
from tidegate.policy_compiler import cache

WORKLOAD, SCALE = "GMV", "1/8"
# policy: events may cost this many times what lru's do; LFU looks through its bins
POLICIES = {
    **{"lru": 1.0, "lrm": 1.0, "fifo": 1.0, "mru": 1.0},
    **{"cp": 1.5, "tide": 1.5, "tournament": 2.0, "lfu": 9},
}
SPEED_UP = 10  # compiled, against Python
COMPILE, LOAD = 1.5, 0.010  # seconds
REPETITIONS = 7


def policy_events() -> list[Row]:
    times = {name: _per_event(name) for name in POLICIES}
    base, rows = times["lru"][0], []
    for name, most in POLICIES.items():
        compiled, python, events = times[name]
        against = f"{events:,} events: {compiled:.1f} ns compiled, {python:.0f} ns in Python"
        rows.append(Row(f"an event of {name}", compiled / base, "× lru's", against, most))
        rows.append(Row("… faster than in Python", python / compiled, "×", "", SPEED_UP, True))
    return rows + _compiling()


def _per_event(name: str) -> tuple[float, float, int]:
    """Return ns per event, compiled and in Python, and how many events there were."""
    events = _recorded(name)
    best = [_played(name, events, compiled) for compiled in (True, False)]
    return best[0] / len(events) * 1e9, best[1] / len(events) * 1e9, len(events)


def _recorded(name: str) -> Any:
    simulation = RunSpec(WORKLOAD, scale=SCALE, eviction=name, compiled=False).prepare()
    policy, events = simulation.eviction, []

    def recording(method: Any, kind: int) -> Any:
        def call(*number: int) -> Any:
            events.append(kind | (number[0] << EVENT_BITS if number else 0))
            return method(*number)

        return call

    arrives = type(policy).on_fault
    for kind, method in EVENT_NAMES.items():
        if kind == PREFETCH and "on_prefetch" not in vars(type(policy)):
            called = recording(lambda region: arrives(policy, region), kind)
        else:
            called = recording(getattr(policy, method), kind)
        setattr(policy, method, called)
    simulation.run()
    return np.array(events, np.int64)


def _played(name: str, events: Any, compiled: bool) -> float:
    """Return the least processor time in which the events were played back."""
    times = []
    for _ in range(REPETITIONS):
        simulation = RunSpec(WORKLOAD, scale=SCALE, eviction=name).prepare()
        simulation.reasons()  # which starts the policies
        memory = simulation.memory
        caller: Any = simulation._choices[0].caller
        if not compiled:
            caller = simulation._mechanism.make_caller(simulation.eviction)
        begin = time.process_time()
        _replay(
            caller.address, caller.own, events, memory.books["turn"], memory.served, memory.observed
        )
        times.append(time.process_time() - begin)
    return min(times)


@njit(int64(int64, int64, int64[::1], int64[:], int64[:], int16[:]))
def _replay(address, block, events, turn, served, observed):
    total = 0
    for event in events:
        answer = call_at(address, block, event)
        total += answer
        kind, region = event & 255, event >> EVENT_BITS
        if kind == FAULT:
            turn[0] += 1
            served[region] = turn[0]
        elif kind == OBSERVE and answer >= 0:
            observed[answer] = 1
        elif kind in (EVICTION, NOTIFICATION):
            observed[region] = 0
    return total


def _compiling() -> list[Row]:
    slowest, loading = ("", 0.0), ("", 0.0)
    for name in POLICIES:
        simulation = RunSpec(WORKLOAD, scale=SCALE, eviction=name).prepare()
        simulation.reasons()
        cache._known.clear()
        loading = max(loading, (name, _seconds(simulation)), key=lambda pair: pair[1])
        load, cache._load = cache._load, lambda file: None  # type: ignore[assignment]
        cache._known.clear()
        slowest = max(slowest, (name, _seconds(simulation)), key=lambda pair: pair[1])
        cache._load = load
    return [
        Row("compiling a policy", slowest[1], "s", f"the slowest: {slowest[0]}", COMPILE),
        Row("loading a compiled policy", loading[1], "s", f"the slowest: {loading[0]}", LOAD),
    ]


def _seconds(simulation: Any) -> float:
    begin = time.process_time()
    simulation._choose(simulation.eviction, long=True)
    return time.process_time() - begin
