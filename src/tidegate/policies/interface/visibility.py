"""What a policy may see. Published policies differ most in what they can know, so it is part of
their declaration.

Faults      faults, migrations, evictions                        what every driver knows
Samples     + notifications for pages it asked to observe        access counters (ObservUVM)
TouchBits   + which pages of a region were touched, at eviction  a bit vector per region (HPE, CPPE)
Everything  + last touch and reference of every page, any time   instrumented programs, oracles
"""

from __future__ import annotations

from dataclasses import dataclass


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


@dataclass(frozen=True)
class TouchBits(Sees):
    """Faults, and at a region's eviction which of its pages were touched."""


@dataclass(frozen=True)
class Everything(Sees):
    """Every page's last touch and last reference, at any time; with ``future``, its next touches
    too (Belady).
    """

    future: bool = False
