"""A trace whose runs make calls of every kind: faults, prefetches, frees, notifications."""

from __future__ import annotations

from tidegate.trace.geometry import Geometry
from traces import Given, Kernel, reads, writes

PAGES, REGIONS = 8, 24
GEOMETRY = Geometry(65536, 65536 * PAGES)
NEAR = 16 * GEOMETRY.region


def with_frees() -> Given:
    """Return passes over regions, of which some die and come again."""

    def whole(region: int) -> tuple[int, int]:
        return region * PAGES, (region + 1) * PAGES

    def use(region: int) -> Kernel:
        first, end = whole(region)
        return Kernel([reads(range(first, end)), writes(range(first, end, 3))])

    kernels: list[Kernel] = []
    for turn in range(8):
        order = [(turn * 5 + 7 * i) % REGIONS for i in range(REGIONS)]
        kernels += [use(region) for region in order]
        if turn % 2:
            dead = tuple(whole(region) for region in order[-3:])
            kernels.append(Kernel([reads([order[0] * PAGES])], told={"frees": dead}))
    return Given(kernels, [REGIONS * PAGES], GEOMETRY)
