"""Candidates to leave near memory: named by CLOCK, by an eviction policy or by the placement."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tidegate.compiled.bits import flagged, lowest, popcount, unflag
from tidegate.compiled.intrinsics import call_at, fetch_ahead
from tidegate.compiled.jit import jit_within
from tidegate.policies.interface import events
from tidegate.policies.interface.tier_policy import EVENT_BITS, FAILED, VICTIM
from tidegate.simulation.tiers.state import FINISHED, KEPT, LOOK, POLICY_FAILED, REFERENCED, WATCHED

_ALL = ~np.uint64(0)


class PolicyAddresses(NamedTuple):
    """Addresses of the policies' C functions and of their data."""

    placement: int
    placement_own: int
    eviction: int
    eviction_own: int


@jit_within
def call_placement(policies: Any, event: int, page: int) -> int:
    """Call the placement policy; return its answer, or FAILED."""
    return call_at(policies.placement, policies.placement_own, event | page << EVENT_BITS)


@jit_within
def call_eviction(policies: Any, event: int, page: int) -> int:
    """Call the eviction policy; return its answer, or FAILED."""
    return call_at(policies.eviction, policies.eviction_own, event | page << EVENT_BITS)


@jit_within
def next_candidate(memory: Any, policies: Any, stays: Any) -> Any:
    """Return the frame of a candidate and the stays so far.

    In place of a frame: FAILED if the policy raised, less if the page it named is not near.
    """
    constants = memory.constants[0]
    if constants.clock:
        return _sweep(memory, stays)
    if constants.chooses:
        page = call_placement(policies, VICTIM, 0)
    else:
        page = call_eviction(policies, events.VICTIM, 0)
    if page == FAILED:
        return np.int64(FAILED), stays
    if page < 0 or page >= len(memory.where) or memory.where[page] < 0:
        return np.int64(FAILED - 1), stays
    return np.int64(memory.where[page]), stays


@jit_within
def _sweep(memory: Any, stays: Any) -> Any:
    """Move CLOCK's hand to a page not used since its last pass; return its frame and the stays.

    The hand passes pages that are known to stay, while they may. 64 frames are examined at a time,
    one bit of each: frame by frame, every branch would be mispredicted.
    """
    constants, cursors = memory.constants[0], memory.cursors[0]
    frames, at, most, near = memory.frames, cursors.hand, constants.most_stays, constants.near
    while True:
        there = min(LOOK, near - at)
        ones = _ALL >> np.uint64(LOOK - there)
        used, kept = flagged(frames, at, REFERENCED), flagged(frames, at, KEPT)
        stop, staying = ~(used | kept) & ones, kept & ~used & ones
        passed = staying & _below(stop)
        # the hand has to stop at a page that would stay
        if np.int64(popcount(passed)) > most - stays:
            stop = _bit_at(passed, most - stays)
            passed = staying & _below(stop)
        unflag(frames, at, min(lowest(stop), there), REFERENCED)
        stays += np.int64(popcount(passed))
        if stop:
            break
        at = at + there if at + there < near else 0
    ahead = at + lowest(stop & (stop - np.uint64(1)))  # the next victim is likely this one
    page = np.int64(memory.held[ahead if ahead < near else 0])
    fetch_ahead(memory.history, memory.history.shape[1] * page)
    at += lowest(stop)
    cursors.hand = at
    return at, stays


@jit_within
def _below(bits: Any) -> Any:
    """Return all bits below the lowest of these; all if there is none."""
    return (bits & (~bits + np.uint64(1))) - np.uint64(1)


@jit_within
def _bit_at(bits: Any, number: Any) -> Any:
    """Return the set bit with this number, from 0, by halving the word."""
    at = np.uint64(0)
    for half in (32, 16, 8, 4, 2, 1):
        low = np.int64(popcount(bits >> at & (_ALL >> np.uint64(64 - half))))
        above = number >= low
        number -= low * above
        at += np.uint64(half * above)
    return np.uint64(1) << at


@jit_within
def step_hand(memory: Any) -> None:
    """Move CLOCK's hand to the next frame."""
    cursors = memory.cursors[0]
    cursors.hand = cursors.hand + 1 if cursors.hand + 1 < memory.constants[0].near else 0


@jit_within
def pass_over(memory: Any, policies: Any, page: int) -> bool:
    """Let a candidate stay; return False if a policy failed.

    CLOCK's hand moves on; to an eviction policy the page counts as just touched.
    """
    constants = memory.constants[0]
    if constants.clock:
        step_hand(memory)
        return True
    if constants.chooses:
        return True
    return call_eviction(policies, events.FAULT, np.int64(page)) != FAILED


# Events of eviction policies in place of CLOCK


@jit_within
def announce_arrival(memory: Any, policies: Any, page: int) -> int:
    """Send the eviction policy the fault of a page that came near; return a code."""
    if call_eviction(policies, events.FAULT, page) == FAILED:
        return POLICY_FAILED
    return FINISHED if _observe_next(memory, policies) else POLICY_FAILED


@jit_within
def announce_use(memory: Any, policies: Any, page: int, frame: int) -> bool:
    """Notify the use of an observed page, at no cost: its timestamp can be read."""
    memory.frames[frame] &= ~np.uint8(WATCHED)
    memory.counts[0].notifications += 1
    if call_eviction(policies, events.NOTIFICATION, page) == FAILED:
        return False
    return _observe_next(memory, policies)


@jit_within
def _observe_next(memory: Any, policies: Any) -> bool:
    """Query which page to observe; return False if the policy failed."""
    if memory.constants[0].wants_observe:
        page = call_eviction(policies, events.OBSERVE, 0)
        if page == FAILED:
            return False
        if 0 <= page < len(memory.where) and memory.where[page] >= 0:
            memory.frames[memory.where[page]] |= WATCHED
    return True
