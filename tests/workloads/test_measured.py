"""The measured programs: what a thread block touches, by the kernels' index functions."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from tidegate.trace.geometry import Geometry
from workloads.read_traces import program, read

pytestmark = pytest.mark.closed_form
SMALL_PAGES = Geometry(4096, 2 << 20)
MIB = 1 << 20


@pytest.mark.parametrize("pages", [1, 8, 512])
def test_sparse_loads_and_then_stores_k_pages_of_each_block(pages: int) -> None:
    trace = program("sparse", SMALL_PAGES, bytes=8 * MIB, pages=pages, passes=2)
    first, second = read(trace)
    np.testing.assert_array_equal(first.page, second.page)
    assert len(first.page) == 2 * 4 * pages
    assert set(Counter(first.page.tolist()).values()) == {2}
    assert Counter((np.unique(first.page) // 512).tolist()) == dict.fromkeys(range(4), pages)
    for block in first.blocks():
        writes = [write for _, write, _, _ in block]
        assert writes == sorted(writes)
        assert len(block) <= 2 * 256


def test_triad_reads_two_vectors_and_writes_one() -> None:
    trace = program("triad", SMALL_PAGES, bytes=3 * MIB)
    (launch,) = read(trace)
    for site, (vector, write) in enumerate([("A", 0), ("B", 0), ("C", 1)]):
        mine = launch.reference == site
        assert launch.bytes[mine].sum() == MIB, vector
        assert set(launch.write[mine].tolist()) == {write}


def test_the_stencil_changes_grids_after_each_launch() -> None:
    trace = program("tiled-stencil", SMALL_PAGES, bytes=2 * MIB, iterations=2)
    even, odd = read(trace)
    assert set(even.reference[even.write == 1].tolist()) == {1}
    assert set(odd.reference[odd.write == 1].tolist()) == {0}
    n = 512
    for launch in (even, odd):  # the edge is not written
        assert launch.bytes[launch.write == 1].sum() == 4 * (n - 2) ** 2


def test_a_sequence_uses_every_page_of_both_arrays_once() -> None:
    (launch,) = read(program("sequence", SMALL_PAGES, bytes=32 * MIB, passes=1))
    assert sorted(launch.page.tolist()) == list(range(2 * 4096))
    for block in launch.blocks():
        sites = [site for *_, site in block]
        assert sites[0] == 0
        assert sites.count(0) == sites.count(1)


def test_scatter_writes_the_pages_that_it_reads_and_spreads_them() -> None:
    trace = program("scatter", SMALL_PAGES, bytes=512 * MIB, passes=2)
    first, second = read(trace)
    np.testing.assert_array_equal(first.page, second.page)
    loads, stores = (first.page[first.write == w] for w in (0, 1))
    half = 256 * MIB // 4096
    assert set((stores - half).tolist()) == set(loads.tolist())
    # of n draws from n pages a share of 1 - 1/e is hit
    assert len(np.unique(loads)) / half == pytest.approx(1 - np.exp(-1), abs=0.02)
    counts = np.bincount(loads // 512, minlength=half // 512)
    assert counts.min() > 0.7 * counts.mean()


def test_page_order_has_a_launch_for_each_page() -> None:
    trace = program("page-order", bytes=2 * MIB, order="3+0+17")
    assert [launch.page.tolist() for launch in read(trace)] == [[3], [0], [17]]
