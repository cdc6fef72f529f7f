"""The instrumented run of benchmarks/truth.py, and its comparison with the model."""

from __future__ import annotations

import shutil

import pytest
from benchmarks.agreement import Agreement, agreement
from benchmarks.truth import Log, log_of, mark

from offloaded import clang_19
from tidegate.compiler.project import model_of_files

MAKEFILE = """
main: main.c
	clang -fopenmp main.c -o main
run: main
	./main 64 6
"""
PROGRAM = """
#include <stdlib.h>
#include <string.h>
#define LOOP _Pragma("omp target teams distribute parallel for")
/* the call of malloc comes last: optimised, it would be a jump, and made have no frame */
__attribute__((noinline)) static int *made(int n) { return malloc(4 * n); }
int main(int c, char **v) {
  int rows = atoi(v[1]), repeat = atoi(v[2]), n = 1024;
  int *x = made(n * rows);
  int *y = made(n * rows);
  int *few = calloc(n * rows, 4);
#pragma omp target data map(tofrom : x[0 : n * rows], y[0 : n * rows], few[0 : n * rows])
  for (int t = 0; t < repeat; t++) {
    LOOP
    for (int r = 0; r < rows; r++) memset(x + r * n, r, 4 * 1024);
    LOOP
    for (int i = 0; i < n * rows; i++) {
      y[i] = x[i];
#pragma omp atomic
      few[0]++;
    }
  }
  return y[0];
}
"""


@pytest.fixture(scope="module")
def compared(tmp_path_factory: pytest.TempPathFactory) -> tuple[Log, Agreement]:
    clang_19()
    if shutil.which("make") is None or shutil.which("addr2line") is None:
        pytest.skip("make and addr2line are needed")
    folder = tmp_path_factory.mktemp("program")
    (folder / "Makefile").write_text(MAKEFILE)
    (folder / "main.c").write_text(PROGRAM)
    log = log_of(folder, 20, tmp_path_factory.mktemp("built"))
    return log, agreement(model_of_files([folder]), log)


@pytest.mark.slow
def test_a_run_is_logged(compared: tuple[Log, Agreement]) -> None:
    log, _ = compared
    assert (log.whole, log.arguments, len(log.launches)) == (True, ["64", "6"], 12)
    filled, copied = log.launches[:2]
    assert (filled.trips, copied.trips) == (64, 64 * 1024)
    assert sorted(filled.touched.values()) == [(64, 64, True)]
    assert sorted(copied.touched.values()) == [(1, 64, True), (64, 64, False), (64, 64, True)]
    assert sorted(log.sizes.values()) == [4 * 64 * 1024] * 3
    assert len(log.lines) == 3  # of calls, not of functions that allocate


def test_the_model_agrees(compared: tuple[Log, Agreement]) -> None:
    _, found = compared
    assert found.wrong == []
    assert found.of == {
        "regions": 2,
        "operands": 4,
        "distances": 4,
        "densities": 4,
        "writes": 4,
        "written": 3,
    }


def test_marks_in_the_ir() -> None:
    kernel = "__omp_offloading_1_2_main_l7"
    text = f"""define internal void @{kernel}(ptr %0) #3 !dbg !39 {{
  %2 = alloca i64, align 8
  call void @llvm.memcpy.p0.p0.i64(ptr align 8 %2, ptr align 8 %0, i64 16, i1 false)
  %3 = atomicrmw add ptr %2, i32 1 monotonic, align 4
  ret void
}}
define internal void @{kernel}.omp_outlined(ptr %0) {{
  ret void
}}
"""
    lines = [line.strip() for line in mark(text).splitlines()]
    assert lines[1] == "call void @tidegate_enter()"
    assert "call void @tidegate_copied(ptr %2, ptr %0, i64 16)" in lines
    assert "call void @tidegate_updated(ptr %2)" in lines
    assert lines.count(f"call void @tidegate_leave(ptr @.tidegate.{kernel})") == 1
