"""Bits, against Python's own integers and bytes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tidegate.compiled.bits import flagged, highest, lowest, popcount, unflag
from tidegate.compiled.jit import jit

pytestmark = pytest.mark.oracle

WORDS = st.integers(0, 2**64 - 1)
BYTES = st.binary(min_size=80, max_size=80)
FLAGS = st.sampled_from([1 << i for i in range(8)])


@jit
def _of_word(word: Any) -> Any:
    return popcount(word), highest(word | np.uint64(1)), lowest(word)


@jit
def _flagged(flags: Any, at: int, flag: int) -> Any:
    return flagged(flags, at, flag)


@jit
def _unflag(flags: Any, at: int, count: int, flag: int) -> None:
    unflag(flags, at, count, flag)


@given(WORDS)
@example(0)
def test_bits_of_a_word(word: int) -> None:
    ones, high, low = _of_word(np.uint64(word))
    assert ones == word.bit_count()
    assert high == (word | 1).bit_length() - 1
    assert low == ((word & -word).bit_length() - 1 if word else 64)


@given(BYTES, st.integers(0, 16), FLAGS)
def test_which_bytes_have_a_flag(given: bytes, at: int, flag: int) -> None:
    found = int(_flagged(np.frombuffer(bytearray(given), np.uint8), at, flag))
    assert found == sum(1 << i for i in range(64) if given[at + i] & flag)


@given(BYTES, st.integers(0, 16), st.integers(0, 64), FLAGS)
def test_a_flag_is_taken_from_some_bytes_and_from_no_others(
    given: bytes, at: int, count: int, flag: int
) -> None:
    flags = np.frombuffer(bytearray(given), np.uint8)
    _unflag(flags, at, count, flag)
    assert flags.tolist() == [b & ~flag if at <= i < at + count else b for i, b in enumerate(given)]
