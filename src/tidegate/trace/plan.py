"""Plan: what each launch uses, as plain data. A compiler or a profile makes it; a trace has it.

    ProgramModel + values of its variables ─▶ make_plan ─▶ Plan ─▶ memory.plan, read by policies
                                  Trace ─▶ profile ─────────┘      at each launch

A plan does not depend on the size of any memory: the policy decides what is done where.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any


@dataclass(frozen=True)
class PlannedUse:
    """What a launch does with one object, as the compiler estimates it."""

    object: str
    locality: float  # regional locality, RL
    distance: float  # launches until it is used again; infinite if it never is
    density: float | None = None  # bytes accessed over bytes allocated; None: not known
    copied_in: bool = True  # by the launch's own map clauses
    copied_out: bool = True


@dataclass(frozen=True)
class PlannedLaunch:
    """One launch site; ``name`` is the place that its launches have in a trace."""

    name: str
    uses: tuple[PlannedUse, ...]


@dataclass(frozen=True)
class Plan:
    """Every launch's uses, and every object's global locality (equation 1)."""

    launches: tuple[PlannedLaunch, ...]
    global_locality: Mapping[str, float] = field(default_factory=dict)

    @cached_property
    def by_name(self) -> dict[str, PlannedLaunch]:
        return {launch.name: launch for launch in self.launches}

    @property
    def digest(self) -> str:
        """A hash of the plan, for the identity of a run."""
        return hashlib.sha256(repr(asdict(self)).encode()).hexdigest()[:16]

    def to_data(self) -> dict[str, Any]:
        """Return the plan as JSON data. An infinite distance becomes null."""
        uses = {
            launch.name: [
                {**asdict(u), "distance": None if math.isinf(u.distance) else u.distance}
                for u in launch.uses
            ]
            for launch in self.launches
        }
        return {"launches": uses, "global_locality": dict(self.global_locality)}
