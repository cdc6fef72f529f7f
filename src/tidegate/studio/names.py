"""Names that the page offers."""

from __future__ import annotations

from functools import cache
from typing import Any

from tidegate.machine.machine import load_machine, preset_names
from tidegate.policies import registries
from tidegate.policies.systems import SYSTEMS
from tidegate.workloads.program import workloads


@cache
def known_names() -> dict[str, Any]:
    """Return all workloads, policies, systems and machines, by family."""
    families = ("eviction", "prefetch", "placement", "tiering")
    machines = {name: load_machine(name) for name in preset_names()}
    return {
        "workloads": workloads.names(),
        **{family: getattr(registries, family).names() for family in families},
        "systems": list(SYSTEMS),
        "machines": {name: machine.near.bytes for name, machine in machines.items()},
    }
