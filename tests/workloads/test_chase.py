from __future__ import annotations

import numpy as np
import pytest

from tidegate.errors import TidegateError
from tidegate.trace.geometry import Geometry
from tidegate.trace.trace import Provenance
from tidegate.units import MiB
from workloads.read_traces import program, read


def test_a_chain_is_a_block() -> None:
    trace = program("chase", bytes=64 * MiB, chains=30, steps=100)
    (launch,) = read(trace)
    np.testing.assert_array_equal(np.diff(launch.starts), np.full(30, 100))
    assert (launch.bytes == 64).all()
    assert not launch.write.any()
    assert trace.provenance is Provenance.ASSUMED


def test_long_chains_are_followed_in_several_launches() -> None:
    launches = read(program("chase", bytes=64 * MiB, chains=300, steps=10_000))
    assert [int(np.diff(launch.starts).max()) for launch in launches] == [4096, 4096, 1808]
    assert {len(launch.starts) - 1 for launch in launches} == {300}
    a, b = launches[0].page, launches[1].page
    assert (a != b).mean() > 0.5


def test_chains_are_independent_and_share_hot_pages() -> None:
    (launch,) = read(program("chase", bytes=64 * MiB, chains=2, steps=4000, skew=1.2))
    one, two = launch.page[:4000], launch.page[4000:]
    assert (one != two).mean() > 0.5
    assert np.bincount(one).argmax() == np.bincount(two).argmax()


def test_a_node_is_no_larger_than_its_page() -> None:
    (launch,) = read(program("chase", Geometry(32, 32), bytes=1000, chains=2, steps=50))
    assert launch.bytes.max() <= 32


def test_refuses_nonsense() -> None:
    for wrong in ({"skew": -0.1}, {"steps": 0}, {"chains": 0}, {"seed": -1}):
        with pytest.raises(TidegateError, match="must be at least"):
            program("chase", **wrong)
