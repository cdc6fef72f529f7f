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


_PUBLISHED = (
    System("uvm", "lrm", "tree", "um", "NVIDIA's driver as it ships (open-gpu-kernel-modules 595.45.04)"),
    System("acbm", "lrm", "tree", "acbm", "NVIDIA's driver with access counters on (ObservUVM, II-B)"),
    System("ea", "lrm", "early-adaptor", "um", "EarlyAdaptor, a stand-in of ours (ObservUVM, VII-B)"),
    System("lru", "lru", "tree", "um", "ObservUVM, VI-A"),
    System("lfu", "lfu", "tree", "um", "ObservUVM, VI-A"),
    System("cp", "cp", "tree", "um", "ObservUVM, VI-A"),
    System("tm", "tournament", "tree", "um", "ObservUVM, VI-B"),
    System("tm+", "tournament", "fdp", "um", "ObservUVM, VI-C"),
    System("tm++", "tournament", "fdp+rgp", "um", "ObservUVM, VI-D"),
)
SYSTEMS: dict[str, System] = {s.name: s for s in _PUBLISHED}


def find_system(name: str) -> System:
    """The system of that name.

    >>> find_system("uvm").eviction
    'lrm'
    """
    if name.lower() not in SYSTEMS:
        raise UnknownName("system", name, SYSTEMS)
    return SYSTEMS[name.lower()]
