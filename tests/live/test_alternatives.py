"""What another policy would have saved: exact for a loop, and said in one line."""

from __future__ import annotations

from pathlib import Path

import pytest

from live.sequences import GEOMETRY
from live.test_script import live, script
from tidegate.live.script.alternatives import pages_read
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


@pytest.mark.slow
def test_a_script_is_told(tmp_path: Path) -> None:
    path = script(tmp_path, "a = np.ones(3 << 16)\nfor _ in range(30): a.sum()\n")
    options = ("--near", "1MiB", "--geometry", "16KiB/128KiB", "--min-array", "64KiB")
    done = live("run", *options, "--eviction", "lrm", "--prefetch", "region", path)
    (line,) = [line for line in done.stderr.splitlines() if "at best" in line]
    assert line.startswith("tidegate: with --eviction ")
    assert line.endswith("× fewer bytes at best (from this run's faults; hits are not seen)")
    assert 2 < float(line.split(": ")[2].split()[0]) < 4  # three frames of twelve change hands
    done = live("run", *options, "--eviction", "lrm", "--quiet", path)
    assert not done.stderr
