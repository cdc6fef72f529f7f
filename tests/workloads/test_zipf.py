from __future__ import annotations

import numpy as np
import pytest

from tidegate.errors import TidegateError
from tidegate.trace.build import SEGMENT_TOUCHES
from tidegate.units import MiB
from workloads.read_traces import program, read


def frequencies(**options: object) -> np.ndarray:
    trace = program("zipf", **options)
    (launch,) = read(trace)
    return np.bincount(launch.page, minlength=trace.objects[0].pages) / len(launch.page)


@pytest.mark.parametrize("skew", [0.5, 0.9, 1.0, 1.5])
def test_frequencies_follow_the_law(skew: float) -> None:
    seen = np.sort(frequencies(bytes=16 * MiB, touches=1_500_000, skew=skew))[::-1]
    law = np.arange(1, 257.0) ** -skew
    law /= law.sum()
    np.testing.assert_allclose(seen[:20], law[:20], rtol=0.05)
    assert np.abs(seen - law).sum() < 0.02


def test_no_skew_is_uniform() -> None:
    seen = frequencies(bytes=8 * MiB, touches=128_000, skew=0)
    np.testing.assert_allclose(seen, 1 / 128, rtol=0.2)


def test_hot_pages_are_not_neighbours() -> None:
    hottest = np.sort(np.argsort(frequencies(bytes="1GiB", touches=1_000_000, skew=1))[-100:])
    assert np.median(np.diff(hottest)) > 16384 / 100 / 3


def test_seed_moves_the_hot_pages() -> None:
    one, two = (
        np.argmax(frequencies(bytes="64MiB", touches=10_000, skew=1, seed=s)) for s in (1, 2)
    )
    assert one != two


def test_segments_share_their_hot_pages() -> None:
    (launch,) = read(program("zipf", bytes="64MiB", touches=2 * SEGMENT_TOUCHES, skew=1))
    first, second = launch.page[:SEGMENT_TOUCHES], launch.page[SEGMENT_TOUCHES:]
    assert np.bincount(first).argmax() == np.bincount(second).argmax()
    assert (first != second).mean() > 0.8


def test_refuses_nonsense() -> None:
    for wrong in ({"skew": -1}, {"touches": 0}, {"seed": -1}):
        with pytest.raises(TidegateError, match="must be at least"):
            program("zipf", **wrong)
