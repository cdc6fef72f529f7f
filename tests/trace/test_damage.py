"""Damaged files: bits that flip, ends that are missing, rows that are swapped, values that cannot
be. Each is refused in one line, or the trace is the same as before; never another one.
"""

from __future__ import annotations

import gzip
import json
import random
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from tidegate.errors import TidegateError
from tidegate.trace import TraceFile, save_trace
from tidegate.trace.file import FORMAT, SCHEMA
from tidegate.trace.importers import import_trace
from tidegate.trace.trace import Segment, Trace, check_segment
from trace_importers_files import ADDRESSES, BASE, KEYS, Access
from traces import Given, Kernel, reads, writes

TRACE = Given(
    [Kernel([reads(range(13)), writes([16, 17])], width=2), Kernel([reads([40, 0]), reads([1])])],
    [13, 20, 3],
)
ATTEMPTS = 400


@pytest.fixture(scope="module")
def saved(tmp_path_factory: Any) -> Path:
    return save_trace(TRACE, tmp_path_factory.mktemp("damage") / "trace.parquet")


def whole(trace: Trace) -> list[Any]:
    """Every launch: its name and width, and its touches, block by block."""
    return [
        (launch.name, launch.width, launch.intensity, [_blocks(s) for s in launch.segments])
        for launch in trace.launches()
    ]


def _blocks(s: Segment) -> Any:
    return [c.tolist() for c in (s.starts, s.page, s.write, s.bytes, s.reference)]


def damaged(content: bytes, seed: int) -> bytes:
    """Flip a bit, cut the end off, swap two stretches, or write bytes over others."""
    rng = random.Random(seed)
    kind, at, other = seed % 4, rng.randrange(len(content)), rng.randrange(len(content))
    made = bytearray(content)
    if kind == 0:
        made[at] ^= 1 << rng.randrange(8)
    elif kind == 1:
        del made[at:]
    elif kind == 2:
        made[at : at + 8], made[other : other + 8] = (
            content[other : other + 8],
            content[at : at + 8],
        )
    else:
        made[at : at + 4] = rng.randbytes(4)
    return bytes(made)


def test_a_damaged_file_is_refused_or_the_same(saved: Path, tmp_path: Path):
    content, right = saved.read_bytes(), whole(TraceFile(saved))
    path = tmp_path / "trace.parquet"
    for seed in range(ATTEMPTS):
        path.write_bytes(damaged(content, seed))
        try:
            found = whole(TraceFile(path))
        except TidegateError as error:
            found = right if "\n" not in str(error) else str(error)
        assert found == right, seed


def test_every_bit_of_the_metadata_counts(saved: Path, tmp_path: Path):
    content = saved.read_bytes()
    first = content.index(b'{"format"')
    path = tmp_path / "trace.parquet"
    for at in range(first, content.index(b"}", first) + 1):
        made = bytearray(content)
        made[at] ^= 1
        path.write_bytes(bytes(made))
        with pytest.raises(TidegateError):
            TraceFile(path)


# Files of other programs have no checksum, so their values are checked

HEAD = {
    "format": FORMAT,
    "name": "made",
    "provenance": "recorded",
    "geometry": [4096, 32768],
    "objects": [["a", 40960, 0, 10, None, False], ["b", 4096, 16, 1, [[0, 9]], True]],
    "first_touch": False,
}


def made_by_hand(path: Path, head: Any = HEAD, **changed: list[Any]) -> Path:
    columns: dict[str, list[Any]] = {
        "launch": [0, 0, 0, 1],
        "block": [0, 0, 1, 0],
        "page": [0, 1, 2, 16],
        "write": [0, 1, 0, 0],
        "bytes": [64, 4096, 0, 4],
        "reference": [0, 0, 1, -1],
        "name": ["k", "k", "k", "l"],
        "width": [1, 1, 1, 2],
        "intensity": [0.0, 0.0, 0.0, 1.5],
        "details": ["{}"] * 4,
    } | changed
    metadata = {"tidegate": head if isinstance(head, str) else json.dumps(head)}
    pl.DataFrame(columns, schema=SCHEMA).write_parquet(path, metadata=metadata)
    return path


def test_a_file_of_another_program_can_be_read(tmp_path: Path):
    found = whole(TraceFile(made_by_hand(tmp_path / "x.parquet")))
    assert [(name, width) for name, width, *_ in found] == [("k", 1), ("l", 2)]
    assert found[0][3] == [[[0, 2, 3], [0, 1, 2], [0, 1, 0], [64, 4096, 0], [0, 0, 1]]]


@pytest.mark.parametrize(
    ("column", "values", "says"),
    [
        ("bytes", [64, 4097, 0, 4], "bytes must be from 0 to 4096, got 4097"),
        ("bytes", [64, -1, 0, 4], "bytes must be from 0 to 4096, got -1"),
        ("write", [0, 7, 0, 0], "write must be from 0 to 1, got 7"),
        ("launch", [-1, 0, 0, 1], "launch must be at least 0, got -1"),
        ("launch", [0, 1, 0, 1], "rows must be sorted by launch and block"),
        ("block", [0, 0, -1, 0], "block must be at least 0, got -1"),
        ("block", [1, 0, 1, 0], "rows must be sorted by launch and block"),
        ("page", [0, 1, 2, 24], "page must be from 0 to 23, got 24"),
        ("page", [0, 1, -2, 16], "page must be from 0 to 23, got -2"),
        ("name", ["k", "k", "m", "l"], "one launch has one name, width and intensity"),
        ("width", [1, 1, 3, 2], "one launch has one name, width and intensity"),
        ("width", [0, 0, 0, 2], "width of launch k must be at least 1, got 0"),
        ("intensity", [0.0, 0.0, 0.0, float("nan")], "intensity of launch l must be at least 0"),
        ("page", [0, None, 2, 16], "values are missing"),
    ],
)
def test_a_value_that_cannot_be(tmp_path: Path, column: str, values: list[Any], says: str):
    path = made_by_hand(tmp_path / "x.parquet", **{column: values})
    with pytest.raises(TidegateError) as error:
        whole(TraceFile(path))
    assert says in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    "change",
    [
        {"format": 99},
        {"name": 7},
        {"provenance": "guessed"},
        {"geometry": [4096.5, 32768]},
        {"geometry": [4096]},
        {"geometry": [4000, 32768]},
        {"objects": []},
        {"objects": [["a", 40960, 0, 11, None, False]]},
        {"objects": [["a", 40960, 1, 10, None, False]]},
        {"objects": [["a", 40960.5, 0, 10, None, False]]},
        {"objects": [["a", 1 << 50, 0, 1 << 38, None, False]]},
        {"objects": [["a", 40960, 0, 10, [[0, 40961]], False]]},
        {"objects": [["a", 40960, 0, 10, None, 1]]},
        {"first_touch": 1},
        {"digist": "0" * 64},
        {"digest": "0" * 64},
    ],
    ids=str,
)
def test_metadata_that_cannot_be(tmp_path: Path, change: dict[str, Any]):
    with pytest.raises(TidegateError) as error:
        TraceFile(made_by_hand(tmp_path / "x.parquet", HEAD | change))
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("text", ["", "{", "[]", "3", "null", '{"format": 1}'])
def test_metadata_that_is_none(tmp_path: Path, text: str):
    with pytest.raises(TidegateError):
        TraceFile(made_by_hand(tmp_path / "x.parquet", text))


def test_what_cannot_be_read_is_not_saved(tmp_path: Path):
    trace = Given([Kernel([reads([0], bytes=4097)])], [1])
    with pytest.raises(TidegateError, match="bytes of a touch"):
        save_trace(trace, tmp_path / "x.parquet")
    assert list(tmp_path.iterdir()) == []


# Files of other tools


@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gzip"])
@pytest.mark.parametrize("name", [*ADDRESSES, *KEYS])
def test_a_damaged_import_is_refused_or_a_trace(tmp_path: Path, name: str, packed: bool):
    """Most formats have no checksum, so another trace may come out, but never a broken one."""
    path = tmp_path / f"file.{name}"
    if name in ADDRESSES:
        ADDRESSES[name](path, [Access(i % 3, BASE + 64 * i, 8, i % 2 == 0) for i in range(40)])
    else:
        KEYS[name](path, [i * 7 % 11 for i in range(40)])
    content = path.read_bytes()
    lines: list[str] = []
    if packed:
        content = gzip.compress(content, mtime=0)
    for seed in range(24):
        path.write_bytes(damaged(content, seed))
        try:
            trace = import_trace(path, format=name)
            for launch in trace.launches():
                for segment in launch.segments:
                    check_segment(segment, trace)
        except TidegateError as error:
            lines.append(str(error))
    assert not any("\n" in line for line in lines)
