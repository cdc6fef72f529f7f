"""Systems: the published bundles of policies, by name."""

from __future__ import annotations

from dataclasses import dataclass

from tidegate.errors import UnknownName


@dataclass(frozen=True)
class System:
    """Which policies go together, and who published them so."""

    name: str
    eviction: str
    prefetch: str
    placement: str
    source: str


SYSTEMS: dict[str, System] = {
    s.name: s
    for s in (System("uvm", "lrm", "tree", "um", "NVIDIA's driver as it ships (open-gpu-kernel-modules 595.45.04)"),)
}


def find_system(name: str) -> System:
    """The system of that name.

    >>> find_system("uvm").eviction
    'lrm'
    """
    if name.lower() not in SYSTEMS:
        raise UnknownName("system", name, SYSTEMS)
    return SYSTEMS[name.lower()]
