"""Candidates: all that a program whose memory is too small could run under.

``usable``: people can do it today, with their driver and their code. The others are published
systems that need a driver of their own; they are simulated, to show what is lost without them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

BASELINE = "uvm"
# good at all programs, without knowing any: named first of systems that are alike
ANYWHERE = "tide"


@dataclass(frozen=True)
class Candidate:
    """One way to run a program. ``settings`` are fields of ``RunSpec``."""

    name: str
    family: str  # driver, system, placement, program or plan
    does: str  # in words
    settings: dict[str, Any] = field(default_factory=dict, hash=False)
    usable: bool = True
    emits: tuple[str, ...] = ()  # the code that realises it
    recomputes: bool = False  # of the program as it is with recomputation

    @property
    def is_plan(self) -> bool:
        return self.family == "plan"


def _system(name: str, does: str, family: str, usable: bool, emits: tuple[str, ...]) -> Candidate:
    return Candidate(name, family, does, {"system": name}, usable, emits)


def _plan(spec: str, does: str) -> Candidate:
    managed = "by=managed" in spec
    emits = ("cuda",) if managed else ("torch",)
    return Candidate(spec, "plan", does, {"placement": spec}, True, emits)


RECOMPUTE = Candidate(
    "recompute",
    "program",
    "activations are computed again in the backward pass (torch.utils.checkpoint); what still does "
    "not fit moves by look-ahead",
    {"placement": "look-ahead"},
    recomputes=True,
)
_OBJECTS = ("cuda", "openmp", "preload")
_CANDIDATES = (
    _system("uvm", "managed memory, as the driver ships", "driver", True, ()),
    _system("acbm", "managed memory with access counters on", "driver", True, ()),
    _system("host", "everything stays in host memory", "placement", True, _OBJECTS),
    _system("um-pf", "each launch's objects are prefetched", "placement", True, _OBJECTS),
    _system("rdm", "objects used soonest are near (SC'19)", "placement", True, _OBJECTS),
    _system("glm", "objects accessed most are near (SC'19)", "placement", True, _OBJECTS),
    _system("object-lru", "objects used last are near (SC'19)", "placement", True, _OBJECTS),
    _system("lru", "LRU by access counters (ObservUVM)", "system", False, ()),
    _system("tm++", "tournament of policies (ObservUVM)", "system", False, ()),
    _system("cppe", "prefetch and eviction that cooperate (CPPE)", "system", False, ()),
    _system("tide", "rent or buy, least promised use (ours)", "system", False, ()),
    RECOMPUTE,
    _plan("look-ahead", "the next tensors come and idle ones leave beside the kernels"),
    _plan("look-ahead(ahead=2GiB)", "the same, further ahead"),
    _plan("look-ahead(by=managed)", "the same by prefetches of managed memory"),
    _plan("greedy", "the longest idle times of the largest tensors are used (G10)"),
    _plan("offload", "all idle activations are copied to the host and back"),
    _plan("pin-and-stream", "some weights stay, the others pass through"),
)


def candidates(recorded_again: bool = False) -> list[Candidate]:
    """Return all candidates, the plain driver first.

    ``recorded_again``: the program was also recorded with recomputation, which is one more.
    """
    return [c for c in _CANDIDATES if recorded_again or not c.recomputes]


def find(name: str) -> Candidate:
    """Return the candidate of this name."""
    return next(c for c in _CANDIDATES if c.name == name)
