"""Totals of ``tidegate trace info``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from tidegate.errors import TidegateError
from tidegate.trace import Copy, Launch, Provenance, Trace, blocks_of, lay_out
from tidegate.trace.geometry import Geometry
from tidegate.trace.info import describe
from tidegate.workloads import workloads
from traces import PAGE, Given, Kernel, reads, writes

WINDOW, MOST = 1 << 16, 64


def test_by_hand():
    trace = Given(
        [Kernel([reads([0, 1], bytes=100), writes([1])]), Kernel([reads([8])], width=3)],
        objects=[2, 4],
    )
    info = describe(trace)
    assert (info.touches, info.writes, info.bytes, info.touched_pages) == (4, 1, 200 + 2 * PAGE, 3)
    columns = ["name", "blocks", "touches", "bytes"]
    assert info.launches.select(columns).rows() == [
        ("kernel", 2, 3, 200 + PAGE),
        ("kernel", 1, 1, PAGE),
    ]
    assert info.objects.rows() == [
        ("o0", 2 * PAGE, 2 * PAGE, 1.0),
        ("o1", 4 * PAGE, 4 * PAGE, 0.25),
    ]
    assert info.live_peak == 6  # all pages hold host data, touched or not
    assert info.working_set.rows() == [(0, 3, 3 * PAGE)]


def test_lifetimes_places_and_copies():
    """Two pages of an unwritten object live at a time, beside the four with host data."""
    told = [
        {"frees": ((8, 9),), "duration": 5.0},
        {"place": "there", "copies": (Copy(0, 3),), "frees": ((8, 10), (10, 16))},
    ]
    kernels = [
        Kernel([writes([8, 9])], told=told[0]),
        Kernel([reads([0]), writes([10])], told=told[1]),
        Kernel([writes([11])]),
    ]
    info = describe(Given(kernels, objects=[4, 8], unwritten=["o1"]))
    assert info.live_peak == 4 + 2
    assert info.objects["host_bytes"].to_list() == [4 * PAGE, 0]
    columns = ["place", "duration", "copied_pages", "freed_pages"]
    assert info.launches.select(columns).rows() == [
        ("kernel", 5.0, 0, 1),
        ("there", 0.0, 3, 8),
        ("kernel", 0.0, 0, 0),
    ]


@pytest.mark.parametrize(("passes", "size"), [(1, 64), (3, 64), (5, 37)])
def test_a_loop(passes, size):
    pages = size << 4  # of 64 KiB in size MiB
    info = describe(workloads.make(f"cyclic(bytes={size}MiB, passes={passes})").trace())
    assert (info.touches, info.writes, info.bytes, info.touched_pages) == (
        passes * pages,
        0,
        passes * size << 20,
        pages,
    )
    assert info.launches["touches"].to_list() == [pages] * passes
    assert info.launches["blocks"].to_list() == [-(-pages // 4)] * passes


def test_a_stream():
    info = describe(workloads.make("stream(bytes=64MiB, writes=25%)").trace())
    assert info.objects["share_touched"].to_list() == [1.0, 1.0]
    assert info.bytes == 64 << 20
    assert info.writes == 16 << 4


def test_an_empty_trace_is_refused():
    for nothing in (Given([], [4]), Given([Kernel([])], [4]), Given([Kernel([[], []])], [4])):
        with pytest.raises(TidegateError, match="trace given is empty: it touches nothing"):
            describe(nothing)


def test_progress_counts_touches():
    seen: list[int] = []
    describe(Given([Kernel([reads([0, 1]), reads([2])], cuts=(1,))], [4]), seen.append)
    assert seen == [2, 1]


class Flat(Trace):
    """These pages one after another, cut into segments at odd places."""

    name, geometry, provenance = "flat", Geometry(), Provenance.ASSUMED

    def __init__(self, pages: np.ndarray, cut: int):
        self.sequence, self.cut = pages, cut
        self.objects = lay_out({"a": (int(pages.max()) + 1) * self.geometry.page}, self.geometry)

    def launches(self) -> Iterator[Launch]:
        # a window may reach from one launch into the next
        for half in np.array_split(self.sequence, 2):
            yield Launch(
                "k",
                (
                    blocks_of(5, half[i : i + self.cut], bytes=1)
                    for i in range(0, len(half), self.cut)
                ),
            )

    def identity(self) -> dict[str, Any]:
        return {}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("touches", "width"),
    [
        (1, WINDOW),
        (WINDOW, WINDOW),
        (WINDOW + 1, WINDOW),
        (MOST * WINDOW, WINDOW),
        (MOST * WINDOW + 1, 2 * WINDOW),  # one too many: neighbours are merged
        (2 * MOST * WINDOW, 2 * WINDOW),
        (2 * MOST * WINDOW + 7, 4 * WINDOW),
    ],
)
def test_windows_are_merged_as_if_they_had_been_wide_from_the_start(touches, width):
    rng = np.random.default_rng(touches)
    # hot pages that move, so that neighbouring windows overlap in part
    pages = (np.arange(touches) // 3000 + rng.integers(0, 400, touches)) % 2003
    windows = [pages[i : i + width] for i in range(0, touches, width)]
    table = describe(Flat(pages, cut=99_991)).working_set
    assert len(table) <= MOST
    assert table["first_touch"].to_list() == [i * width for i in range(len(windows))]
    assert table["pages"].to_list() == [len(np.unique(w)) for w in windows]
    assert table["bytes"].to_list() == [n * 65536 for n in table["pages"]]
