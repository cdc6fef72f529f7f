"""A prepared run: what a specification means, looked up, and then its simulation.

    RunSpec ──▶ PreparedRun: machine, trace, policies, sizes ──▶ simulation ──▶ Run, Recording

``two_tiers`` has the one for near and far memory, ``three_tiers`` the one with an SSD.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any

from tidegate import units
from tidegate.errors import LongRun
from tidegate.experiments.runs import Run
from tidegate.policies.interface.policy import Policy
from tidegate.simulation.recorded import Recording
from tidegate.simulation.recording import Window

if TYPE_CHECKING:
    from tidegate.experiments.specification import RunSpec

LONG = 10**9  # touches: about ten seconds


class PreparedRun(ABC):
    """A run whose names are looked up. The simulation is set up when it is first asked for."""

    near: int  # bytes, in whole frames

    def __init__(self, spec: RunSpec, window: Window | None = None):
        """``window``: what to record."""
        self.spec, self.window = spec, window
        self.machine, self.trace = spec.load_machine(), spec.trace()

    @property
    @abstractmethod
    def policies(self) -> dict[str, Policy]:
        """The policies, by the setting that names them."""

    @cached_property
    def simulation(self) -> Any:
        """The simulation, which runs once: ``simulation/gpu`` or ``simulation/tiers``."""
        return self._set_up()

    @abstractmethod
    def _set_up(self) -> Any: ...

    @property
    @abstractmethod
    def inputs(self) -> dict[str, Any]:
        """Everything that can change the outcome."""

    @property
    def code_dependencies(self) -> tuple[object, ...]:
        """The objects and classes whose code takes part in the run."""
        return (
            *self.policies.values(),
            *self.trace.code_dependencies(),
            *self.machine.code_dependencies(),
        )

    @abstractmethod
    def describe(self, key: str, inputs: dict[str, Any]) -> Run:
        """Put the books of the finished simulation into a Run."""

    @abstractmethod
    def recording(self) -> Recording:
        """Return what the finished simulation recorded."""

    def run(self, progress: Callable[[int], None]) -> None:
        """Run the simulation; warn of very many touches, where their number is known before."""
        touches = getattr(self.trace, "about_touches", None)
        if touches is not None and touches > LONG:
            warnings.warn(
                f"{self.trace.name} has about {units.show_count(touches)} touches, so this takes "
                "a while; Ctrl-C stops it",
                LongRun,
                stacklevel=3,
            )
        self.simulation.run(progress)


def policy_inputs(policy: Policy) -> list[Any]:
    """Return a policy's name and options; the store adds its code and its other attributes."""
    return [type(policy).__qualname__, policy.name, policy.settings()]
