"""Systems: the published bundles of policies, by name."""

from __future__ import annotations

from dataclasses import dataclass

from tidegate.errors import UnknownName


@dataclass(frozen=True)
class System:
    """Policies that were published together."""

    name: str
    eviction: str
    prefetch: str
    placement: str
    source: str


_PUBLISHED = (
    System(
        "uvm",
        "lrm",
        "tree",
        "um",
        "NVIDIA's driver as it ships (open-gpu-kernel-modules 595.45.04)",
    ),
    System(
        "acbm", "lrm", "tree", "acbm", "NVIDIA's driver with access counters on (ObservUVM, II-B)"
    ),
    System("ea", "lrm", "early-adaptor", "um", "EarlyAdaptor, our stand-in (ObservUVM, VII-B)"),
    System("lru", "lru", "tree", "um", "ObservUVM, VI-A"),
    System("lfu", "lfu", "tree", "um", "ObservUVM, VI-A"),
    System("cp", "cp", "tree", "um", "ObservUVM, VI-A"),
    System("tm", "tournament", "tree", "um", "ObservUVM, VI-B"),
    System("tm+", "tournament", "fdp", "um", "ObservUVM, VI-C"),
    System("tm++", "tournament", "fdp+rgp", "um", "ObservUVM, VI-D"),
    System("sl+lru", "lrm", "sequential-local", "um", "CPPE's baseline (VI-B)"),
    System("cppe", "mhpe", "pattern", "um", "CPPE, IV"),
    System("cppe-scheme1", "mhpe", "pattern(scheme=1)", "um", "CPPE, IV-C, with deletion scheme 1"),
    System("sl+mhpe", "mhpe", "sequential-local", "um", "CPPE without its patterns"),
    System("sl+random", "random", "sequential-local", "um", "CPPE, Figures 3 and 9"),
    System(
        "sl+lru-10%",
        "reserved-lru(percent=10)",
        "sequential-local",
        "um",
        "Ganguly et al. (ISCA'19); CPPE, Figure 9",
    ),
    System(
        "sl+lru-20%",
        "reserved-lru(percent=20)",
        "sequential-local",
        "um",
        "Ganguly et al. (ISCA'19); CPPE, Figure 9",
    ),
    System(
        "sl-stop+lru", "lrm", "stop-when-full", "um", "prefetch until memory is full (CPPE, VI-B)"
    ),
    System("sl+hpe", "hpe", "sequential-local", "um", "HPE, made for no prefetch (CPPE, III)"),
    System("tbn", "tbne", "tbnp", "um", "Ganguly et al. (ISCA'19)"),
    System("host", "lrm", "tree", "host", "SC'19, 2.3: everything stays in host memory"),
    System("um-pf", "lrm", "tree", "prefetch-all", "SC'19, 2.3: UM_PF"),
    System("explicit", "lrm", "tree", "explicit", "SC'19, 2.3: Baseline"),
    System("object-lru", "lrm", "tree", "object-lru", "SC'19, 5.2: LRU by objects"),
    System("rlm", "lrm", "tree", "rlm", "SC'19, 3.2"),
    System("glm", "lrm", "tree", "glm", "SC'19, 3.3"),
    System("rdm", "lrm", "tree", "rdm", "SC'19, 3.4"),
    System("tide", "tide", "tide", "tide", "ours: docs/tide.md"),
)
SYSTEMS: dict[str, System] = {s.name: s for s in _PUBLISHED}


def find_system(name: str) -> System:
    """Return the system of that name.

    >>> find_system("uvm").eviction
    'lrm'
    """
    if name.lower() not in SYSTEMS:
        raise UnknownName("system", name, SYSTEMS)
    return SYSTEMS[name.lower()]
