"""The relay: how the compiled engine calls the three policies of a run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from operator import index
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tidegate.policies.interface.declaration import handled_events
from tidegate.policies.interface.events import EVENT_NAMES, EVICTION, FAILED, FREE, OBSERVE, VICTIM
from tidegate.policies.interface.header import make_header
from tidegate.policies.interface.policy import Policy
from tidegate.policies.interface.visibility import TouchBits
from tidegate.policy_compiler.compiled import Compiled, Twin, compile_policy
from tidegate.simulation.calling import Caller, Question
from tidegate.simulation.gpu.future import Future
from tidegate.simulation.gpu.memory import Memory

_REGION = "the number of a resident region"
_QUESTIONS = {VICTIM: Question(index, _REGION), OBSERVE: Question(index, _REGION, FAILED)}


class Relay(NamedTuple):
    """The addresses at which the compiled code calls the policies.

    Their callers keep what is there alive.
    """

    eviction: int
    prefetch: int
    placement: int


@dataclass(frozen=True)
class GPUMechanism:
    """The simulated GPU as callers of its policies need it."""

    memory: Memory
    frames: int
    observable: int
    future: Future | None

    @property
    def regions(self) -> int:
        return len(self.memory.resident)

    def make_caller(self, policy: Policy) -> Caller:
        """Return a caller of a policy that runs in Python."""
        request_n = self.memory.books["request_n"]

        def on_failure() -> None:
            request_n[0] = -1

        names = {event: EVENT_NAMES[event] for event in handled_events(policy)}
        caller = Caller(policy, names, _QUESTIONS, on_failure)
        if isinstance(policy.sees, TouchBits):
            for leaving in {EVICTION, FREE} & names.keys():
                caller.methods[leaving] = _showing_touch_bits(policy, caller.methods[leaving])
        return caller

    def compile(self, policy: Policy, sees: str, only_known: bool) -> Compiled | Twin | None:
        """Compile a policy for the simulated GPU."""
        return compile_policy(policy, sees, only_known)

    def make_block(
        self, policy: Policy, compiled: Compiled | Twin, parts: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """Return a compiled policy's block, its header filled in."""
        words = compiled.pack(policy, self.regions)
        return make_header(self.memory, self.frames, self.observable, self.future, parts, words)


def _showing_touch_bits(policy: Policy, handler: Callable[[int], None]) -> Callable[[int], None]:
    """The policy's on_eviction or on_free, with the leaving region's touch bits handed over for as
    long as it runs.
    """

    def handle(region: int) -> None:
        policy.memory.leaving = region
        handler(region)
        policy.memory.leaving = -1

    return handle
