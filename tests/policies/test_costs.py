"""What a policy is told of its machine's costs, and of the rent of a region it is notified of."""

from __future__ import annotations

import pytest

from tidegate.policies.interface.forecast import Costs
from tidegate.policy import PlacementPolicy, Samples
from traces import PAGE, PAGES, Given, Kernel, Touch, machine, run_of


class Rented(PlacementPolicy):
    """Leave everything far, and add up the accesses that notifications tell of."""

    sees = Samples()

    def start(self) -> None:
        self.costs = self.memory.costs
        self.total = 0
        self.memory.count_remote(1)

    def on_launch(self, launch: int) -> None:
        self.memory.advise(0, 2 * PAGES, "far")

    def on_notification(self, region: int) -> None:
        self.total += self.memory.accesses

    def report(self) -> dict[str, object]:
        return {"total": self.total}


SHARED_BY = 3  # thread blocks
KERNEL = Kernel([[Touch(0), Touch(PAGES)]], told={"sharing": (float(SHARED_BY),)})
# The driver serves the first launch's notifications in the second one.
TRACE = Given([KERNEL, Kernel([[Touch(1)]])], [2 * PAGES])


def test_costs_are_those_of_the_machine() -> None:
    policy = Rented()
    run_of(TRACE, machine(), 2, placement=policy, compiled=False)
    assert policy.costs == Costs(
        fault=20_000.0,
        observation=PAGE / 8 + 1536.0 + PAGE / 16,  # sampling and noticing take no time here
        bring=10_000.0 + 1536.0 + PAGES * (PAGE / 16 + 48.0 * PAGE / 1024),
        fetch=10_000.0 + 1536.0 + PAGES * (PAGE / 16 + 48.0 * PAGE / 1024),
        send=PAGES * PAGE / 8,
        remote=PAGE / 8,  # half of what the link carries inward
    )


@pytest.mark.parametrize("compiled", [False, True])
def test_a_notification_tells_accesses_of_all_who_share_a_page(compiled: bool) -> None:
    """Nothing caches far memory: a page crosses the link once for each thread block."""
    policy = Rented()
    run_of(TRACE, machine(), 2, placement=policy, compiled=compiled)
    assert policy.report() == {"total": 2 * SHARED_BY * PAGE // 128}
