"""HIP programs, compiled by clang with a few declarations of our own in place of HIP's headers."""

from __future__ import annotations

from pathlib import Path

import pytest

from offloaded import clang_19
from tidegate.compiler.ir import clang
from tidegate.compiler.project import model_of_files, units_of_project
from tidegate.errors import TidegateError

HEADER = """
#pragma once
#include <stdlib.h>
struct dim3 {
  unsigned x, y, z;
  __attribute__((host, device)) constexpr dim3(unsigned x, unsigned y = 1, unsigned z = 1)
      : x(x), y(y), z(z) {}
};
typedef int hipError_t;
typedef struct ihipStream_t *hipStream_t;
extern "C" hipError_t hipMalloc(void **, size_t);
extern "C" hipError_t hipFree(void *);
extern "C" hipError_t __hipPushCallConfiguration(dim3, dim3, size_t = 0, hipStream_t = 0);
extern "C" hipError_t __hipPopCallConfiguration(dim3 *, dim3 *, size_t *, hipStream_t *);
extern "C" hipError_t hipLaunchKernel(const void *, dim3, dim3, void **, size_t, hipStream_t);
"""
PROGRAM = """
#include <hip/hip_runtime.h>
__attribute__((global)) void scale(float *x, float a, int n) {
  int i = __builtin_amdgcn_workgroup_id_x() * 256 + __builtin_amdgcn_workitem_id_x();
  if (i < n) x[i] *= a;
}
int main(int c, char **v) {
  int n = atoi(v[1]), repeat = atoi(v[2]);
  float *x;
  hipMalloc((void **)&x, n * sizeof(float));
  for (int r = 0; r < repeat; r++) scale<<<(n + 255) / 256, 256>>>(x, 2.0f, n);
  hipFree(x);
}
"""


@pytest.fixture
def rocm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that clang takes for ROCm."""
    clang_19()
    folder = tmp_path / "rocm"
    (folder / "include" / "hip").mkdir(parents=True)
    (folder / "include" / "hip" / "hip_runtime.h").write_text(HEADER)
    (folder / "share" / "hip").mkdir(parents=True)
    version = "HIP_VERSION_MAJOR=6\nHIP_VERSION_MINOR=0\nHIP_VERSION_PATCH=0\n"
    (folder / "share" / "hip" / "version").write_text(version)
    monkeypatch.setenv("ROCM_PATH", str(folder))
    return folder


@pytest.mark.slow
def test_a_hip_program(rocm: Path, tmp_path: Path) -> None:
    source = tmp_path / "program.hip"
    source.write_text(PROGRAM)
    model = model_of_files([source])
    (launch,) = model.launches
    (use,) = launch.uses
    assert (launch.region, str(launch.trip_count), use.object) == ("scale", "n", "x")
    assert model.is_written(launch, "x")
    assert model.access_density(launch, use, {"n": 2**20}) == pytest.approx(2, rel=1e-3)
    assert model.variables() == ("n", "repeat")


def test_hipcc_compiles_cu_files_as_hip(tmp_path: Path) -> None:
    (tmp_path / "Makefile").write_text("main: main.cu\n\thipcc -O3 -o main main.cu\n")
    (tmp_path / "main.cu").write_text(PROGRAM)
    assert [unit.spoken for unit in units_of_project(tmp_path)] == ["hip"]


def test_without_headers_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Path, "is_file", lambda path: False)
    with pytest.raises(TidegateError, match=f"apt-get install {clang.PACKAGE}"):
        clang.rocm_folder()
