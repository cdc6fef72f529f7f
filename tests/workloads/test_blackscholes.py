from __future__ import annotations

import numpy as np
import pytest

from tidegate.trace.trace import Provenance
from tidegate.units import KiB, MiB
from workloads.read_traces import pages_of, program, read


def test_each_iteration_walks_five_vectors_in_step() -> None:
    trace = program("blackscholes", bytes=5 * 8 * MiB, iterations=2)
    launches = read(trace)
    assert len(launches) == 2
    first = {o.name: o.first_page for o in trace.objects}
    for launch in launches:
        pages = launch.page.reshape(128, 5)
        for column, name in enumerate(("stock", "strike", "years", "call", "put")):
            np.testing.assert_array_equal(pages[:, column], first[name] + np.arange(128))
        np.testing.assert_array_equal(
            launch.reference.reshape(128, 5), np.tile(np.arange(5), (128, 1))
        )
        assert (launch.bytes == 64 * KiB).all()
        assert (np.diff(launch.starts) == 5).all()
        assert launch.width == 64


def test_call_and_put_are_written() -> None:
    trace = program("blackscholes", bytes=40 * MiB + 333, iterations=1)
    (launch,) = read(trace)
    assert set(launch.page[launch.write == 1].tolist()) == pages_of(trace, "call", "put")
    assert set(launch.page[launch.write == 0].tolist()) == pages_of(
        trace, "stock", "strike", "years"
    )
    assert launch.bytes.sum() == sum(o.bytes for o in trace.objects)
    assert trace.provenance is Provenance.DERIVED


def test_intensity_is_the_operations_per_option_over_its_bytes() -> None:
    assert read(program("blackscholes", bytes=MiB))[0].intensity == pytest.approx(59 / 20)
