"""What cannot be read is one clear line; what cannot be known is noted, with what was assumed, and
the rest goes on.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from offloaded import EXAMPLES, clang_19
from tidegate.compiler import ProgramModel, model_of_ir, model_of_source
from tidegate.compiler.ir import clang
from tidegate.compiler.ir.module import parse
from tidegate.compiler.model_file import load
from tidegate.compiler.plan.schedule import launch_names
from tidegate.compiler.project import units_of_project
from tidegate.errors import TidegateError
from tidegate.experiments.planning import make_policy, predict, rehearse, settle
from tidegate.machine.machine import load_machine
from tidegate.trace.geometry import Geometry
from tidegate.workloads.modelled import Modelled

MODELS = EXAMPLES.parents[1] / "src" / "tidegate" / "papers" / "hybrid" / "applications" / "models"
LOOP = "#pragma omp target teams distribute parallel for"


@pytest.fixture
def written(tmp_path: Path) -> Callable[[str], ProgramModel]:
    """The model of a program given as text."""
    clang_19()

    def model(text: str) -> ProgramModel:
        source = tmp_path / "program.c"
        source.write_text("#include <stdlib.h>\n" + text)
        return model_of_source(source)

    return model


def _notes(model: ProgramModel) -> str:
    return "\n".join(map(str, model.notes))


@pytest.mark.parametrize(
    "given", ["", "no IR at all", b"BC\xc0\xde and rubbish", b"\xff\xfe", "define i32 @main() {"]
)
def test_what_is_not_ir(given: str | bytes) -> None:
    with pytest.raises(TidegateError, match=r"'x\.ll' (is not LLVM IR|has no main)") as error:
        model_of_ir([given], name="x.ll")
    assert "\n" not in str(error.value)


def test_nothing_given() -> None:
    with pytest.raises(TidegateError, match="'the program' has no IR; give the host's too"):
        model_of_ir([])


def test_the_devices_part_alone() -> None:
    clang_19()
    _, device = clang.compile_ir(EXAMPLES / "nn.c")
    with pytest.raises(
        TidegateError,
        match=r"'nn\.ll' is the device's IR only; give the host's too, which holds main",
    ):
        model_of_ir([], [device], "nn.ll")


def test_no_main() -> None:
    with pytest.raises(TidegateError, match="has no main; give all files of a program"):
        model_of_ir(["define i32 @other() {\n ret i32 0\n}"])


def test_no_regions() -> None:
    with pytest.raises(TidegateError, match="launches no target region"):
        model_of_ir(["define i32 @main() {\n ret i32 0\n}"])


def test_no_such_source() -> None:
    with pytest.raises(
        TidegateError, match=r"no file: 'nowhere\.c'; give a C, C\+\+, CUDA or HIP source file"
    ):
        model_of_source("nowhere.c")


def test_no_clang_names_the_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(TidegateError, match=r"apt-get install clang-19 .* or give \.ll files"):
        model_of_source(EXAMPLES / "nn.c")


def test_what_does_not_compile(written: Callable[[str], ProgramModel]) -> None:
    with pytest.raises(TidegateError, match=r"does not compile: .*error: ") as error:
        written("int main(void) { return missing; }")
    assert "\n" not in str(error.value)


def test_objects_that_no_memory_holds() -> None:
    with pytest.raises(TidegateError, match=r"at most 4\.00 TiB in all, got 109 TiB; give smaller"):
        settle(load(MODELS / "nn.json"), {"n": 10**13}, 2**30)


def test_a_makefile_that_make_refuses(tmp_path: Path) -> None:
    (tmp_path / "Makefile").write_text("all: ; $(error CUDA is not set)\n")
    with pytest.raises(TidegateError, match=r"\*\*\* CUDA is not set; mend it or give the files$"):
        units_of_project(tmp_path)


@pytest.mark.slow
def test_nowait(written: Callable[[str], ProgramModel]) -> None:
    model = written(f"""
int main(int c, char **v) {{
  float *a = malloc(4 * c);
{LOOP} nowait map(tofrom : a[0 : c])
  for (int i = 0; i < c; i++) a[i] = i;
{LOOP} map(tofrom : a[0 : c])
  for (int i = 0; i < c; i++) a[i] += i;
  return a[0];
}}""")
    assert (
        "main:5: is launched in a task (nowait); it is taken to run where the task is made"
        in _notes(model)
    )
    assert model.table() == {"main:5": ("a",), "main:7": ("a",)}
    assert [use.distance for launch in model.launches for use in launch.uses] == [1, float("inf")]


@pytest.mark.slow
def test_recursion(written: Callable[[str], ProgramModel]) -> None:
    model = written(f"""
void deeper(float *a, int n, int k) {{
{LOOP} map(tofrom : a[0 : n])
  for (int i = 0; i < n; i++) a[i] += i;
  if (k > 0) deeper(a, n, k - 1);
  if (k > 3) deeper(a, n / 2, k - 2);
}}
int main(int c, char **v) {{
  float *a = malloc(4 * c);
  deeper(a, c, c);
  return a[0];
}}""")
    assert "deeper: calls itself" in _notes(model)
    assert "deeper:4: is launched in deeper, which calls itself; it is left out" in _notes(model)


def test_a_program_of_which_nothing_can_be_traced_cannot_be_planned(
    written: Callable[[str], ProgramModel],
) -> None:
    model = written(f"""
void deeper(float *a, int n, int k) {{
{LOOP} map(tofrom : a[0 : n])
  for (int i = 0; i < n; i++) a[i] += i;
  if (k > 0) deeper(a, n, k - 1);
  if (k > 3) deeper(a, n / 2, k - 2);
}}
int main(int c, char **v) {{
  float *a = malloc(4 * c);
  deeper(a, c, c);
  return a[0];
}}""")
    with pytest.raises(
        TidegateError,
        match=r"no launch of .* could be traced, so nothing can be planned \(deeper: calls itself",
    ):
        Modelled(model, {})


@pytest.mark.slow
@pytest.mark.parametrize(
    ("allocation", "language"), [("malloc(n * sizeof(double))", "c"), ("new double[n]", "cpp")]
)
def test_sizes_that_atoi_gives(allocation: str, language: str, tmp_path: Path) -> None:
    """An int that came as a long is masked, shifted and widened in the IR; it is n all the same,
    and n - 2 are n - 2.
    """
    clang_19()
    source = tmp_path / f"program.{language}"
    source.write_text(f"""#include <stdlib.h>
int main(int c, char **v) {{
  int n = atoi(v[1]);
  double *u = {allocation}, *w = {allocation};
  for (int t = 0; t < 10; t++) {{
{LOOP} map(to : u[0 : n]) map(from : w[0 : n])
    for (int i = 1; i < n - 1; i++) w[i] = u[i - 1] + u[i + 1];
  }}
  return w[0];
}}""")
    model = model_of_source(source)
    assert {o.name: str(o.bytes) for o in model.placeable()} == {"u": "8*n", "w": "8*n"}
    (launch,) = model.launches
    assert launch.trip_count is not None
    assert launch.trip_count.at({"n": 1000}) == 998
    density = {use.object: model.access_density(launch, use, {"n": 1000}) for use in launch.uses}
    assert density == {"u": pytest.approx(2 * 0.998), "w": pytest.approx(0.998)}


@pytest.mark.slow
def test_sizes_that_an_int_in_a_structure_gives(written: Callable[[str], ProgramModel]) -> None:
    """It is never a long, so what is subtracted from it is an int, too."""
    model = written(f"""
struct grid {{ int n; double *u, *w; }};
int main(int c, char **v) {{
  struct grid *g = malloc(sizeof *g);
  g->n = c;
  g->u = malloc(8 * c);
  g->w = malloc(8 * c);
  double *u = g->u, *w = g->w;
  int n = *(volatile int *)&g->n;
{LOOP} map(to : u[0 : n]) map(from : w[0 : n])
  for (int i = 1; i < n - 1; i++) w[i] = u[i];
  return g->w[0];
}}""")
    (launch,) = model.launches
    assert launch.trip_count is not None
    assert launch.trip_count.at(dict.fromkeys(launch.trip_count.variables(), 1000)) == 998


@pytest.mark.slow
def test_loops_whose_length_is_in_no_size(written: Callable[[str], ProgramModel]) -> None:
    """k sizes nothing, so no size of near memory suggests a value; the second region has no loop to
    be shared at all.
    """
    model = written(f"""
int main(int c, char **v) {{
  int n = atoi(v[1]), k = atoi(v[2]);
  double *u = malloc(8 * n);
{LOOP} map(tofrom : u[0 : n])
  for (int i = 0; i < k; i++) u[i] += 1;
#pragma omp target map(tofrom : u[0 : n])
  for (int i = 0; i < n; i++) u[i] += 1;
  return u[0];
}}""")
    assert (
        "main:8: how often it loops is not known; its objects are taken as densely used"
        in _notes(model)
    )
    for given in ({}, {"n": 10**5}, {"n": 10**8}):
        values, _ = settle(model, given, 2**23)
        program = Modelled(model, values)
        assert values.keys() == {"n"}
        assert [use.density for launch in program.plan().launches for use in launch.uses] == [
            None,
            None,
        ]
        notes = rehearse(program, make_policy("rdm"), Geometry(), 4).notes
        assert any(
            note.startswith("main:6: its iterations depend on k, which no size determines")
            for note in notes
        )
    given, _ = settle(model, {"n": 1000, "k": 500}, 2**23)
    # read and written
    assert Modelled(model, given).plan().launches[0].uses[0].density == pytest.approx(1)


@pytest.mark.slow
def test_two_values_of_one_name(written: Callable[[str], ProgramModel]) -> None:
    """Both sizes are 4*n, each with its own n. Nothing shows that they differ but the note."""
    model = written(f"""
static float *make(int n) {{ return malloc(4 * n); }}
int main(int c, char **v) {{
  float *a = make(atoi(v[1])), *b = make(atoi(v[2]));
{LOOP} map(to : a[0 : c]) map(tofrom : b[0 : c])
  for (int i = 0; i < c; i++) b[i] += a[i];
  return b[0];
}}""")
    assert {str(o.bytes) for o in model.placeable()} == {"4*n"}
    assert "n: 2 values that sizes depend on are called so; they are taken to be equal" in _notes(
        model
    )


@pytest.mark.slow
def test_calls_through_pointers(written: Callable[[str], ProgramModel]) -> None:
    model = written(f"""
static void one(float *a, int n) {{
{LOOP} map(tofrom : a[0 : n])
  for (int i = 0; i < n; i++) a[i] += i;
}}
static void other(float *a, int n) {{ a[n / 2] = 0; }}
int main(int c, char **v) {{
  float *a = malloc(4 * c);
  void (*f[2])(float *, int) = {{one, other}};
  f[c % 2](a, c);
  return a[0];
}}""")
    assert "one:4: is launched in one, which no direct call leads to; it is left out" in _notes(
        model
    )


@pytest.mark.slow
def test_rows(written: Callable[[str], ProgramModel]) -> None:
    model = written(f"""
int main(int c, char **v) {{
  float **m = malloc(c * sizeof(float *));
  for (int i = 0; i < c; i++)
    m[i] = malloc(4 * c);
  for (int r = 0; r < c; r++) {{
    float *row = m[r];
{LOOP} map(tofrom : row[0 : c])
    for (int i = 0; i < c; i++) row[i] = i;
  }}
  return m[0][0];
}}""")
    text = "row: is allocated c times in a loop; all together are taken as one object"
    assert text in _notes(model)
    assert str(model.object("row").bytes) == "4*c*c"
    assert model.table() == {"main:9": ("row",)}


@pytest.mark.slow
def test_rows_that_a_region_finds_by_itself(written: Callable[[str], ProgramModel]) -> None:
    model = written(f"""
int main(int c, char **v) {{
  float **m = malloc(c * sizeof(float *));
  for (int i = 0; i < c; i++)
    m[i] = malloc(4 * c);
{LOOP} map(tofrom : m[0 : c])
  for (int i = 0; i < c; i++)
    for (int j = 0; j < c; j++) m[i][j] = i;
  return m[0][0];
}}""")
    assert (
        "main:7: follows pointers that it reads from m; what they point to is left out"
        in _notes(model)
    )
    assert model.table() == {"main:7": ("m",)}


@pytest.mark.slow
def test_swapped_buffers(written: Callable[[str], ProgramModel]) -> None:
    model = written(f"""
int main(int c, char **v) {{
  float *a = malloc(4 * c), *b = malloc(4 * c);
  for (int t = 0; t < 10; t++) {{
{LOOP} map(tofrom : a[0 : c], b[0 : c])
    for (int i = 1; i < c - 1; i++) a[i] = b[i - 1] + b[i + 1];
    float *x = a; a = b; b = x;
  }}
  return a[0];
}}""")
    assert "may be a or b; each is taken as used" in _notes(model)
    (launch,) = model.launches
    # three accesses, shared
    assert [use.locality for use in launch.uses] == [pytest.approx(1.5)] * 2


@pytest.mark.slow
def test_a_global_that_is_no_argument(written: Callable[[str], ProgramModel]) -> None:
    model = written(f"""
#pragma omp declare target
float table[4000];
#pragma omp end declare target
int main(int c, char **v) {{
  float *b = malloc(4 * c);
{LOOP} map(tofrom : b[0 : c])
  for (int i = 0; i < c; i++) b[i] += table[i % 4000];
  return b[0];
}}""")
    by_name = "main:8: uses the global table by its name (declare target), not as an argument"
    assert f"{by_name}; it is left out" in _notes(model)
    assert model.table() == {"main:8": ("b",)}


@pytest.mark.slow
def test_pointers_in_a_structure(written: Callable[[str], ProgramModel]) -> None:
    model = written(f"""
struct both {{ int n; float *x, *y; }};
int main(int c, char **v) {{
  struct both s = {{c, 0, 0}};
  s.x = malloc(4 * c);
  s.y = calloc(c, 4);
{LOOP} map(to : s.x[0 : c]) map(tofrom : s.y[0 : c])
  for (int i = 0; i < c; i++) s.y[i] += s.x[i];
  return s.y[0];
}}""")
    assert set(model.table()["main:8"]) == {"malloc:6", "calloc:7"}
    (launch,) = model.launches
    localities = {use.object: use.locality for use in launch.uses}
    assert localities["malloc:6"] == pytest.approx(1)  # read
    assert localities["calloc:7"] == pytest.approx(2)  # read and written


def test_a_list_in_a_region_has_an_end(written: Callable[[str], ProgramModel]) -> None:
    model = written(f"""
struct link {{ struct link *next; float value; }};
int main(int c, char **v) {{
  struct link *all = malloc(c * sizeof(struct link));
{LOOP} map(tofrom : all[0 : c])
  for (int i = 0; i < c; i++)
    for (struct link *l = &all[i]; l; l = l->next) l->value += 1;
  return all[0].value;
}}""")
    assert model.table() == {"main:6": ("all",)}


@pytest.mark.slow
def test_a_pointer_stepped_in_a_loop(written: Callable[[str], ProgramModel]) -> None:
    model = written(f"""
int main(int c, char **v) {{
  float *all = malloc(c * sizeof(float));
  for (float *p = all; p < all + c; p++) *p = 1;
{LOOP} map(tofrom : all[0 : c])
  for (int i = 0; i < c; i++) all[i] += 1;
  return all[0];
}}""")
    assert model.table() == {"main:6": ("all",)}


@pytest.mark.slow
def test_a_pointer_from_elsewhere(written: Callable[[str], ProgramModel]) -> None:
    model = written(f"""
extern float *theirs(int);
int main(int c, char **v) {{
  float *a = theirs(c), *b = malloc(4 * c);
{LOOP} map(tofrom : a[0 : c], b[0 : c])
  for (int i = 0; i < c; i++) a[i] += b[i];
  return a[0];
}}""")
    assert "may be what theirs returns, which is not traced; it is left out" in _notes(model)
    assert model.table() == {"main:6": ("b",)}


@pytest.mark.slow
def test_other_allocators_and_device_pointers(written: Callable[[str], ProgramModel]) -> None:
    model = written(f"""
#include <omp.h>
float *shared;
int main(int c, char **v) {{
  float *d = omp_target_alloc(8 * c, 0);
  void *p;
  if (posix_memalign(&p, 64, 4096)) return 1;
  float *aligned = p;
  shared = calloc(c, 4);
{LOOP} is_device_ptr(d) map(tofrom : aligned[0 : 9], shared[0 : c])
  for (int i = 0; i < 9; i++) d[i] = aligned[i] + shared[i];
  return 0;
}}""")
    sizes = {o.allocator: str(o.bytes) for o in model.placeable()}
    assert sizes == {"omp_target_alloc": "8*c", "posix_memalign": "4096", "calloc": "4*c"}
    assert len(model.table()["main:11"]) == 3


@pytest.mark.slow
def test_new_is_called_new(tmp_path: Path) -> None:
    """Members have no names in the IR; operator new's symbol is not readable."""
    clang_19()
    source = tmp_path / "program.cpp"
    source.write_text(f"""#include <new>
struct Grid {{
  double *u, *w;
  int n;
  Grid(int c) : n(c) {{
    u = new double[c];
    w = new (std::nothrow) double[c];
  }}
  void sweep() {{
    double *from = u, *to = w;
{LOOP} map(to : from[0 : n]) map(from : to[0 : n])
    for (int i = 0; i < n; i++) to[i] = from[i];
  }}
}};
int main(int c, char **v) {{
  Grid grid(c);
  for (int k = 0; k < 4; k++) {{
    grid.sweep();
    double *t = grid.u; grid.u = grid.w; grid.w = t;
  }}
  return grid.u[0];
}}""")
    model = model_of_source(source)
    assert {o.name: str(o.bytes) for o in model.placeable()} == {"new:16": "8*c", "new:16.2": "8*c"}


@pytest.mark.slow
def test_without_the_devices_ir(model: Callable[[str], ProgramModel]) -> None:
    host, _ = clang.compile_ir(EXAMPLES / "bfs.c")
    alone = model_of_ir([host])
    assert alone.table() == model("bfs").table()
    absent = "its kernel is not in the device's IR; its localities are taken as 0"
    assert f"{absent} and its objects as densely" in _notes(alone)


def test_without_the_devices_ir_a_plan_takes_objects_as_densely_used() -> None:
    clang_19()
    host, _ = clang.compile_ir(EXAMPLES / "nn.c")
    model = model_of_ir([host])
    program = Modelled(model, settle(model, {}, 2**24)[0])
    assert {use.density for launch in program.plan().launches for use in launch.uses} == {None}
    runs = predict(program, load_machine("v100-nvlink2"), 2**24, ["rdm"])
    assert not isinstance(runs["rdm"], str)


@pytest.mark.slow
def test_bitcode_is_text(model: Callable[[str], ProgramModel]) -> None:
    texts = clang.compile_ir(EXAMPLES / "cfd.c")
    host, device = (parse(text, "cfd").as_bitcode() for text in texts)
    assert model_of_ir([host], [device], model("cfd").source) == model("cfd")


def test_a_method_is_named_in_full(tmp_path: Path) -> None:
    clang_19()
    source = tmp_path / "program.cpp"
    source.write_text(f"""#include <cstdlib>
struct Grid {{
  float *a;
  int n;
  void sweep() {{
    float *p = a;
{LOOP} map(tofrom : p[0 : n])
    for (int i = 0; i < n; i++) p[i] += i;
  }}
}};
int main(int c, char **v) {{
  Grid grid{{(float *)malloc(4 * c), c}};
  grid.sweep();
  return grid.a[0];
}}""")
    model = model_of_source(source)
    assert [launch.region for launch in model.launches] == ["Grid::sweep:7"]
    assert launch_names(model) == ["Grid::sweep"]


def test_places_on_one_line_are_numbered_as_a_run_comes_to_them(
    written: Callable[[str], ProgramModel],
) -> None:
    """The call after the loop is not listed before those in it, wherever the compiler puts its
    block.
    """
    model = written(f"""
static void add(float *a, float *b, int n) {{
{LOOP} map(to : a[0 : n]) map(tofrom : b[0 : n])
  for (int i = 0; i < n; i++) b[i] += a[i];
}}
int main(int c, char **v) {{
  float *x = malloc(4 * c), *y = malloc(4 * c), *z = malloc(4 * c);
  for (int k = 0; k < 5; k++) {{ add(x, y, c); add(y, z, c); }}
  add(z, x, c);
  return x[0];
}}""")
    assert [(model.where(launch), set(launch.objects)) for launch in model.launches] == [
        ("add:4 from main:9, place 1 of 2", {"x", "y"}),
        ("add:4 from main:9, place 2 of 2", {"y", "z"}),
        ("add:4 from main:10", {"x", "z"}),
    ]


def test_kernels_on_one_line_are_regions_of_their_own(tmp_path: Path) -> None:
    """A template's float and double versions have the same function and line, and move different
    bytes.
    """
    clang_19()
    source = tmp_path / "program.cpp"
    source.write_text(f"""
template <class T> static void twice(T *p, int n) {{
{LOOP} map(tofrom : p[0 : n])
  for (int i = 0; i < n; i++) p[i] += p[i];
}}
int main(int c, char **v) {{
  float *x = new float[c];
  double *y = new double[c];
  twice(x, c);
  twice(y, c);
  return x[0] + y[0];
}}""")
    model = model_of_source(source)
    bytes_of = {
        (launch.region, use.object): use.bytes_per_iteration
        for launch in model.launches
        for use in launch.uses
    }
    assert bytes_of == {("twice:3", "x"): pytest.approx(8), ("twice:3.2", "y"): pytest.approx(16)}
    assert model.table() == {"twice:3": ("x",), "twice:3.2": ("y",)}


def test_two_translation_units(tmp_path: Path) -> None:
    clang_19()
    (tmp_path / "main.c").write_text("""
#include <stdlib.h>
void fill(float *, int);
int main(int c, char **v) {
  float *far = malloc(4 * c);
  for (int k = 0; k < 5; k++) fill(far, c);
  return far[0];
}""")
    (tmp_path / "fill.c").write_text(f"""
void fill(float *a, int n) {{
{LOOP} map(from : a[0 : n])
  for (int i = 0; i < n; i++) a[i] = i;
}}""")
    units = [clang.compile_ir(tmp_path / name) for name in ("main.c", "fill.c")]
    model = model_of_ir([host for host, _ in units], [device for _, device in units])
    assert model.table() == {"fill:3": ("far",)}
    assert model.region_frequency("fill:3") == pytest.approx(5)
