"""CUDA programs, compiled by clang with CUDA's headers."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from offloaded import clang_19, cuda
from tidegate.compiler import ProgramModel
from tidegate.compiler.analysis.flow import branch_probabilities
from tidegate.compiler.analysis.measures import with_values
from tidegate.compiler.ir.clang import kernel_of_stub
from tidegate.compiler.ir.module import parse, run_passes
from tidegate.compiler.plan.emit import emit_cuda
from tidegate.compiler.project import model_of_files
from tidegate.errors import TidegateError
from tidegate.experiments.planning import make_policy, rehearse
from tidegate.trace.geometry import Geometry
from tidegate.workloads.modelled import Modelled

pytestmark = pytest.mark.extra  # headers of CUDA

PROGRAM = """
#include <cstdio>
#include <cstdlib>
__global__ void add(float *a, const float *b, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) a[i] += b[i];
}
template <typename T> __global__ void twice(T *a, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  a[i] *= 2;
}
extern "C" __global__ void plane(float *a, int w, int h) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x < w && y < h) a[y * w + x] = 0;
}
struct Pair { float *from, *to; int n; };
__global__ void copy(Pair p) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < p.n) p.to[i] = p.from[i];
}
static void step(float *a, float *b, int n) {
  int threads = 128;
  add<<<(n + threads - 1) / threads, threads>>>(a, b, n);
}
int main(int argc, char **argv) {
  if (argc != 3) { printf("usage\\n"); return 1; }
  int n = atoi(argv[1]), repeat = atoi(argv[2]);
  size_t bytes = n * sizeof(float);
  float *h = (float *)malloc(bytes), *x, *y, *m;
  cudaMalloc(&x, bytes);
  if (cudaMalloc((void **)&y, bytes) != cudaSuccess) return 2;
  cudaMallocManaged(&m, 1024 * bytes);
  cudaMemcpy(x, h, bytes, cudaMemcpyHostToDevice);
  dim3 grid((n + 255) / 256), block(256);
  for (int i = 0; i < repeat; i++) {
    add<<<grid, block>>>(x, y, n);
    twice<float><<<grid, block>>>(y, n);
  }
  step(y, x, n);
  Pair p = {x, y, n};
  copy<<<grid, block>>>(p);
  plane<<<dim3((n + 15) / 16, 64), dim3(16, 16)>>>(m, n, 1024);
  cudaMemcpy(h, x, bytes, cudaMemcpyDeviceToHost);
  printf("%f\\n", h[0]);
  cudaFree(x);
  cudaFree(y);
  cudaFree(m);
}
"""


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> ProgramModel:
    cuda()
    source = tmp_path_factory.mktemp("cuda") / "program.cu"
    source.write_text(PROGRAM)
    return model_of_files([source])


def test_launches_and_objects(model: ProgramModel) -> None:
    assert [(x.region, x.objects) for x in model.launches] == [
        ("add", ("x", "y")),
        ("twice", ("y",)),
        ("add", ("y", "x")),
        ("copy", ("x", "y")),
        ("plane", ("m",)),
    ]
    assert {o.name: str(o.bytes) for o in model.objects} == {"x": "4*n", "y": "4*n", "m": "4096*n"}


def test_iterations_are_the_threads_that_do_something(model: ProgramModel) -> None:
    assert [str(x.trip_count) for x in model.launches] == ["n", "n", "n", "n", "1024*n"]


def test_guards_are_passed_and_stores_are_writes(model: ProgramModel) -> None:
    uses = {
        (launch.region, use.object): (round(use.locality, 3), use.writes > 0)
        for launch in model.launches[:2] + model.launches[3:]
        for use in launch.uses
    }
    assert uses == {
        ("add", "x"): (2, True),
        ("add", "y"): (1, False),
        ("twice", "y"): (2, True),
        ("copy", "x"): (1, False),
        ("copy", "y"): (1, True),
        ("plane", "m"): (1, True),
    }


def test_how_often_and_how_far(model: ProgramModel) -> None:
    """The error exit is not taken; the loop's bound is a variable."""
    valued = with_values(model, {"repeat": 100})
    often = [launch.frequency for launch in valued.launches]
    assert often == pytest.approx([100, 100, 1, 1, 1], rel=1e-6)
    far = {use.object: use.distance for use in valued.launches[0].uses}
    assert far["y"] == pytest.approx(1)
    assert far["x"] == pytest.approx(2)
    assert valued.where(valued.launches[2]) == "add from main:40 > step:24"


def test_the_plan_is_cuda_again(model: ProgramModel, tmp_path: Path) -> None:
    """The emitted header compiles beside the program it was made of."""
    program = Modelled(model, {"n": 2**20, "repeat": 3})
    schedule = rehearse(program, make_policy("rdm"), Geometry(), 8)
    (tmp_path / "plan.h").write_text(emit_cuda(schedule))
    source = tmp_path / "planned.cu"
    source.write_text('#include "plan.h"\n' + PROGRAM)
    options = ["-x", "cuda", f"--cuda-path={cuda()}", "--cuda-host-only", "-nocudalib"]
    subprocess.run([clang_19(), *options, "-fsyntax-only", "-w", source], check=True, timeout=120)
    if (nvcc := shutil.which("nvcc")) is not None:
        done = subprocess.run(
            [nvcc, "-c", source, "-o", tmp_path / "planned.o"],
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )
        assert done.returncode == 0, done.stderr


def test_memory_that_is_not_managed_is_noted(model: ProgramModel) -> None:
    notes = [str(note) for note in model.notes if "cudaMallocManaged" in str(note)]
    assert [note.partition(":")[0] for note in notes] == ["x", "y"]


def test_stubs() -> None:
    assert kernel_of_stub("_ZN2ns18__device_stub__addEPf") == "_ZN2ns3addEPf"


def test_the_ir_of_a_gpu_does_not_stop_llvm() -> None:
    """Its processors are unknown to the passes, which optimise for this machine."""
    text = """
target triple = "nvptx64-nvidia-cuda"
define void @k(ptr %a) #0 {
  store i32 0, ptr %a
  ret void
}
attributes #0 = { nounwind "target-cpu"="sm_70" "target-features"="+ptx83,+sm_70" }
"""
    module = parse(text, "k.ll")
    run_passes(module, "sroa")
    assert "sm_70" not in str(module)
    assert branch_probabilities(str(module)).get("k", {}) == {}


def test_without_headers_it_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import sys

    clang_19()
    monkeypatch.setattr(sys, "path", [])
    monkeypatch.setattr("tidegate.compiler.ir.clang._is_usable", lambda folder: False)
    (tmp_path / "x.cu").write_text("int main() {}")
    with pytest.raises(TidegateError, match=r"no headers of CUDA 12 .*pip install nvidia-cuda"):
        model_of_files([tmp_path / "x.cu"])
