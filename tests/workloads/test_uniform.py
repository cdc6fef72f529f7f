from __future__ import annotations

import numpy as np

from tidegate.trace.build import SEGMENT_TOUCHES
from tidegate.units import KiB, MiB
from workloads.read_traces import program, read


def test_every_page_comes_up_about_as_often() -> None:
    (launch,) = read(program("uniform", bytes=8 * MiB, touches=128_000))
    counts = np.bincount(launch.page, minlength=128)
    chi_squared = ((counts - 1000) ** 2 / 1000).sum()
    assert len(counts) == 128
    assert 70 < chi_squared < 200  # mean 127, standard deviation 16


def test_touches_are_as_many_as_asked_for_across_segments() -> None:
    (launch,) = read(program("uniform", bytes=8 * MiB, touches=SEGMENT_TOUCHES + 5))
    assert len(launch.page) == SEGMENT_TOUCHES + 5
    assert not launch.write.any()
    assert (launch.bytes == 64 * KiB).all()


def test_segments_differ_and_so_do_seeds() -> None:
    def pages(seed: int) -> np.ndarray:
        return read(program("uniform", bytes="1GiB", touches=SEGMENT_TOUCHES + 1000, seed=seed))[
            0
        ].page

    one, two = pages(1), pages(2)
    assert (one[:1000] != one[SEGMENT_TOUCHES:]).mean() > 0.9
    assert (one != two).mean() > 0.9
