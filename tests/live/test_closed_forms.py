"""What policies read of a loop on the live engine, by closed form."""

from __future__ import annotations

import pytest

from live.sequences import GEOMETRY, pages_read
from tidegate.trace.trace import lay_out

pytestmark = pytest.mark.live

REGIONS, FRAMES, PASSES = 12, 8, 20


@pytest.mark.parametrize(
    ("eviction", "regions_read"),
    [
        ("lrm", REGIONS * PASSES),
        # the first pass reads all; a later one what does not fit, through a frame that held another
        ("mru", REGIONS + (PASSES - 1) * (REGIONS - FRAMES + 1)),
    ],
)
def test_a_loop_by_closed_form(eviction: str, regions_read: int) -> None:
    pages = GEOMETRY.pages_per_region
    objects = lay_out({"a": REGIONS * GEOMETRY.region}, GEOMETRY)
    loop = list(range(REGIONS * pages)) * PASSES
    read = pages_read(loop, objects, GEOMETRY, FRAMES, eviction, "region")
    assert read == regions_read * pages
