"""PyTorch execution traces. The sample was written by PyTorch 2.13 on a CPU:

model = Sequential(Linear(64, 128), ReLU(), Linear(128, 10)), batch 32, two steps of SGD with
momentum (foreach), under torch.profiler.ExecutionTraceObserver
"""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

import tidegate
from tidegate.cli import invoke
from tidegate.errors import TidegateError
from tidegate.trace.importers import import_trace, recognise
from tidegate.trace.importers.execution_trace import ExecutionTrace
from tidegate.trace.ops import Ops, OpTrace, load_ops

SAMPLE = Path(__file__).parent / "execution_trace.json.gz"


@pytest.fixture(scope="module")
def ops() -> Ops:
    return ExecutionTrace(SAMPLE).ops()


def test_it_is_recognised_by_content():
    assert recognise(SAMPLE) is ExecutionTrace
    assert isinstance(import_trace(SAMPLE), OpTrace)


def test_operators_that_only_call_others_are_no_launches(ops):
    names = ops.launches["name"].to_list()
    assert names[:8] == [
        *("normal_", "addmm", "clamp_min", "addmm", "zero_"),
        *("_log_softmax", "nll_loss_forward", "ones_like"),
    ]
    assert not {"linear", "t", "randn", "relu", "to", "view", "nll_loss", "empty"} & set(names)
    assert set(ops.launches["phase"]) == {"forward", "backward", "optimiser"}


@pytest.mark.closed_form
def test_operands_of_a_linear_layer(ops):
    row = next(r for r in ops.operands.rows(named=True) if r["launch"] == 1)
    of = ops.operands.filter(ops.operands["launch"] == 1)
    assert row["launch"] == 1
    assert of["bytes"].to_list() == [4 * n for n in (128, 32 * 64, 64 * 128, 32 * 128)]
    assert of["write"].to_list() == [False, False, False, True]
    assert ops.launches["flops"][1] == 2 * 32 * 64 * 128
    assert ops.launches["dtype"][1] == "float32"


def test_weights_were_there_before_and_activations_were_not(ops):
    weights = ops.tensors.filter(ops.tensors["kind"] == "weight")
    assert sorted(weights["bytes"]) == [4 * n for n in (10, 128, 10 * 128, 64 * 128)]
    assert weights["host"].all()
    assert not ops.tensors.filter(ops.tensors["kind"] == "activation")["host"].any()


def test_it_plays_and_is_saved_as_ops(tmp_path, capsys):
    assert tidegate.run(SAMPLE, near="4MiB", cache=False).facts["provenance"] == "recorded"
    out = tmp_path / "et.parquet"
    assert invoke(["trace", "import", str(SAMPLE), str(out)]) == 0
    shown = capsys.readouterr().out
    assert "(execution-trace)" in shown
    assert "note: a tensor lives from its first to its last use" in shown
    assert load_ops(out).digest == ExecutionTrace(SAMPLE).ops().digest


@pytest.mark.extra
@pytest.mark.oracle
def test_it_agrees_with_the_recorder():
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    from tidegate import record

    with record.torch("same", real=True) as recording:
        model = torch.nn.Sequential(
            torch.nn.Linear(64, 128), torch.nn.ReLU(), torch.nn.Linear(128, 10)
        )
        update = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, foreach=True)
        for _ in range(2):
            x = torch.randn(32, 64)
            labels = torch.zeros(32, dtype=torch.long)
            loss = torch.nn.functional.cross_entropy(model(x), labels)
            loss.backward()
            update.step()
            update.zero_grad()
            del loss
    recorded, imported = recording.ops(), ExecutionTrace(SAMPLE).ops()

    def products(ops: Ops) -> list:
        rows = zip(ops.launches["name"], ops.launches["flops"], ops.launches["phase"], strict=True)
        return [r for r in rows if r[1]]

    assert products(recorded) == products(imported)


NODE = {
    "id": 5,
    "name": "aten::relu_",
    "ctrl_deps": 1,
    "inputs": {"values": [[1, 2, 0, 8, 4, "cuda:0"]], "shapes": [[8]], "strides": [[1]]},
    "outputs": {"values": [[1, 2, 0, 8, 4, "cuda:0"]], "shapes": [[8]], "strides": [[1]]},
    "attrs": [{"name": "op_schema", "value": "aten::relu_(Tensor(a!) self) -> Tensor(a!)"}],
}


def file_of(path: Path, nodes: list[dict]) -> Path:
    path.write_text(json.dumps({"schema": "1.1.1-chakra.0.0.4", "nodes": nodes}))
    return path


def test_only_what_is_on_the_gpu_counts_if_anything_is(tmp_path):
    host = json.loads(json.dumps(NODE).replace("cuda:0", "cpu")) | {"id": 6}
    ops = ExecutionTrace(file_of(tmp_path / "a.json", [NODE, host])).ops()
    assert len(ops.launches) == 1


HOSTILE = {
    "cut": lambda text: text[: len(text) // 2],
    "no nodes": lambda text: '{"schema": "1.1.1-chakra.0.0.4", "nodes": []}',
    "another type": lambda text: text.replace('"id": 5', '"id": "five"'),
    "negative": lambda text: text.replace("[1, 2, 0, 8, 4,", "[1, 2, -9, 8, 4,"),
    "huge": lambda text: text.replace("[1, 2, 0, 8, 4,", f"[1, 2, {2**62}, 8, 4,"),
    "missing": lambda text: text.replace('"ctrl_deps": 1, ', ""),
    "strides": lambda text: text.replace('"strides": [[1]]', f'"strides": [[{2**60}]]'),
}


@pytest.mark.parametrize("damage", HOSTILE)
def test_damaged_files_are_one_line(tmp_path, capsys, damage):
    path = file_of(tmp_path / "a.json", [NODE])
    path.write_text(HOSTILE[damage](path.read_text()))
    with pytest.raises(TidegateError, match="is not a whole PyTorch execution trace"):
        ExecutionTrace(path).ops()
    out = tmp_path / "out.parquet"
    assert invoke(["trace", "import", str(path), str(out)]) == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert not out.exists()


def test_a_long_file_is_read_in_parts(tmp_path):
    nodes = [NODE | {"id": 5 + n} for n in range(5000)]  # more than one part of a megabyte
    path = tmp_path / "long.json.gz"
    text = json.dumps({"schema": "1.1.1-chakra.0.0.4", "nodes": nodes})
    path.write_bytes(gzip.compress(text.encode()))
    assert len(ExecutionTrace(path).ops().launches) == 5000
