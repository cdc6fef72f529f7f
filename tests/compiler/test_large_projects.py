"""Programs of many functions, and Makefiles of several programs."""

from __future__ import annotations

from pathlib import Path

import pytest
from benchmarks.large_program import program

from offloaded import clang_19
from tidegate.compiler import model_of_source
from tidegate.compiler.ir import inline
from tidegate.compiler.ir.clang import compile_ir
from tidegate.compiler.project import units_of_project


@pytest.mark.slow
def test_what_would_make_main_too_long_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clang_19()
    source = tmp_path / "large.c"
    source.write_text(program(200))
    assert not any("too large" in note.text for note in model_of_source(source).notes)
    monkeypatch.setattr(inline, "_MOST_LINES", 700)
    model = model_of_source(source)
    assert any("too large" in note.text for note in model.notes)
    assert len(model.launches) == 40
    assert {f"x{n}" for n in range(40)} <= {o.name for o in model.placeable()}


def test_the_program_that_offloads_is_taken(tmp_path: Path) -> None:
    """One source, compiled for two programs."""
    (tmp_path / "Makefile").write_text(
        """
all: plain fast
plain:
	icpx -O3 -c main.cpp -o main.o
	icpx -c step.cpp -o step-cpu.o
	icpx -o plain main.o step-cpu.o
fast:
	icpx -DFAST -fiopenmp -c step.cpp -o step-gpu.o
	icpx -fiopenmp -o fast main.o step-gpu.o
"""
    )
    found = [(unit.source.name, unit.options) for unit in units_of_project(tmp_path)]
    assert found == [("main.cpp", ()), ("step.cpp", ("-DFAST",))]


def test_files_without_code_for_the_device_are_compiled_once(tmp_path: Path) -> None:
    clang_19()
    for name, text, device in (
        ("plain.c", "int f(int x) { return x; }", False),
        ("called.c", "#pragma omp declare target\nint g(int x) { return x; }\n", True),
    ):
        (tmp_path / name).write_text(text)
        assert bool(compile_ir(tmp_path / name)[1]) == device


def test_pointers_computed_as_numbers(tmp_path: Path) -> None:
    """Aligned by hand, and kept in a long; a null pointer is no object that was lost."""
    clang_19()
    source = tmp_path / "program.c"
    source.write_text(
        """
#include <stdint.h>
#include <stdlib.h>
long free_from;
int main(int c, char **v) {
  int n = atoi(v[1]);
  float *x = (float *)(((uintptr_t)malloc(4 * n + 64) + 63) & ~(uintptr_t)63);
  free_from = (long)malloc(8 * n);
  float *y = (float *)free_from, *none = 0;
  free_from += 4 * n;
  float *z = (float *)free_from;
#pragma omp target teams distribute parallel for is_device_ptr(x, y, z, none)
  for (int i = 0; i < n; i++) z[i] = y[i] += x[i] + (none ? none[i] : 0);
}"""
    )
    model = model_of_source(source)
    assert sorted(str(model.object(name).bytes) for name in model.launches[0].objects) == [
        "4*n + 64",
        "8*n",
    ]
    assert not any("traced" in note.text for note in model.notes)
