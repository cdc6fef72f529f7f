"""Between the engine and its policies: who hears of what, who is asked, and whose fault it was."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from tidegate.errors import PolicyError, TidegateError
from tidegate.policies.interface.policy import PlacementPolicy, Policy, check_declared, label
from tidegate.policies.interface.visibility import Everything, TouchBits
from tidegate.registry import error_line

_EVENTS = ("on_launch", "on_fault", "on_prefetch", "on_eviction", "on_notification")


class Relay:
    """Relays events to policies. ``carry_out`` does what they asked for meanwhile, after each."""

    def __init__(self, policies: tuple[Policy, ...], carry_out: Callable[[], None]):
        self.policies, self._carry_out = policies, carry_out
        self._heard: dict[str, list[tuple[Policy, Callable[[int], Any]]]] = {}

    def started(self) -> None:
        """A policy has begun, or begun anew.

        Nobody is called for an event that it does not define.
        """
        self._heard = {
            event: [(p, m) for p in self.policies if (m := _method(p, event))] for event in _EVENTS
        }

    def tell(self, event: str, number: int, only: Policy | None = None) -> None:
        """Relay an event, to all or to one."""
        for policy, method in self._heard[event]:
            if only is None or policy is only:
                try:
                    method(number)
                except Exception as error:
                    raise _blame(policy, event, (number,), error) from error
                self._carry_out()

    def ask(self, policy: Policy, method: str, *argument: int) -> Any:
        """What a policy answers."""
        try:
            return getattr(policy, method)(*argument)
        except Exception as error:
            raise _blame(policy, method, argument, error) from error


def check_policies(policies: Iterable[Policy]) -> None:
    """Live memory shows faults, samples and touch bits; nothing shows every touch."""
    for policy in policies:
        check_declared(policy)
        if isinstance(policy.sees, Everything):
            raise TidegateError(
                f"policy '{label(policy)}' sees every touch, which no live memory can show; "
                "take one that sees faults, samples or touch bits, such as lru"
            )
        if isinstance(policy, PlacementPolicy) and policy.needs_plan:
            raise TidegateError(
                f"policy '{label(policy)}' must know what each launch uses before it begins, and live memory cannot tell; "
                "take um or host"
            )


def _method(policy: Policy, event: str) -> Callable[[int], Any] | None:
    """How to tell this policy of an event, if it defines what to do then.

    Touch bits are shown while a region leaves.
    """
    if getattr(type(policy), event, None) is getattr(Policy, event, None):
        return None
    method: Callable[[int], Any] = getattr(policy, event)
    if event != "on_eviction" or not isinstance(policy.sees, TouchBits):
        return method

    def with_touch_bits(region: int) -> None:
        policy.memory.leaving = region
        method(region)
        policy.memory.leaving = -1

    return with_touch_bits


def _blame(policy: Policy, method: str, argument: tuple[int, ...], error: Exception) -> PolicyError:
    where = ", ".join(map(str, argument))
    return PolicyError(
        f"policy '{label(policy)}' raised in {method}({where}): {error_line(error, type(policy))}"
    )
