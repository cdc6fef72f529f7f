"""How much of an object an iteration accesses: loops within it, addresses that stay or lie apart,
guards; and how long an object lives. One program, compiled once.
"""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from offloaded import clang_19
from tidegate.compiler import ProgramModel, model_of_source
from tidegate.compiler.model_file import load, save

PROGRAM = """
#include <stdlib.h>
#define LOOP _Pragma("omp target teams distribute parallel for")
#define ON(e) _Pragma("omp target teams distribute parallel for map(tofrom : e[0 : n])")
static void constant_team(float *x, int rows) {
#pragma omp target teams distribute
  for (int r = 0; r < rows; r++) {
#pragma omp parallel for
    for (int i = 0; i < 64; i++) x[r * 64 + i] += 1;
  }
}
static void team_of_n(float *x, int rows, int n) {
#pragma omp target teams distribute
  for (int r = 0; r < rows; r++) {
    float sum = 0;
#pragma omp parallel for reduction(+ : sum)
    for (int i = 0; i < n; i++) sum += x[r * n + i];
    x[r * n] = sum;
  }
}
static void row_by_row(float *x, const float *y, float *z, int rows, int n) {
  LOOP
  for (int r = 0; r < rows; r++)
    for (int i = 0; i < n; i++) z[r] += x[r * n + i] * y[i];
}
static void guarded(float *z, int rows) {
  LOOP
  for (int r = 0; r < rows + 255; r++)
    if (r < rows) z[r] += 1;
}
static void down_a_column(float *x, int rows, int n) {
  LOOP
  for (int r = 0; r < rows; r++) x[r * n] = 1;
}
static void scattered(float *x, const int *at, int rows) {
  LOOP
  for (int r = 0; r < rows; r++) x[at[r]] = 1;
}
static void chosen_by_data(float *z, const float *y, int rows) {
  LOOP
  for (int r = 0; r < rows; r++)
    if (y[r] > 0 && y[r] < 1) z[r] = 1;
}
static void rows_of_any_length(float *x, const int *at, float *z, int rows) {
  LOOP
  for (int r = 0; r < rows; r++)
    for (int i = at[r]; i < at[r + 1]; i++) z[r] += x[i];
}
static void used_twice(float *w, int n) {
  LOOP
  for (int i = 0; i < n; i++) w[i] = i;
  LOOP
  for (int i = 0; i < n; i++) w[i] += i;
}
int main(int c, char **v) {
  int rows = atoi(v[1]), n = atoi(v[2]);
  float *a = malloc(4 * 64 * rows), *x = malloc(4 * n * rows), *y = malloc(4 * n);
  float *z = malloc(4 * rows);
  int *at = malloc(4 * rows + 4);
#pragma omp target data map(tofrom : a[0 : 64 * rows], x[0 : n * rows], y[0 : n], z[0 : rows], \
                                at[0 : rows + 1])
  {
    constant_team(a, rows);
    team_of_n(x, rows, n);
    row_by_row(x, y, z, rows, n);
    guarded(z, rows);
    down_a_column(x, rows, n);
    scattered(x, at, rows);
    chosen_by_data(z, y, rows);
    rows_of_any_length(x, at, z, rows);
  }
  float *e = c > 3 ? malloc(8 * n) : calloc(n, 4);
  ON(e)
  for (int i = 0; i < n; i++) e[i] = i;
  for (int t = 0; t < 10; t++) {
    float *w = malloc(4 * n);
#pragma omp target data map(tofrom : w[0 : n])
    used_twice(w, n);
    free(w);
  }
}"""
VALUES = {"rows": 1000, "n": 5000}


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> ProgramModel:
    """The model, saved and loaded again."""
    clang_19()
    folder = tmp_path_factory.mktemp("walks")
    (folder / "program.c").write_text(PROGRAM)
    save(model_of_source(folder / "program.c"), folder / "model.json")
    return load(Path(folder, "model.json"))


def density(model: ProgramModel, function: str, name: str) -> float | None:
    launch = next(x for x in model.launches if x.region.startswith(function))
    use = next(use for use in launch.uses if use.object == name)
    return model.access_density(launch, use, VALUES)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("function", "name", "expected"),
    [
        ("constant_team", "a", 2),  # each cell is read and written
        ("team_of_n", "x", 1),  # n is read by its address; x[r * n] is little
        ("row_by_row", "x", 1),
        ("row_by_row", "y", 1),  # all rows walk through the same
        ("row_by_row", "z", 2),  # its address stays, however long the row
        ("guarded", "z", 2),  # the guard holds nearly always
        ("down_a_column", "x", 4096 / 20000),  # a page in every row
        ("scattered", "x", 4096 / 20000),  # any page each time
        ("chosen_by_data", "z", 1),  # some cell of every page
        ("rows_of_any_length", "z", 2),
    ],
)
def test_densities(function: str, name: str, expected: float, model: ProgramModel) -> None:
    assert density(model, function, name) == pytest.approx(expected, rel=0.3)


def test_without_values_a_walk_may_lead_anywhere(model: ProgramModel) -> None:
    launch = next(x for x in model.launches if x.region.startswith("row_by_row"))
    y = next(use for use in launch.uses if use.object == "y")
    assert y.covered(1000, {}) is None
    assert y.covered(1000, {"n": 10}) == pytest.approx(40)


def test_a_walk_of_a_length_from_data_may_lead_anywhere(model: ProgramModel) -> None:
    assert density(model, "rows_of_any_length", "x") is None


def test_an_allocation_ends_the_object_before(model: ProgramModel) -> None:
    first, second = (x for x in model.launches if x.region.startswith("used_twice"))
    assert [use.distance for use in first.uses] == pytest.approx([1])
    assert [use.distance for use in second.uses] == [math.inf]  # the next turn has another one
    assert [name for name, _ in model.flow.births] == ["w"]


def test_objects_know_their_calls(model: ProgramModel) -> None:
    assert all(len(o.calls) == 1 and o.calls[0] == f"main:{o.line}" for o in model.placeable())


def test_one_of_two_allocations_is_one_object(model: ProgramModel) -> None:
    launch = next(x for x in model.launches if x.region.startswith("main"))
    assert [str(model.object(name).bytes) for name in launch.objects] == ["8*n"]
    assert any("one of several places" in note.text for note in model.notes)
