"""What does a call cost a policy in the kernel, beside ``lrm``, and how long is the longest?

    python -m benchmarks.in_kernel

Each policy is emitted, verified and played a run of the workload; the answers are compared, too.
Times are the least of some plays; a call of lrm in the same minutes is the unit.
"""

from __future__ import annotations

from rich.console import Console
from rich.table import Table

from tidegate.driver.check import Checked, check_policy
from tidegate.driver.find import find_policy

WORKLOAD, SETTINGS = "GMV", {"scale": "1/8", "oversubscribe": "50%"}
POLICIES = (
    *("lrm", "fifo", "mru", "steered(cp)", "random", "reserved-lru", "clock", "lru-ideal"),
    *("lru", "cp", "loop", "lfu", "tournament", "fdp", "rgp", "fdp+rgp", "stream"),
)
PLAYS = 3


def _best(spec: str) -> Checked:
    kind, _ = find_policy(spec)
    played = [check_policy(find_policy(spec)[1], WORKLOAD, kind, **SETTINGS) for _ in range(PLAYS)]
    wrong = [p.first_wrong for p in played if p.wrong]
    assert not wrong, wrong
    return min(played, key=lambda p: p.ns_per_call)


def main() -> None:
    found = {spec: _best(spec) for spec in POLICIES}
    unit = found["lrm"].ns_per_call
    table = Table("policy", "instructions", "calls", "answers", "ns a call", "× lrm", "longest, µs")
    for spec, checked in found.items():
        table.add_row(
            spec,
            f"{checked.instructions:,}",
            f"{checked.calls:,}",
            f"{checked.compared:,}",
            f"{checked.ns_per_call:.0f}",
            f"{checked.ns_per_call / unit:.1f}",
            f"{checked.longest_ns / 1000:.1f} ({checked.longest_event})",
        )
    Console(width=100).print(table)


if __name__ == "__main__":
    main()
