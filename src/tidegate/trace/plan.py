"""Plan: what each launch uses, as plain data. A compiler or a profile makes it; a trace carries it.

    ProgramModel + the values of its variables ──▶ make_plan ──▶ Plan ──▶ memory.plan, which a policy reads at each launch

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
    distance: float  # launches until it is used again; infinite when it never is
    # bytes accessed over bytes there are; None: the trip count is not known
    density: float | None = None
    copied_in: bool = True  # by the launch's own map clauses
    copied_out: bool = True


@dataclass(frozen=True)
class PlannedLaunch:
    """One place that launches a region; a trace's launches bear its name."""

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
        """Part of what names a run."""
        return hashlib.sha256(repr(asdict(self)).encode()).hexdigest()[:16]

    def to_data(self) -> dict[str, Any]:
        """What JSON can hold; an infinite distance is null there."""
        uses = {
            launch.name: [
                {**asdict(u), "distance": None if math.isinf(u.distance) else u.distance}
                for u in launch.uses
            ]
            for launch in self.launches
        }
        return {"launches": uses, "global_locality": dict(self.global_locality)}
