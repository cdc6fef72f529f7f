"""Segments that do not fit together are refused before compiled code, which trusts its columns,
reads beyond them.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tidegate.errors import TidegateError
from tidegate.trace import Launch
from tidegate.trace.trace import Segment
from traces import FLAT, Given, machine, run_of


class Raw(Given):
    """One launch of one segment, exactly as given."""

    def __init__(self, segment: Segment, width: int = 1):
        super().__init__([], [4], FLAT)
        self.segment, self.width = segment, width

    def launches(self):
        yield Launch("raw", [self.segment], self.width)


BAD = [
    ([0, 1], [0, 1], [0, 0], [1, 1], [0, 0]),  # leaves touches out
    ([0, 5], [0, 1], [0, 0], [1, 1], [0, 0]),  # ends behind its touches
    ([1, 2], [0, 1], [0, 0], [1, 1], [0, 0]),
    ([0, 2, 1, 2], [0, 1], [0, 0], [1, 1], [0, 0]),  # goes back
    ([0, -1, 2], [0, 1], [0, 0], [1, 1], [0, 0]),
    ([], [], [], [], []),  # no blocks, not even none
    ([0, 2], [0, 1], [0], [1, 1], [0, 0]),  # columns of different lengths
    ([0, 2], [0, 1], [0, 0], [1], [0, 0]),
    ([0, 2], [0, 1], [0, 0], [1, 1], [0]),
]


@pytest.mark.parametrize("policy", ["lrm", "belady"])
def test_a_segment_that_does_not_fit_together_is_refused(policy):
    for columns in BAD:
        with pytest.raises(TidegateError):
            run_of(Raw(Segment(*columns)), machine(), 2, eviction=policy)


def test_a_launch_without_width_is_refused():
    with pytest.raises(TidegateError, match="width"):
        run_of(Raw(Segment([0, 1], [0], [0], [1], [0]), width=0), machine(), 2)


CRASH = """
import sys
sys.path.insert(0, {tests!r})
from traces import machine, one_block, reads, run_of
run_of(one_block(reads([0, 10_000_000]), [8]), machine(), 1, eviction="belady")
"""


@pytest.mark.slow
def test_belady_does_not_look_into_the_future_of_pages_that_are_not_there():
    """In a process of its own: without the check it dies of a segmentation fault."""
    code = CRASH.format(tests=str(Path(__file__).parents[1]))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
    assert (
        "TidegateError: trace given touches page 10000000, but its pages run from 0 to 7"
        in done.stderr
    )
