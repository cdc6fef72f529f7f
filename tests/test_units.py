"""Sizes, times, rates and shares as people write them."""

from __future__ import annotations

import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate import units
from tidegate.errors import TidegateError


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0", 0),
        ("1", 1),
        ("4096", 4096),
        ("7B", 7),
        ("1k", 1000),
        ("1kB", 1000),
        ("1KB", 1000),
        ("1KiB", 1024),
        ("1kib", 1024),
        ("1MB", 10**6),
        ("1M", 10**6),
        ("1MiB", 2**20),
        ("1GB", 10**9),
        ("1GiB", 2**30),
        ("1TB", 10**12),
        ("1TiB", 2**40),
        ("1.5GB", 1_500_000_000),
        (".5GiB", 2**29),
        ("10 GB", 10**10),
        (" 64KiB ", 65536),
        ("1e9", 10**9),
        ("2E3 B", 2000),
        (4096, 4096),
        (2.0, 2),
        (0, 0),
    ],
)
def test_sizes(text, expected):
    assert units.size(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "GB",
        "much",
        "1XB",
        "1 2GB",
        "1,5GB",
        "-1",
        "-1GB",
        "1GB/s",
        "1.2.3",
        "0x10",
        "1_000",
        "nan",
        "inf",
        "1e",
        "1e400",
        -1,
        -0.5,
        math.nan,
        math.inf,
    ],
)
def test_what_is_no_size(text):
    with pytest.raises(TidegateError, match=re.escape(f"got '{text}'")):
        units.size(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("20us", 2e4),
        ("20 us", 2e4),
        ("20µs", 2e4),
        ("50ns", 50.0),
        ("1.5ms", 1.5e6),
        ("2s", 2e9),
        ("1e3ns", 1e3),
        ("0us", 0.0),
        ("0", 0.0),
        (0, 0.0),
        ("20US", 2e4),
    ],
)
def test_times(text, expected):
    assert units.duration(text) == expected


@pytest.mark.parametrize(
    "text", ["20", 20, 0.5, "us", "", "-1us", "1min", "20us/s", "1 2us", "soon", [1], None]
)
def test_what_is_no_time(text):
    with pytest.raises(TidegateError, match="time must be"):
        units.duration(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("22GB/s", 22.0), ("936 GB/s", 936.0), ("1GiB/s", 2**30 / 1e9), ("500MB / s", 0.5)],
)
def test_rates(text, expected):
    assert units.rate(text) == expected


@pytest.mark.parametrize("text", ["22", "22GB", "22GB/h", "GB/s", "/s", "", 22, "-1GB/s"])
def test_what_is_no_rate(text):
    with pytest.raises(TidegateError):
        units.rate(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("50%", 0.5),
        ("12.5 %", 0.125),
        ("1/8", 0.125),
        ("0.25", 0.25),
        (0.25, 0.25),
        (1, 1.0),
        (" 1 ", 1.0),
        ("-1/2", -0.5),
    ],
)
def test_shares(text, expected):
    assert units.fraction(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        "%",
        "half",
        "1/0",
        "1/2/3",
        "nan",
        "inf",
        math.nan,
        math.inf,
        None,
        pytest.param("nan%"),
        pytest.param("inf%"),
        pytest.param("1e400%"),
    ],
)
def test_what_is_no_share(text):
    with pytest.raises(TidegateError, match="share must be"):
        units.fraction(text)


@given(st.integers(0, 2**50))
def test_a_size_shown_can_be_read_again(n):
    assert units.size(units.show_size(n)) == pytest.approx(n, rel=0.01, abs=0.5)


@given(st.floats(0, 1e14))
def test_a_time_shown_can_be_read_again(ns):
    assert units.duration(units.show_duration(ns)) == pytest.approx(ns, rel=0.01, abs=0.01)


@given(st.integers(0, 2**53))
def test_whole_bytes_are_exact(n):
    assert units.size(n) == units.size(str(n)) == units.size(f"{n}B") == n


@pytest.mark.parametrize(
    ("n", "shown"),
    [
        (0, "0 B"),
        (1, "1 B"),
        (1023, "1023 B"),
        (1024, "1.00 KiB"),
        (65536, "64.0 KiB"),
        (2**20, "1.00 MiB"),
        (2**50, "1024 TiB"),
    ],
)
def test_sizes_shown(n, shown):
    assert units.show_size(n) == shown


@pytest.mark.parametrize(
    ("ns", "shown"),
    [(0, "0.00 ns"), (999, "999 ns"), (20_000, "20.0 us"), (1.5e6, "1.50 ms"), (2e9, "2.00 s")],
)
def test_times_shown(ns, shown):
    assert units.show_duration(ns) == shown


@pytest.mark.parametrize(
    ("n", "shown"),
    [(0, "0"), (950, "950"), (2048, "2.05 k"), (3_000_000, "3.00 M"), (5e12, "5.00 T")],
)
def test_counts_shown(n, shown):
    assert units.show_count(n) == shown
