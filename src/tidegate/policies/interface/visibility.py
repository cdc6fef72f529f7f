"""Visibility: what a policy may see. Published policies differ most in it, so each declares it.

Faults      faults, migrations, evictions                        every driver
Samples     + notifications for pages it observes                access counters (ObservUVM)
TouchBits   + which pages of a region were touched, at eviction  a bit vector per region (HPE, CPPE)
Everything  + last touch and access site of every page, always   instrumented programs, oracles
"""

from __future__ import annotations

from dataclasses import dataclass
from operator import index

from tidegate.errors import PolicyError

_MOST_REGIONS = 2**31 - 1  # as many as there may be pages


@dataclass(frozen=True)
class Sees:
    """Base of the visibility levels."""

    @property
    def level(self) -> str:
        """The level's name, as machine files write it in ``offers``."""
        return {
            "Faults": "faults",
            "Samples": "samples",
            "TouchBits": "touch bits",
            "Everything": "everything",
        }[type(self).__name__]


@dataclass(frozen=True)
class Faults(Sees):
    """Faults, migrations and evictions."""


@dataclass(frozen=True)
class Samples(Sees):
    """Faults, and notifications for up to ``regions`` observed regions at a time."""

    regions: int = 100

    def __post_init__(self) -> None:
        try:
            if 1 <= index(self.regions) <= _MOST_REGIONS and self.regions is not True:
                return
        except TypeError:
            pass
        raise PolicyError(
            f"Samples(regions=…) must be a whole number from 1 to {_MOST_REGIONS}, "
            f"got {self.regions!r}"
        )


@dataclass(frozen=True)
class TouchBits(Sees):
    """Faults, and at a region's eviction which of its pages were touched."""


@dataclass(frozen=True)
class Everything(Sees):
    """Every page's last touch and last reference, at any time; with ``future``, its next touches
    too (Belady).
    """

    future: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.future, bool):
            raise PolicyError(f"Everything(future=…) must be True or False, got {self.future!r}")
