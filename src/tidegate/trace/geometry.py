"""Geometry: the sizes of pages and regions.

ObservUVM 64 KB / 2 MB, CPPE 4 KB / 64 KB, GMT 64 KB / 64 KB.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tidegate import units
from tidegate.errors import TidegateError


@dataclass(frozen=True)
class Geometry:
    """Sizes of a page, the unit of faults and migration, and of a region, the unit of eviction.

    >>> Geometry(64 * 1024, 2 * 1024 * 1024).pages_per_region
    32
    """

    page: int = field(default=64 * units.KiB, metadata={"parse": units.size})
    region: int = field(default=2 * units.MiB, metadata={"parse": units.size})

    def __post_init__(self) -> None:
        for label, given in (("page", self.page), ("region", self.region)):
            if given < 1 or given & (given - 1):
                raise TidegateError(
                    f"{label} must be a power of two, got {given} bytes; try {label}=64KiB"
                )
        if self.region < self.page:
            raise TidegateError(
                f"region must be at least a page of {self.page} bytes, got {self.region} bytes"
            )

    @property
    def pages_per_region(self) -> int:
        return self.region // self.page

    def pages(self, size: int) -> int:
        """Return the pages that ``size`` bytes take."""
        return -(-size // self.page)

    def regions(self, size: int) -> int:
        """Return the regions that ``size`` bytes take."""
        return -(-size // self.region)

    @classmethod
    def parse(cls, text: str) -> Geometry:
        """Return the geometry that a text ``PAGE/REGION`` describes.

        >>> Geometry.parse("4KiB/64KiB").pages_per_region
        16
        """
        page, slash, region = text.partition("/")
        if not slash:
            raise TidegateError(f"geometry must be PAGE/REGION, such as 64KiB/2MiB, got '{text}'")
        return cls(units.size(page), units.size(region))

    def __str__(self) -> str:
        return f"{units.show_size(self.page)} / {units.show_size(self.region)}"
