"""Emitted PyTorch code runs: equal results, and no more bytes on the device than planned."""

from __future__ import annotations

import ctypes
import subprocess
import sys
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import tidegate
from tidegate.advice import Simulator, Subject, advise_on
from tidegate.advice.emit.torch import emit_torch, moves_of

pytestmark = pytest.mark.extra
torch = pytest.importorskip("torch", reason="torch is not installed: make torch")
from torch import nn  # noqa: E402

from advice.accounting import Accounted  # noqa: E402
from advice.test_emit_cuda import cuda_headers  # noqa: E402
from offloaded import clang_19  # noqa: E402

MACHINE = tidegate.load_machine("rtx3090-pcie4")
# weights of 2 MiB, and activations of 8 MiB in training, of 2 MiB in inference: whole regions
WIDTH, LAYERS = 724, 5
TRAINED, INFERRED = 4 * WIDTH, WIDTH  # rows of a batch


def build() -> nn.Module:
    torch.manual_seed(0)
    layers = [part for _ in range(LAYERS) for part in (nn.Linear(WIDTH, WIDTH), nn.Tanh())]
    return nn.Sequential(*layers)


def train(model: nn.Module, x: Any) -> None:
    model(x).sum().backward()


def infer(model: nn.Module, x: Any) -> Any:
    with torch.no_grad():
        return model(model(x))


def batch(rows: int) -> Any:
    return torch.linspace(-1, 1, rows * WIDTH).reshape(rows, WIDTH)


def subject(work: Any, rows: int) -> Subject:
    """Record the work of a model on tensors without data."""
    with tidegate.record.torch("small") as recording:
        model = build().cuda()
        work(model, torch.zeros(rows, WIDTH, device="cuda"))
    return Subject("small", recording.ops())


@cache
def planned(work: Any, rows: int, share: float) -> tuple[Any, ModuleType]:
    """Return advice for a share of the peak as near memory, and the emitted module."""
    program = subject(work, rows)
    near = int(share * program.trace(MACHINE).footprint)
    advice = advise_on(program, MACHINE, near, Simulator(workers=1, cache=False))
    module = ModuleType("emitted_plan")
    sys.modules["emitted_plan"] = module
    exec(compile(emit_torch(advice), "advice.py", "exec"), vars(module))
    return advice, module


def test_training_by_the_plan_is_the_same_in_less_memory():
    advice, emitted = planned(train, TRAINED, 0.75)
    assert emitted.SAVED, "the plan moves activations"
    assert "does not" not in emitted.__doc__, "the code does all that the plan does"
    x = batch(TRAINED)

    plain, model = Accounted(), build()
    with plain:
        for tensor in (x, *model.parameters()):
            plain.count(tensor)
        train(model, x)
    expected = [p.grad.clone() for p in model.parameters()]

    device, model = Accounted(advice.near), build()
    with device:
        for tensor in (x, *model.parameters()):
            device.count(tensor)
        with emitted.apply(model, device):
            train(model, x)
    assert all(torch.equal(a, p.grad) for a, p in zip(expected, model.parameters(), strict=True))
    assert plain.peak > advice.near, "it would not have fitted"
    assert device.peak <= advice.near
    assert device.out_bytes > 0
    assert device.back_bytes > 0


def test_inference_by_the_plan_streams_its_weights():
    advice, emitted = planned(infer, INFERRED, 0.7)
    assert emitted.STREAMED, "the plan streams weights"
    x = batch(INFERRED)
    model = build()
    expected = infer(model, x)

    device, model = Accounted(advice.near), build()
    weights = sum(p.nbytes for p in model.parameters())
    with device, torch.no_grad():
        for name, p in model.named_parameters():
            if name not in emitted.STREAMED:
                device.count(p)
        device.count(x)
        with emitted.apply(model, device):
            found = model(model(x))
    assert torch.equal(expected, found)
    assert device.peak <= advice.near
    assert weights + 3 * x.nbytes > advice.near, "it would not have fitted"
    # each streamed weight comes for each call
    streamed = sum(p.nbytes for n, p in model.named_parameters() if n in emitted.STREAMED)
    assert device.back_bytes == 2 * streamed


def test_what_the_code_leaves_undone_is_said():
    """A plan that moves optimiser states: the head says that the code does not."""
    recordings = Path(__file__).parents[1] / "record" / "recordings"
    program = Subject("training", str(recordings / "training.parquet"))
    near = program.trace(MACHINE).footprint // 2
    advice = advise_on(program, MACHINE, near, Simulator(workers=1))
    plans = [o for o in advice.ranked if "torch" in o.trial.candidate.emits]
    left = [moves_of(o, program.trace(MACHINE), advice.near).left for o in plans]
    assert all(left)
    head = emit_torch(advice).split('"""')[1]
    assert "also moves what this code does not" in head
    assert "never run on a GPU" in head


def test_other_programs_are_refused():
    program = Subject("cyclic", "cyclic(bytes=64MiB)")
    advice = advise_on(program, MACHINE, 1 << 30, Simulator(workers=1, cache=False))
    with pytest.raises(tidegate.TidegateError, match="needs a recording of a PyTorch program"):
        emit_torch(advice)


# Managed memory

STUB = """
#include <stdio.h>
#include <stdlib.h>
typedef int cudaError_t;
typedef void *cudaStream_t;
enum { cudaSuccess, cudaMemAttachGlobal, cudaMemAdviseSetReadMostly };
#define cudaCpuDeviceId (-1)
long long out, in, marked; /* bytes */
static int cudaMallocManaged(void **p, size_t n, int how) { *p = malloc(n); return *p == 0; }
static int cudaFree(void *p) { free(p); return 0; }
static int cudaStreamSynchronize(cudaStream_t s) { return 0; }
static int cudaMemAdvise(void *p, size_t n, int advice, int device) { marked += n; return 0; }
static int cudaMemPrefetchAsync(void *p, size_t n, int device, cudaStream_t s) {
  *(device == cudaCpuDeviceId ? &out : &in) += n;
  return 0;
}
"""


class NoStream:
    """In place of a CUDA stream."""

    cuda_stream = 0

    def wait_stream(self, other: Any) -> None: ...


def built(emitted: ModuleType, folder: Path) -> Any:
    """Return the emitted allocator, compiled with host memory in place of CUDA's."""
    (folder / "cuda_runtime_api.h").write_text(STUB)
    (folder / "allocator.c").write_text(emitted.ALLOCATOR)
    words = [clang_19(), "-shared", "-fPIC", "-w", "-I.", "-o", "allocator.so", "allocator.c"]
    subprocess.run(words, cwd=folder, check=True, timeout=300)
    return ctypes.CDLL(str(folder / "allocator.so"))


def test_with_managed_memory_the_same_tensors_are_prefetched(monkeypatch, tmp_path):
    """The plan runs as it is: what it would copy out is marked as read-mostly and prefetched."""
    _, emitted = planned(train, TRAINED, 0.75)
    library = built(emitted, tmp_path)
    library.tidegate_malloc.restype = ctypes.c_void_p
    some = library.tidegate_malloc(ctypes.c_ssize_t(1 << 20), 0, None)
    assert library.tidegate_allocated() == 1 << 20
    library.tidegate_free(ctypes.c_void_p(some), ctypes.c_ssize_t(1 << 20), 0, None)
    assert library.tidegate_allocated() == 0

    x, model = batch(TRAINED), build()
    train(model, x)
    expected = [p.grad.clone() for p in model.parameters()]
    monkeypatch.setattr(torch.cuda, "current_stream", NoStream)
    device, model = emitted.ManagedDevice(1 << 40, library, NoStream(), 0), build()
    with emitted.apply(model, device):
        train(model, x)
    assert all(torch.equal(a, p.grad) for a, p in zip(expected, model.parameters(), strict=True))
    out, back, marked = (
        ctypes.c_longlong.in_dll(library, name).value for name in ("out", "in", "marked")
    )
    assert out == back == marked > 0
    assert device.free() == 1 << 40, "all came back"


@pytest.mark.parametrize("wheel", ["nvidia/cuda_runtime", "triton/backends/nvidia"])
def test_the_allocator_compiles_with_the_headers_of_cuda_12_and_13(wheel, tmp_path):
    _, emitted = planned(infer, INFERRED, 0.7)
    headers = cuda_headers(wheel)
    (tmp_path / "allocator.c").write_text(emitted.ALLOCATOR)
    words = [clang_19(), "-c", "-Wall", "-Werror", *headers, "allocator.c"]
    done = subprocess.run(
        words, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stderr
