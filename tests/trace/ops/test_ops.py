"""Ops: peaks and lives by brute force, files that are read as they were saved, hostile files."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings

from op_lists import KIB, chain, small_ops
from tidegate.cli import invoke
from tidegate.errors import TidegateError
from tidegate.trace.ops import Ops, OpsBuilder, holds_ops, load_ops, save_ops
from tidegate.trace.ops.ops import TABLES
from tidegate.trace.trace import Provenance


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(small_ops())
def test_the_peak_is_the_largest_sum_of_live_tensors(ops: Ops):
    live: dict[int, int] = {}
    peak, kinds = 0, {}
    for _, tensor, born in ops.events.iter_rows():
        if born:
            live[tensor] = ops.tensors["bytes"][tensor]
        else:
            del live[tensor]
        if sum(live.values()) > peak:
            peak, kinds = sum(live.values()), {}
            for t, size in live.items():
                kind = ops.tensors["kind"][t]
                kinds[kind] = kinds.get(kind, 0) + size
    assert (ops.peak, ops.live_by_kind()) == (peak, kinds)


@settings(max_examples=40, deadline=None)
@given(small_ops())
def test_each_operand_uses_the_life_that_it_falls_into(ops: Ops):
    lives = ops.instances
    expected = {}  # by tensor: its current life
    number = -1
    rows = ops.operands.rows()
    at = 0
    for event, (launch, tensor, born) in enumerate(ops.events.iter_rows()):
        while at < len(rows) and rows[at][0] < launch:
            assert lives.of_operand[at] == expected[rows[at][1]]
            at += 1
        if born:
            number += 1
            assert (lives.tensor[number], lives.birth[number]) == (tensor, event)
            expected[tensor] = number
        else:
            assert lives.death[expected.pop(tensor)] == event
    while at < len(rows):
        assert lives.of_operand[at] == expected[rows[at][1]]
        at += 1


def test_a_chain_holds_two_tensors_at_a_time():
    ops = chain([10 * KIB, 20 * KIB, 30 * KIB, 5 * KIB])
    assert ops.peak == 50 * KIB
    assert ops.peak_launch == 1
    assert ops.live_by_kind() == {"activation": 50 * KIB}


# Files


@settings(max_examples=20, deadline=None)
@given(small_ops())
def test_what_is_read_is_what_was_saved(tmp_path_factory, ops: Ops):
    path = save_ops(ops, tmp_path_factory.mktemp("ops") / "a.parquet")
    again = load_ops(path)
    assert holds_ops(path)
    assert again.digest == ops.digest
    assert (again.name, again.provenance, again.notes) == (ops.name, ops.provenance, ops.notes)
    assert all(getattr(again, table).equals(getattr(ops, table)) for table in TABLES)


def changed(ops: Ops, path: Path, table: str, column: str, value: object) -> Path:
    """Write a file with one value replaced, and a metadata head that fits."""
    frame = getattr(ops, table)
    frame = frame.with_columns(
        pl.Series(column, [value, *frame[column][1:]], frame.schema[column], strict=False)
    )
    tables = {name: getattr(ops, name) for name in TABLES} | {table: frame}
    head = {"ops": 1, "name": "x", "provenance": "assumed", "notes": [], "sha256": "0"}
    rows = [t.select(pl.lit(n).alias("table"), pl.all()) for n, t in tables.items()]
    pl.concat(rows, how="diagonal").write_parquet(path, metadata={"tidegate": json.dumps(head)})
    return path


HOSTILE = [
    ("tensors", "bytes", 2**62, "bytes of a tensor must be 1 to"),
    ("tensors", "bytes", -5, "bytes of a tensor must be 1 to"),
    ("tensors", "kind", "spoon", "kind must be one of"),
    ("tensors", "name", None, "values are missing in tensors"),
    ("operands", "tensor", 2**31 - 1, "tensor of an operand must be 0 to"),
    ("operands", "launch", -1, "launch of an operand must be 0 to"),
    ("operands", "low", -4096, "low and high of an operand"),
    ("operands", "high", 2**60, "low and high of an operand"),
    ("operands", "bytes", 0, "bytes of an operand must be"),
    ("operands", "row", 2**60, "row of an operand"),
    ("operands", "stride", 2**60, "stride of an operand"),
    ("events", "born", False, "births and deaths of a tensor must alternate"),
    ("events", "launch", 999, "launch of an event must be 0 to"),
    ("launches", "flops", float("nan"), "flops of a launch"),
    ("launches", "flops", -1.0, "flops of a launch"),
    ("launches", "step", 7, "does not match its hash"),
]


@pytest.mark.parametrize(("table", "column", "value", "message"), HOSTILE)
def test_hostile_values_are_one_line(tmp_path, capsys, table, column, value, message):
    path = changed(chain([KIB, KIB, KIB]), tmp_path / "a.parquet", table, column, value)
    with pytest.raises(TidegateError, match=message):
        load_ops(path)
    assert invoke(["trace", "info", str(path)]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("tidegate: ")
    assert err.count("\n") == 1


def test_files_that_are_not_ops(tmp_path):
    path = tmp_path / "a.parquet"
    with pytest.raises(TidegateError, match="no file"):
        load_ops(path)
    path.write_bytes(b"PAR1 and nothing more")
    assert not holds_ops(path)
    with pytest.raises(TidegateError, match="not a whole Parquet file"):
        load_ops(path)
    whole = save_ops(chain([KIB, KIB]), tmp_path / "b.parquet").read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(TidegateError, match="not a whole Parquet file"):
        load_ops(path)
    pl.DataFrame({"a": [1]}).write_parquet(path)
    with pytest.raises(TidegateError, match="holds no ops"):
        load_ops(path)
    pl.DataFrame({"a": [1]}).write_parquet(path, metadata={"tidegate": '{"ops": 99}'})
    with pytest.raises(TidegateError, match="op format 99"):
        load_ops(path)
    head = {"ops": 1, "name": "x", "provenance": "assumed", "notes": [], "sha256": "0"}
    pl.DataFrame({"a": [1]}).write_parquet(path, metadata={"tidegate": json.dumps(head)})
    with pytest.raises(TidegateError, match="does not hold ops"):
        load_ops(path)


def test_a_wrong_name_is_refused_and_nothing_is_written(tmp_path):
    with pytest.raises(TidegateError, match="must end in"):
        save_ops(chain([KIB, KIB]), tmp_path / "a.txt")
    with pytest.raises(TidegateError, match="there is no folder"):
        save_ops(chain([KIB, KIB]), tmp_path / "no" / "a.parquet")
    assert not list(tmp_path.iterdir())


def test_ops_that_do_not_fit_together():
    build = OpsBuilder()
    x = build.tensor("x", "input", 10)
    with pytest.raises(TidegateError, match="launched nothing"):
        build.finish("a", Provenance.ASSUMED)
    build.die(x)
    build.launch("mm")
    build.use(x, 0, 10)
    with pytest.raises(TidegateError, match="not alive"):
        build.finish("a", Provenance.ASSUMED)


def test_deaths_in_a_row_are_sorted():
    def made(order: list[int]) -> Ops:
        build = OpsBuilder()
        tensors = [build.tensor("t", "activation", 8) for _ in range(3)]
        build.launch("mm")
        build.use(tensors[0], 0, 8)
        for n in order:
            build.die(tensors[n])
        return build.finish("a", Provenance.ASSUMED)

    assert made([2, 0, 1]).digest == made([0, 1, 2]).digest
    assert replace(made([0, 1, 2]), name="b").digest == made([0, 1, 2]).digest
