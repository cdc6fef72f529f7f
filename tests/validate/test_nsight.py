"""A profile of Nsight Systems beside a simulated run."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tidegate.cli import invoke
from tidegate.errors import TidegateError
from tidegate.experiments import RunSpec
from tidegate.validate.nsight import compare
from tidegate.validate.pictures import draw_beside

KIB, MIB = 1 << 10, 1 << 20
BASE = 0x7F00_0000_0000
SPEC = RunSpec("page-order(bytes=2MiB, order=0+1+2+4+8+16)", machine="gtx1080-pcie3", near="64MiB")
MOVES = ((0, 64), (64, 64), (128, 128), (256, 256), (512, 512), (1024, 1024))  # KiB: place, size


def export(path: Path, copies: Any, tables: str = "copies kernels memory") -> Path:
    """Write what `nsys export --type sqlite` would; copies: start, end, kind, bytes, address."""
    with closing(sqlite3.connect(path)) as database, database:
        if "copies" in tables:
            database.execute(
                "CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY "
                "(start INT, end INT, copyKind INT, bytes INT, virtualAddress INT)"
            )
            values = "INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (?,?,?,?,?)"
            database.executemany(values, copies)
        if "kernels" in tables:
            database.execute("CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INT, end INT)")
            database.execute("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (1000, 900000)")
        if "memory" in tables:
            database.execute(
                "CREATE TABLE CUDA_GPU_MEMORY_USAGE_EVENTS "
                "(address INT, bytes INT, memKind INT, memoryOperationType INT)"
            )
            database.execute(
                f"INSERT INTO CUDA_GPU_MEMORY_USAGE_EVENTS VALUES ({BASE}, {2 * MIB}, 4, 0)"
            )
    return path


def inward(moves: Any = MOVES) -> list[tuple[int, ...]]:
    times = range(2000, 2000 + 100_000 * len(moves), 100_000)
    return [
        (at, at + 50_000, 11, size * KIB, BASE + place * KIB)
        for at, (place, size) in zip(times, moves, strict=True)
    ]


def test_the_same_bytes_and_places(tmp_path: Path) -> None:
    beside = compare(export(tmp_path / "a.sqlite", inward()), SPEC)
    rows = {row["quantity"]: row for row in beside.rows()}
    assert rows["bytes in"]["card"] == rows["bytes in"]["ours"] == 2 * MIB
    assert rows["bytes out"] == {"quantity": "bytes out", "card": 0, "ours": 0, "ratio": None}
    assert rows["copies in"]["card"] == len(MOVES)
    assert beside.card_time == 900000 - 1000
    np.testing.assert_array_equal(beside.card.place, [place * KIB for place, _ in MOVES])
    np.testing.assert_array_equal(beside.card.end, [p + 51_000 for p in range(0, 600_000, 100_000)])
    assert beside.ours.moved(True) == 2 * MIB
    assert len(draw_beside(beside).axes) == 3


def test_objects_lie_one_after_another(tmp_path: Path) -> None:
    file = export(tmp_path / "a.sqlite", inward(((0, 64), (4096 * 1024, 64))))
    with closing(sqlite3.connect(file)) as database, database:
        second = BASE + (4 << 30)
        database.execute(f"INSERT INTO CUDA_GPU_MEMORY_USAGE_EVENTS VALUES ({second}, {MIB}, 4, 0)")
    np.testing.assert_array_equal(compare(file, SPEC).card.place, [0, 2 * MIB])


def test_without_allocations_places_begin_with_the_first_region(tmp_path: Path) -> None:
    file = export(tmp_path / "a.sqlite", inward(((128, 64), (64, 64))), "copies")
    np.testing.assert_array_equal(compare(file, SPEC).card.place, [128 * KIB, 64 * KIB])


def test_evictions_are_copies_outward(tmp_path: Path) -> None:
    spec = RunSpec("cyclic(bytes=8MiB)", machine="gtx1080-pcie3", near="4MiB")
    beside = compare(export(tmp_path / "a.sqlite", inward()), spec)
    run = beside.run.summary
    assert beside.ours.moved(False) > 0
    # a region that leaves and comes back within one bin of the recording is seen once
    assert beside.ours.moved(True) <= run["bytes_in"]


@pytest.mark.parametrize("tables", ["kernels memory", "copies kernels memory"])
def test_a_profile_without_managed_copies_is_refused(tmp_path: Path, tables: str) -> None:
    plain = [(1, 2, 1, 64, BASE)]  # a copy that the program asked for
    with pytest.raises(TidegateError, match="no copies of managed memory; profile with"):
        compare(export(tmp_path / "a.sqlite", plain, tables), SPEC)


def test_another_file_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "report.nsys-rep"
    file.write_text("not a database" * 100)
    assert invoke(["validate", str(file), "--workload", "triad", "--machine", "t4-pcie3"]) == 2
    said = capsys.readouterr().err
    assert "must be an SQLite export of Nsight Systems" in said
    assert said.count("\n") == 1


def test_the_verb_prints_both_and_plots(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, plot = export(tmp_path / "a.sqlite", inward()), tmp_path / "both.png"
    given = ["--workload", str(SPEC.workload), "--machine", "gtx1080-pcie3", "--plot", str(plot)]
    assert invoke(["validate", str(file), *given]) == 0
    said = capsys.readouterr().out
    assert "bytes in" in said
    assert "2.00 MiB" in said
    assert plot.stat().st_size > 1000
