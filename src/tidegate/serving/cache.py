"""Blocks in tiers: GPU memory, host memory and an SSD, each with an eviction policy of its own.

    request ──▶ near ──victim──▶ middle ──victim──▶ ssd ──victim──▶ dropped
                 ◀──── a block that is found comes near, or is computed there ────

A block is in one tier at a time. The server sees every use of a block, so policies that declare to
see samples or more are notified of all; those that see faults know arrivals alone. A policy here is
the same class as in the simulator, with a block as its region.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tidegate.errors import PolicyError, TidegateError
from tidegate.policies.interface.declaration import check_declared
from tidegate.policies.interface.memory_view import MemoryView
from tidegate.policies.interface.policy import EvictionPolicy, label
from tidegate.policies.interface.visibility import Everything, Faults, TouchBits
from tidegate.policies.registries import eviction
from tidegate.registry import error_line
from tidegate.serving.requests import Requests
from tidegate.trace.geometry import Geometry

MISSED = -1  # in place of a tier's number


@dataclass(frozen=True)
class Found:
    """What requests found: the tier of each use of a block, or MISSED; and what was moved.

    ``prefix``: how many of a request's first blocks were found, one after another.
    """

    tiers: NDArray[np.int8]
    prefix: NDArray[np.int64]
    demoted: tuple[int, ...]  # blocks that left each tier for the next one

    def hits(self, tier: int) -> int:
        """Return the uses of blocks that were in a tier."""
        return int((self.tiers == tier).sum())


def serve(requests: Requests, policy: str, room: Sequence[int]) -> Found:
    """Play all requests on tiers with room for so many blocks; 0 leaves a tier out.

    Uses of all blocks of a prompt count, in order; what was missing is computed and kept.
    """
    tiers = [_Tier(policy, blocks, requests.distinct) for blocks in room if blocks]
    numbers = [i for i, blocks in enumerate(room) if blocks]
    if not tiers or not room[0]:
        raise TidegateError("the GPU needs room for a block at least; give a larger --near")
    found = np.full(len(requests.blocks), MISSED, np.int8)
    where = np.full(requests.distinct, MISSED, np.int8).tolist()  # lists are quicker one by one
    demoted = [0] * len(room)
    for use, block in enumerate(requests.blocks.tolist()):
        tier = where[block]
        if tier != MISSED:
            found[use] = numbers[tier]
        if tier == 0:
            tiers[0].use(block)
            continue
        if tier > 0:
            tiers[tier].take(block)
        _bring(block, tiers, where, numbers, demoted)
    return Found(found, _prefixes(requests, found), tuple(demoted))


def _bring(
    block: int, tiers: list[_Tier], where: list[int], numbers: list[int], demoted: list[int]
) -> None:
    """Bring a block near; what has no room any more goes a tier down, from tier to tier."""
    for tier, here in enumerate(tiers):
        victim = here.make_room()
        here.add(block)
        where[block] = tier
        if victim == MISSED:
            return
        demoted[numbers[tier]] += 1
        block = victim
    where[block] = MISSED


def _prefixes(requests: Requests, found: NDArray[np.int8]) -> NDArray[np.int64]:
    """Return how many first blocks of each request were found."""
    missed = np.append(np.flatnonzero(found == MISSED), len(found))
    first = missed[np.searchsorted(missed, requests.starts[:-1])]
    return np.minimum(first, requests.starts[1:]) - requests.starts[:-1]


class _Tier:
    """One tier: which blocks it holds, and the policy that says which leaves."""

    def __init__(self, policy: str, room: int, blocks: int):
        self._policy = made = eviction.make(policy)
        check_policy(made)
        self._room, self._held = room, set[int]()
        self._memory = _TierMemory(made, room, blocks, self._held)
        made.attach(self._memory)
        made.start()
        self._sees_uses = not isinstance(made.sees, Faults)

    def use(self, block: int) -> None:
        """Note a use of a block that is here."""
        self._memory.note(block)
        if self._sees_uses:
            self._policy.on_notification(block)

    def add(self, block: int) -> None:
        """Put a block here; there is room."""
        self._memory.note(block)
        self._held.add(block)
        self._policy.on_fault(block)

    def take(self, block: int) -> None:
        """Take a block away, to another tier."""
        self._policy.on_free(block)
        self._held.discard(block)

    def make_room(self) -> int:
        """Return the block that must leave for another one to come, MISSED if there is room."""
        if len(self._held) < self._room:
            return MISSED
        try:
            victim = int(self._policy.victim())
        except Exception as error:
            said = error_line(error, type(self._policy))
            raise PolicyError(
                f"policy '{label(self._policy)}' raised in victim(): {said}"
            ) from error
        if victim not in self._held:
            raise PolicyError(
                f"policy '{label(self._policy)}' named block {victim}, which is not in its tier"
            )
        self._policy.on_eviction(victim)
        self._held.discard(victim)
        return victim


def check_policy(policy: EvictionPolicy) -> None:
    """Refuse policies that need what a server does not have."""
    check_declared(policy)
    if isinstance(policy.sees, Everything) and policy.sees.future:
        raise TidegateError(
            f"policy '{label(policy)}' sees the future; the row 'bound' has what that would give"
        )
    if isinstance(policy.sees, TouchBits):
        raise TidegateError(
            f"policy '{label(policy)}' needs touch bits of pages, which a block does not have; "
            "take one that sees faults or samples, such as lru"
        )


class _TierMemory(MemoryView):
    """What a policy sees of its tier: a block is a region of one page."""

    def __init__(self, policy: EvictionPolicy, room: int, blocks: int, held: set[int]):
        geometry = Geometry(1 << 16, 1 << 16)
        super().__init__(label(policy), policy.sees, geometry, room, room, {})
        self._regions, self._held = blocks, held
        self._uses = 0
        self._last: dict[int, int] = {}
        self.observed = ()

    def note(self, block: int) -> None:
        """Count a use."""
        self._last[block] = self._uses
        self._uses += 1

    @property
    def objects(self) -> Any:
        return ()

    @property
    def regions(self) -> int:
        return self._regions

    @property
    def resident(self) -> set[int]:
        return self._held

    def is_resident(self, region: int) -> bool:
        return region in self._held

    def is_served(self, region: int) -> bool:
        return False

    def faulted(self, region: int) -> NDArray[Any]:
        return np.zeros(1, np.int64)

    def last_touch(self, region: int) -> int:
        return self._last.get(region, -1)

    def _now(self) -> int:
        return self._uses
