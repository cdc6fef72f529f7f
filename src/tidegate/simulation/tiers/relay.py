"""The relay: how the compiled walk calls a tiering policy, and an eviction policy in place of
CLOCK.
"""

from __future__ import annotations

from operator import index
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tidegate.policies.interface import events as near_events
from tidegate.policies.interface.policy import Policy
from tidegate.policies.interface.tier_policy import (
    EVENT_NAMES,
    FAILED,
    KNOWN,
    PLACE,
    RETURN,
    SPILL,
    VICTIM,
    Tier,
    TierPolicy,
)
from tidegate.policy_compiler.compiled import Compiled, Twin, compile_policy
from tidegate.policy_compiler.source import CannotCompile
from tidegate.policy_compiler.tier_header import fill_header
from tidegate.simulation.calling import Caller, Question
from tidegate.simulation.tiers.state import Tiers

_NOTHING = FAILED - 1  # an answer that is no page and no tier
_LEFT = 1  # words of a block's rows that the tiers keep: the touch at which a page left
_SENT = (  # events of an eviction policy
    *(near_events.VICTIM, near_events.FAULT, near_events.EVICTION),
    *(near_events.NOTIFICATION, near_events.OBSERVE),
)


def _number(answer: Any) -> int:
    """Return a page or a tier; a negative number is as wrong as None, but does not mean FAILED."""
    number = _NOTHING if answer is None else index(answer)
    return number if number >= 0 else _NOTHING


def _known(answer: Any) -> int:
    """Return KNOWN if the policy says on a page's return that it will STAY."""
    return KNOWN if answer == Tier.STAY and answer is not False else 0


_PAGE = Question(_number, "the number of a page")
_OF_EVICTION = {near_events.VICTIM: _PAGE, near_events.OBSERVE: _PAGE}
_OF_PLACEMENT = {
    PLACE: Question(_number, "Tier.STAY, MIDDLE or FAR"),
    VICTIM: _PAGE,
    SPILL: _PAGE,
    RETURN: Question(_known, "Tier.STAY or None"),
}


class TierMechanism:
    """Simulated tiers as callers of their policies need them.

    What the tiers keep of a page lies beside what a compiled policy keeps of it, in the rows of its
    block: a miss waits for memory once, not twice. ``tiers`` are the tiers with these rows.
    """

    def __init__(self, tiers: Tiers, near: int, middle: int):
        self.tiers, self._near, self._middle = tiers, near, middle
        self.regions = len(tiers.where)

    def make_caller(self, policy: Policy) -> Caller:
        """Return a caller of a policy that runs in Python."""
        if not isinstance(policy, TierPolicy):
            names = {event: near_events.EVENT_NAMES[event] for event in _SENT}
            return Caller(policy, names, _OF_EVICTION)
        names = {event: name for event, name in EVENT_NAMES.items() if hasattr(policy, name)}
        return Caller(policy, names, _OF_PLACEMENT)

    def compile(self, policy: Policy, sees: str, only_known: bool) -> Compiled | Twin | None:
        """Compile a tiering policy."""
        if not isinstance(policy, TierPolicy):
            raise CannotCompile(
                ""
            )  # no reason that a run would note: it never is, in place of CLOCK
        if policy.parts:
            raise CannotCompile("a tiering policy that is made of others cannot be compiled")
        return compile_policy(policy, sees, only_known, "tiers", _LEFT)

    def make_block(
        self, policy: Policy, compiled: Compiled, parts: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """Return a compiled policy's block, its header filled in, and use its rows."""
        block = compiled.make_block(policy, self.regions)
        rows = compiled.rows(block, self.regions)
        if self.tiers.counts["evictions"][0]:  # otherwise all is 0, and takes no memory yet
            rows[:, :_LEFT] = self.tiers.history[:, :_LEFT]
        self.tiers = self.tiers._replace(history=rows)
        fill_header(block, self.tiers, self._near, self._middle)
        return block
