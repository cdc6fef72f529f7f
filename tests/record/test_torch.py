"""The PyTorch recorder: real and fake runs give the same ops, scripts for CUDA record unchanged."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any

import pytest

from tidegate import record
from tidegate.cli import invoke
from tidegate.errors import TidegateError
from tidegate.trace.ops import Ops, load_ops
from tidegate.trace.ops.ops import TABLES

pytestmark = pytest.mark.extra
torch = pytest.importorskip("torch", reason="PyTorch is not installed; `make torch` installs it")
nn = torch.nn
F = torch.nn.functional


class Block(nn.Module):
    def __init__(self, width: int = 64):
        super().__init__()
        self.norm, self.qkv = nn.LayerNorm(width), nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.inner = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        )

    def forward(self, x: Any) -> Any:
        b, t, w = x.shape
        q, k, v = self.qkv(self.norm(x)).view(b, t, 3, 4, w // 4).permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).reshape(b, t, w))
        return x + self.inner(x)


def transformer(
    real: bool, optimiser: str = "AdamW", checkpoint: bool = False, batch: int = 2
) -> Ops:
    from torch.utils.checkpoint import checkpoint as run_again

    with record.torch("transformer", real=real) as recording:
        words, blocks = nn.Embedding(50, 64), nn.ModuleList(Block() for _ in range(3))
        head = nn.Linear(64, 50)
        model = nn.ModuleList([words, blocks, head])
        update = getattr(torch.optim, optimiser)(model.parameters(), lr=0.1, foreach=True)
        for _ in range(3):
            ids = torch.zeros(batch, 32, dtype=torch.long)
            x = words(ids)
            for block in blocks:
                x = run_again(block, x, use_reentrant=False) if checkpoint else block(x)
            loss = F.cross_entropy(head(x).flatten(0, 1), ids.flatten())
            del x
            loss.backward()
            update.step()
            update.zero_grad()
            del loss, ids
    return recording.ops()


def convolutions(real: bool) -> Ops:
    with record.torch("convolutions", real=real) as recording:
        model = nn.Sequential(
            *(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2)),
            *(nn.Flatten(), nn.Linear(8 * 15 * 15, 10), nn.Dropout(0.5)),
        )
        update = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, foreach=True)
        for _ in range(2):
            model(torch.zeros(4, 3, 32, 32)).sum().backward()
            update.step()
            update.zero_grad()
    return recording.ops()


def decode(real: bool) -> Ops:
    with record.torch("decode", real=real) as recording, torch.no_grad():
        layer, keys = nn.Linear(32, 32), []
        for _ in range(4):
            keys.append(layer(torch.zeros(1, 32)))
            torch.cat(keys).softmax(0)
    return recording.ops()


@pytest.mark.oracle
@pytest.mark.parametrize(
    "program",
    [
        transformer,
        lambda real: transformer(real, "SGD"),
        lambda real: transformer(real, checkpoint=True),
        convolutions,
        decode,
    ],
    ids=["adamw", "sgd", "checkpoints", "convolutions", "decode"],
)
def test_a_run_without_data_records_what_a_real_run_does(program):
    real, fake = program(True), program(False)
    for table in TABLES:
        assert getattr(real, table).equals(getattr(fake, table)), table
    assert real.peak == fake.peak
    assert real.live_by_kind() == fake.live_by_kind()


def test_checkpointing_lowers_the_peak_and_computes_more():
    whole, again = (transformer(False, checkpoint=c, batch=64) for c in (False, True))
    assert again.peak < 0.6 * whole.peak
    assert again.launches["flops"].sum() > whole.launches["flops"].sum()


def test_operands_of_a_matrix_product():
    with record.torch() as recording:
        a, b = torch.zeros(8, 16), torch.zeros(16, 4)
        c = a @ b
        c.add_(1)
        c[:, 1:3].zero_()
    ops = recording.ops()
    zeros, _, mm, add, zero = range(5)
    assert ops.launches["name"].to_list() == ["zeros", "zeros", "mm", "add_", "zero_"]
    assert ops.launches["flops"][mm] == 2 * 8 * 16 * 4
    rows = ops.operands.rows()
    assert [r[1:] for r in rows if r[0] == mm] == [
        (0, 0, 512, 512, False, 0, 0, 0),
        (1, 0, 256, 256, False, 0, 0, 0),
        (2, 0, 128, 128, True, 0, 0, 0),
    ]
    assert [r[1:] for r in rows if r[0] == add] == [
        (2, 0, 128, 128, False, 0, 0, 0),
        (2, 0, 128, 128, True, 0, 0, 0),
    ]
    # two of four columns: rows of 8 bytes, 16 bytes apart
    assert [r[1:] for r in rows if r[0] == zero] == [(2, 4, 124, 64, True, 8, 16, 0)]
    assert zeros == 0


def test_embeddings_gather_rows_and_foreach_has_groups():
    with record.torch() as recording:
        words = nn.Embedding(1000, 8)
        words(torch.zeros(5, dtype=torch.long))
        torch._foreach_add_([torch.zeros(4), torch.zeros(6)], 1.0)
    ops = recording.ops()
    names = ops.launches["name"].to_list()
    rows = ops.operands.rows(named=True)
    gathered = [r for r in rows if r["launch"] == names.index("embedding") and r["row"]]
    assert [(r["bytes"], r["row"], r["high"]) for r in gathered] == [(160, 32, 32_000)]
    assert [r["group"] for r in rows if r["launch"] == names.index("_foreach_add_")] == [0, 0, 1, 1]


def test_nothing_is_kept_alive():
    with record.torch() as recording:
        x = torch.zeros(1 << 20)
        y = x + 1
        del x
        y = y + 1
        y = y + 1
    ops = recording.ops()
    assert ops.peak == 2 * 4 << 20
    assert ops.events["born"].to_list().count(False) == 3


# Scripts


def script(folder: Path, text: str) -> Path:
    path = folder / "train.py"
    path.write_text(textwrap.dedent(text))
    return path


CUDA = """
    import sys
    import torch
    from torch import nn
    from torch.utils.data import DataLoader, TensorDataset

    device = "cuda" if torch.cuda.is_available() else "cpu"
    assert device == "cuda"
    model = nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Dropout(0.1), nn.Linear(512, 10))
    model = torch.compile(model.to(device))
    assert next(model.parameters()).device.type == "cuda"
    optimiser = torch.optim.AdamW(model.parameters())
    scaler = torch.amp.GradScaler("cuda")
    data = TensorDataset(torch.randn(64, 256), torch.zeros(64, dtype=torch.long))
    stream = torch.cuda.Stream()
    for epoch in range(int(sys.argv[1])):
        for x, y in DataLoader(data, batch_size=16, shuffle=True, num_workers=2, pin_memory=True):
            x, y = x.to(device, non_blocking=True), y.cuda(non_blocking=True)
            with torch.autocast("cuda", dtype=torch.bfloat16):
                loss = nn.functional.cross_entropy(model(x), y)
            scaler.scale(loss).backward()
            scaler.unscale_(optimiser)
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            scaler.step(optimiser)
            scaler.update()
            optimiser.zero_grad()
            print(loss.item(), x.device, torch.cuda.max_memory_allocated() > 0)
    with torch.cuda.stream(stream):
        torch.cuda.synchronize()
"""


def test_a_script_for_cuda_records_unchanged(tmp_path, capsys):
    path, out = script(tmp_path, CUDA), tmp_path / "step.parquet"
    assert invoke(["record", "torch", str(path), "2", "-o", str(out), "--steps", "3"]) == 0
    shown = capsys.readouterr().out
    assert "0.0 cuda:0 True" in shown
    assert "note: torch.compile was ignored 1 times" in shown
    ops = load_ops(out)
    assert set(ops.launches["phase"]) == {"forward", "backward", "optimiser"}
    assert ops.launches["step"].unique().to_list() == [0, 1, 2]
    weights = ops.tensors.filter(ops.tensors["kind"] == "weight")
    assert weights["bytes"].sum() == 4 * (256 * 512 + 512 + 512 * 10 + 10)
    assert weights["host"].all()
    inputs = ops.tensors.filter(ops.tensors["kind"] == "input")
    assert inputs["bytes"].to_list() == [16 * 256 * 4, 16 * 8] * 3
    assert "bfloat16" in set(ops.launches["dtype"])
    assert not any("randn" in name or "uniform" in name for name in ops.launches["name"])


def test_replicated_steps_equal_recorded_ones(tmp_path):
    path = str(script(tmp_path, CUDA))
    few = record.torch_script(path, ["2"], steps=3).ops(6)
    many = record.torch_script(path, ["2"], steps=6).ops()
    assert few.launches.equals(many.launches)
    assert few.peak == many.peak


def test_the_same_script_gives_the_same_ops(tmp_path):
    path = str(script(tmp_path, CUDA))
    a, b = (record.torch_script(path, ["1"]).ops() for _ in range(2))
    assert a.digest == b.digest


BAD = {
    "raises": ("raise ValueError('no data here')", "raised ValueError line 2: no data here"),
    "wrong": ("def (", "raised SyntaxError"),
    "exits": ("import sys; sys.exit(3)", "ended with 3"),
    "nothing": ("x = 1", "launched nothing"),
    "value": (
        "import torch\nif torch.ones(3, device='cuda').sum() > 2: pass",
        "line 3: the program asks for the value of a tensor of bool .*--answer",
    ),
    "mask": (
        "import torch\nx = torch.ones(3, device='cuda')\ny = x[x > 0]",
        "line 4: the result of operator index has a size that depends on values",
    ),
    "forks": (
        "import os, torch\nx = torch.ones(3) + 1\nos.fork()",
        "line 4: the program starts another process",
    ),
    "endless": (
        "import torch\nx = torch.ones(3)\nwhile True: x = x + 1",
        "line 4: the program has launched 500 operators and goes on; give --steps",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_a_script_that_cannot_be_recorded_is_one_line(tmp_path, capsys, name):
    text, message = BAD[name]
    path, out = tmp_path / "bad.py", tmp_path / "bad.parquet"
    path.write_text("\n" + text)
    words = ["record", "torch", str(path), "-o", str(out), "--most-launches", "500"]
    assert invoke(words) == 2
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    with pytest.raises(AssertionError, match=message):
        raise AssertionError(err)
    assert not out.exists()


def test_answers(tmp_path):
    path = script(
        tmp_path,
        """
        import torch
        x = torch.ones(3, device="cuda")
        while not (x.sum() > 2).item():
            x = x + 1
        print(int(x.argmax()), float(x.max()))
        """,
    )
    recording = record.torch_script(str(path), answer=1)
    assert "3 values that the program asked for" in " ".join(recording.ops().notes)


def test_modes_are_gone_afterwards(tmp_path):
    before = torch.cuda.is_available()
    with pytest.raises(TidegateError):
        record.torch_script(str(script(tmp_path, "raise ValueError")))
    assert torch.cuda.is_available() == before
    assert float(torch.ones(2).sum()) == 2.0
    assert torch.ones(1).device.type == "cpu"


def test_default_devices_are_seen():
    with record.torch() as recording:
        with torch.device("cuda"):
            x = torch.ones(10)
        y = torch.ones(20)
        z = x * 2
        assert (x.device.type, y.device.type, z.device.type) == ("cuda", "cpu", "cuda")
        assert z.cpu().device.type == "cpu"
    ops = recording.ops()
    assert ops.launches["name"].to_list() == ["ones", "mul", "clone"]
    assert ops.tensors["bytes"].to_list() == [40, 40]


# Ready models


@pytest.mark.parametrize(
    ("name", "options", "weights"),
    [
        # the parameters that are published, in bytes of their type
        ("llama-7b", {"layers": 1, "decode": 1, "context": 8}, None),
        ("gpt-124m", {"batch": 1, "context": 1024, "steps": 1}, 4 * 124_439_808),
        ("resnet50", {"batch": 1, "image": 64, "steps": 1}, 4 * 25_557_032),
        ("mixtral-8x7b", {"layers": 1, "decode": 1, "context": 8}, None),
        ("unet-small", {"image": 64, "steps": 2}, None),
    ],
)
def test_models_are_recorded(name, options, weights):
    ops = record.model(name, **options)
    found = ops.tensors.filter(ops.tensors["kind"] == "weight")["bytes"].sum()
    if weights is not None:
        assert found == weights
    assert ops.launches["flops"].sum() > 0


@pytest.mark.closed_form
def test_llama_has_its_published_size():
    from tidegate.record.models.transformers import LLAMA_SIZES

    def parameters(shape) -> int:
        head = shape.width // shape.heads
        attention = 2 * shape.width**2 + 2 * shape.width * shape.groups * head
        layer = attention + 3 * shape.width * shape.inner + 2 * shape.width
        return 2 * shape.words * shape.width + shape.layers * layer + shape.width

    billions = {name: round(parameters(shape) / 1e9, 1) for name, shape in LLAMA_SIZES.items()}
    assert billions == {"7b": 6.7, "13b": 13.0, "70b": 69.0, "405b": 405.9}


def test_wrong_models_are_named(tmp_path, capsys):
    out = ["-o", str(tmp_path / "a.parquet")]
    assert invoke(["record", "model", "lama-7b", *out]) == 2
    assert "did you mean 'llama-7b'" in capsys.readouterr().err
    assert invoke(["record", "model", "llama-7b", "--image", "3", *out]) == 2
    assert "unknown option of llama-7b 'image'" in capsys.readouterr().err
    assert invoke(["record", "model", "llama-7b", "--batch", "0", *out]) == 2
    assert "batch must be at least 1" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_a_tensor_can_be_named():
    with record.torch() as recording:
        kept = torch.zeros(1 << 16)
        recording.name_tensor(kept, "kept", "kv cache")
        with pytest.raises(TidegateError, match="unknown kind 'cache'"):
            recording.name_tensor(kept, "kept", "cache")
        kept.add_(1)
    found = recording.ops().tensors.to_dicts()
    assert ("kept", "kv cache") in {(tensor["name"], tensor["kind"]) for tensor in found}
