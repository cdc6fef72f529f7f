"""Compiled: a policy's function, and the way of its state into a block and back."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from tidegate.policies.interface.policy import Policy
from tidegate.policy_compiler.cache import find_function
from tidegate.policy_compiler.layout import Layout


class Twin(Protocol):
    """A compiled function that was written by hand beside its class; LEU has one."""

    @property
    def address(self) -> int: ...
    def pack(self, policy: Any, regions: int) -> NDArray[np.int64]: ...
    def unpack(self, policy: Any, words: NDArray[np.int64], regions: int) -> None: ...


class Compiled:
    """A policy's class, compiled for the attributes that this policy has now."""

    def __init__(self, function: Any, layout: Layout):
        self.address, self._function, self._layout = function.address, function, layout

    def pack(self, policy: Policy, regions: int) -> NDArray[np.int64]:
        """Return the policy's words."""
        return self._layout.pack(policy, regions)

    def make_block(self, policy: Policy, regions: int) -> NDArray[np.int64]:
        """Return the policy's words behind a header that is empty."""
        return self._layout.make_block(policy, regions)

    def rows(self, block: NDArray[np.int64], regions: int) -> NDArray[np.int64]:
        """Return what a block holds of each region."""
        return self._layout.rows(block, regions)

    def unpack(self, policy: Policy, words: NDArray[np.int64], regions: int) -> None:
        """Give the policy the values that its words hold."""
        self._layout.unpack(policy, words, regions)


def compile_policy(
    policy: Policy, sees: str, only_known: bool = False, surface: str = "gpu", reserved: int = 0
) -> Compiled | Twin | None:
    """Return how a policy runs compiled; None with ``only_known`` if it must be compiled first.

    ``sees`` is what its memory shows: of a part, what the whole sees. ``surface`` names the
    mechanism, which keeps ``reserved`` words of its own in front of those of each region. Raise
    CannotCompile with the reason if the class cannot be compiled.
    """
    twin: Twin | None = vars(type(policy)).get("twin")
    if twin is not None:
        return twin
    layout = Layout(policy, reserved)
    function = find_function(policy, layout, surface, sees, only_known)
    return function and Compiled(function, layout)
