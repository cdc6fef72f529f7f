"""Small recordings that are kept as files: what they hold, and that every system plays them."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from tidegate.trace.geometry import Geometry
from tidegate.trace.info import describe
from tidegate.trace.ops import OpLayout, Ops, OpTrace, load_ops

FOLDER = Path(__file__).parent / "recordings"
NAMES = sorted(p.stem for p in FOLDER.glob("*.parquet"))


def recording(name: str) -> Ops:
    return load_ops(FOLDER / f"{name}.parquet")


@pytest.mark.parametrize("name", NAMES)
def test_files_are_small(name):
    assert (FOLDER / f"{name}.parquet").stat().st_size < 50_000


def test_training_has_phases_kinds_and_equal_steps():
    ops = recording("training")
    assert set(ops.launches["phase"]) == {"forward", "backward", "optimiser"}
    assert set(ops.live_by_kind()) >= {"weight", "gradient", "optimiser state", "activation"}
    # GPT-2's words and positions, and two blocks of 12 w² + 13 w, and the last norm
    width, words, context = 768, 50_257, 64
    count = (words + context) * width + 2 * (12 * width**2 + 13 * width) + 2 * width
    weights = ops.tensors.filter(ops.tensors["kind"] == "weight")
    assert weights["bytes"].sum() == 4 * count
    assert weights["host"].all()
    steps = ops.launches.group_by("step", maintain_order=True).len()["len"].to_list()
    assert len(steps) == 4
    assert steps[1] == steps[2] == steps[3]
    assert ops.launches.filter(ops.launches["phase"] == "backward")["where"].str.len_chars().max()


def test_adamw_keeps_two_states_for_each_weight():
    ops = recording("training")
    by = dict(ops.tensors.group_by("kind").agg(pl.col("bytes").sum()).iter_rows())
    assert by["optimiser state"] == 2 * by["weight"]


def test_decode_reads_every_weight_once_for_each_token():
    ops = recording("decode")
    assert ops.launches["phase"].unique(maintain_order=True).to_list() == ["prefill", "decode"]
    last = ops.launches["step"].max()
    own = ops.operands.filter(
        ops.launches["step"].gather(ops.operands["launch"]).to_numpy() == last
    )
    kinds = ops.tensors["kind"].gather(own["tensor"])
    read = own.filter((kinds == "weight").to_numpy())
    matrices = ops.tensors.filter(ops.tensors["kind"] == "weight")
    gathered = read.filter(read["row"] > 0)
    assert gathered["bytes"].to_list() == [2 * 4096]  # one row of the embedding
    words = 2 * 32_000 * 4096
    assert read.filter(read["row"] == 0)["bytes"].sum() == matrices["bytes"].sum() - words


def test_experts_are_used_by_two_for_each_token():
    ops = recording("experts")
    decode = ops.launches.with_row_index("launch").filter(ops.launches["phase"] == "decode")
    for step in decode["step"].unique():
        where = decode.filter(decode["step"] == step)["where"].to_list()
        experts = {w.split(".")[4] for w in where if w.startswith("layers.0.inner.experts.")}
        assert len(experts) == 2


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("allocator", ["tensors", "caching"])
def test_no_more_pages_hold_data_than_the_footprint_has(name, allocator):
    trace = OpTrace(recording(name), Geometry(), OpLayout(allocator=allocator))
    found = describe(trace)
    assert found.live_peak * trace.geometry.page <= trace.footprint
    assert found.bytes >= trace.ops.operands["bytes"].sum() * 0.99
