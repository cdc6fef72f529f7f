"""Shapes of programs that people write, each a small program of its own: pointers moved within an
object, many launch places, memory that is set and copied, loops whose bound is a variable.
"""

from __future__ import annotations

import resource
from collections.abc import Callable
from pathlib import Path

import pytest

from offloaded import clang_19
from tidegate.compiler import ProgramModel, model_of_source
from tidegate.compiler.analysis.measures import with_values
from tidegate.compiler.analysis.trip_counts import first_true
from tidegate.compiler.ir.inline import inline_into_main
from tidegate.compiler.ir.loops import in_cycles
from tidegate.compiler.ir.module import parse
from tidegate.compiler.plan.emit import emit_openmp
from tidegate.compiler.project import model_of_files, units_of_project
from tidegate.errors import TidegateError
from tidegate.experiments.planning import make_policy, rehearse, settle
from tidegate.trace.geometry import Geometry
from tidegate.workloads.modelled import Modelled

LOOP = "#pragma omp target teams distribute parallel for"
HEAD = "#include <stdlib.h>\n#include <string.h>\n"


@pytest.fixture
def written(tmp_path: Path) -> Callable[..., ProgramModel]:
    """The model of a program given as text."""
    clang_19()

    def model(text: str, suffix: str = ".c") -> ProgramModel:
        source = tmp_path / f"program{suffix}"
        source.write_text(HEAD + text)
        return model_of_source(source)

    return model


def test_pointers_moved_within_an_object_end(written: Callable[..., ProgramModel]) -> None:
    """Each memmove shifts what the one before has shifted, for ever, unless cells are collapsed."""
    moves = "\n".join(f"memmove(rows + {k}, rows, 8 * (n - {k}));" for k in range(1, 9))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_utime
    model = written(
        f"""
int main(int c, char **v) {{
  int n = atoi(v[1]);
  double **rows = malloc(8 * n), *a = malloc(8 * n), *b = malloc(8 * n);
  rows[0] = a;
  rows[1] = b;
  for (int k = 0; k < n; k++) {{ {moves} }}
  double *x = rows[2];
  {LOOP} map(tofrom: x[0:n])
  for (int i = 0; i < n; i++) x[i] += 1;
}}"""
    )
    assert resource.getrusage(resource.RUSAGE_SELF).ru_utime - before < 10
    (launch,) = model.launches
    assert set(launch.objects) == {"a", "b"}


def planned(model: ProgramModel, near: int = 2**26):  # type: ignore[no-untyped-def]
    values, _ = settle(model, {}, near)
    return rehearse(Modelled(model, values), make_policy("rdm"), Geometry(), near // 2**21)


@pytest.mark.slow
def test_every_place_is_planned(written: Callable[..., ProgramModel]) -> None:
    """A long loop before other launches, alternatives, and one without an object."""
    step = "\n".join(
        f"if (atoi(v[2]) == {k}) {{\n{LOOP} map(tofrom: x[0:n])\nfor (int i = 0; i < n; i++)"
        f" x[i] += {k}; }}\n"
        for k in range(5)
    )
    model = written(
        f"""
int main(int c, char **v) {{
  if (c != 3) return 1;
  int n = atoi(v[1]);
  float *x = malloc(4 * n);
  {LOOP} map(tofrom: x[0:n])
  for (int i = 0; i < n; i++) x[i] = i;
  for (int t = 0; t < 1000; t++) {{
    for (int u = 0; u < 7; u++) {{
      {LOOP} map(tofrom: x[0:n])
      for (int i = 0; i < n; i++) x[i] += u;
    }}
  }}
{step}
}}"""
    )
    assert len(model.launches) == 7
    schedule = planned(model)
    assert len(schedule.places) == 7
    assert schedule.cut
    assert schedule.places[0].region == model.launches[0].region  # it starts at the entry
    # the inner loop keeps its seven turns
    first, *_ = schedule.runs
    assert [place for place, _ in first][:15] == [0, *[1] * 14]
    assert emit_openmp(schedule).count("static inline void tidegate_before_") == 7


def test_an_error_exit_is_not_taken(written: Callable[..., ProgramModel]) -> None:
    model = written(
        f"""
int main(int c, char **v) {{
  if (c != 3) return 1;
  int n = atoi(v[1]), repeat = atoi(v[2]);
  float *x = malloc(4 * n);
  if (!x) exit(1);
  {LOOP} map(tofrom: x[0:n])
  for (int i = 0; i < n; i++) x[i] = i;
  for (int t = 0; t < repeat; t++) {{
    {LOOP} map(tofrom: x[0:n])
    for (int i = 0; i < n; i++) x[i] += 1;
  }}
}}"""
    )
    once, loop = model.launches
    assert once.frequency == pytest.approx(1)
    assert loop.frequency == pytest.approx(32)  # what LLVM assumes of any loop
    assert "repeat" in model.variables()
    valued = with_values(model, {"repeat": 1000})
    assert [x.frequency for x in valued.launches] == pytest.approx([1, 1000])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("loop", "turns"),
    [
        ("int t = 0; t < k; t++", 12),
        ("int t = 1; t <= k; t++", 12),
        ("int t = 0; t < k; t += 5", 3),
        ("int t = k; t > 0; t--", 12),
        ("int t = 2; t < 3 * k; t += 2", 17),
    ],
)
def test_turns_of_a_variable_bound(
    loop: str, turns: int, written: Callable[..., ProgramModel]
) -> None:
    model = written(
        f"""
int main(int c, char **v) {{
  int n = atoi(v[1]), k = atoi(v[2]);
  float *x = malloc(4 * n);
  for ({loop}) {{
    {LOOP} map(tofrom: x[0:n])
    for (int i = 0; i < n; i++) x[i] += t;
  }}
}}"""
    )
    valued = with_values(model, {"k": 12})
    assert valued.launches[0].frequency == pytest.approx(turns)


def test_a_class_with_virtual_functions(written: Callable[..., ProgramModel]) -> None:
    """The address of its table is an expression that no layout describes."""
    model = written(
        """
struct Shape { virtual float area() { return 1; } virtual ~Shape() {} };
struct Square : Shape { float area() override { return 4; } };
int main(int c, char **v) {
  int n = atoi(v[1]);
  Shape *shape = c > 2 ? new Shape : new Square;
  float *x = (float *)malloc(4 * n), area = shape->area();
#pragma omp target teams distribute parallel for map(tofrom : x[0 : n])
  for (int i = 0; i < n; i++) x[i] = area;
  delete shape;
}""",
        ".cpp",
    )
    assert [o.name for o in model.placeable()] == ["x"]


def test_writes_come_from_stores(written: Callable[..., ProgramModel]) -> None:
    """Inside `target data` a launch has no map clause that says so."""
    model = written(
        f"""
struct cell {{ float a[8]; }};
int main(int c, char **v) {{
  int n = atoi(v[1]);
  float *x = malloc(4 * n), *y = malloc(4 * n);
  struct cell *p = malloc(32 * n), *q = malloc(32 * n);
#pragma omp target data map(tofrom: x[0:n], y[0:n], p[0:n], q[0:n])
  {{
    {LOOP}
    for (int i = 0; i < n; i++) x[i] = 2 * y[i];
    {LOOP}
    for (int i = 0; i < n; i++) q[i] = p[i];
  }}
}}"""
    )
    written_ = {
        use.object: model.is_written(launch, use.object)
        for launch in model.launches
        for use in launch.uses
    }
    assert written_ == {"x": True, "y": False, "p": False, "q": True}
    copied = {use.object: use.bytes_per_iteration for use in model.launches[1].uses}
    assert copied == pytest.approx({"p": 32, "q": 32})


def test_a_loop_that_sets_memory_is_counted(written: Callable[..., ProgramModel]) -> None:
    model = written(
        f"""
int main(int c, char **v) {{
  int n = atoi(v[1]);
  float *x = malloc(64 * n);
  {LOOP} map(from: x[0:16 * n])
  for (int i = 0; i < n; i++)
    for (int j = 0; j < 16; j++) x[16 * i + j] = 0;
}}"""
    )
    (launch,) = model.launches
    (use,) = launch.uses
    assert use.bytes_per_iteration == pytest.approx(64)
    assert model.access_density(launch, use, {"n": 1000}) == pytest.approx(1)


def test_one_cell_read_by_all_is_not_dense(written: Callable[..., ProgramModel]) -> None:
    """Nor are four; a row that every iteration walks through is."""
    model = written(
        f"""
int main(int c, char **v) {{
  int n = atoi(v[1]);
  float *x = malloc(4 * n), *some = malloc(4 * n), *row = malloc(4 * n);
  {LOOP} map(tofrom: x[0:n], some[0:n], row[0:n])
  for (int i = 0; i < n; i++) {{
    float sum = 0;
    for (int j = 0; j < 4; j++) sum += some[j];
    for (int j = 0; j < n; j++) sum += row[j];
    x[i] = sum;
  }}
}}"""
    )
    (launch,) = model.launches
    density = {use.object: model.access_density(launch, use, {"n": 10_000}) for use in launch.uses}
    assert density["some"] == pytest.approx(4 / 10_000)
    assert density["x"] == pytest.approx(1)
    assert density["row"] > 1


def test_iterations_of_teams_and_of_inner_loops(written: Callable[..., ProgramModel]) -> None:
    model = written(
        """
int main(int c, char **v) {
  int n = atoi(v[1]), m = atoi(v[2]);
  float *x = malloc(4 * n);
#pragma omp target teams num_teams(n / 1) thread_limit(64) map(tofrom: x[0:n])
#pragma omp parallel
  x[0] += 1;
#pragma omp target parallel for map(tofrom: x[0:n]) firstprivate(m)
  for (int i = 0; i < m; i++) x[i] += 1;
}"""
    )
    teams, inner = model.launches
    assert str(teams.trip_count) == "64*n"
    assert str(inner.trip_count) == "m"


def test_a_launch_without_objects_is_shown(
    written: Callable[..., ProgramModel], capsys: pytest.CaptureFixture[str]
) -> None:
    from tidegate.cli.compile import _show

    _show(
        written(
            """
int main(void) {
#pragma omp target
  { }
}"""
        )
    )
    assert "none was traced" in capsys.readouterr().out


def test_first_true_is_what_running_the_loop_finds() -> None:
    """By brute force over small registers."""
    import operator
    from itertools import product

    for kind, start, step, bound, signed in product(
        ("eq", "ne", "lt", "le", "gt", "ge"), range(-8, 8, 3), (-3, -1, 1, 2), range(-8, 8), (0, 1)
    ):
        low = -8 if signed else 0
        value, goal = (start - low) % 16 + low, (bound - low) % 16 + low
        found, wrapped = None, False
        for n in range(40):
            if getattr(operator, kind)(value, goal):
                found = n
                break
            after = (value + step - low) % 16 + low
            if after != value + step and wrapped:
                break
            wrapped, value = wrapped or after != value + step, after
        if found is not None:
            assert first_true(kind, start, step, bound, 4, bool(signed)) == found


def test_cycles() -> None:
    graph = {"a": {"b"}, "b": {"c", "d"}, "c": {"b"}, "d": {"d", "e"}, "e": set(), "f": {"a"}}
    assert in_cycles(graph) == {"b", "c", "d"}


@pytest.mark.slow
def test_twenty_thousand_functions() -> None:
    """Finding what to inline takes time proportional to the text, not to pairs of functions."""
    functions = "\n".join(
        f"define ptr @f{n}(ptr %p) {{\n  %q = call ptr @f{(n * 7 + 1) % 20000}(ptr %p)\n"
        f"  ret ptr %q\n}}"
        for n in range(20_000)
    )
    text = f"{functions}\ndefine i32 @main() {{\n  ret i32 0\n}}"
    before = resource.getrusage(resource.RUSAGE_SELF).ru_utime
    assert len(inline_into_main(parse(text, "many"))) == len(
        in_cycles({f"f{n}": {f"f{(n * 7 + 1) % 20000}"} for n in range(20_000)})
    )
    assert resource.getrusage(resource.RUSAGE_SELF).ru_utime - before < 20


MAKEFILE = """CC = icpx
FLAGS = -O3 -fiopenmp -DSIZE=4 -I../common -std=c++17
main: main.o part.o
\t$(CC) $(FLAGS) $^ -o $@
%.o: %.c
\t$(CC) $(FLAGS) -c $< -o $@
"""


def project(tmp_path: Path) -> Path:
    (tmp_path / "common").mkdir()
    (tmp_path / "common" / "shared.h").write_text("float *part(int n);\n")
    folder = tmp_path / "program"
    folder.mkdir()
    (folder / "main.c").write_text(
        f"""#include "shared.h"
#include <cstdlib>
int main(int c, char **v) {{
  int n = atoi(v[1]) * SIZE;
  float *x = part(n);
  {LOOP} map(tofrom: x[0:n])
  for (int i = 0; i < n; i++) x[i] = i;
}}"""
    )
    (folder / "part.c").write_text(
        '#include "shared.h"\n#include <cstdlib>\n'
        "float *part(int n) { return (float *)malloc(n * sizeof(float)); }\n"
    )
    (folder / "Makefile").write_text(MAKEFILE)
    return folder


def test_a_makefiles_program_in_one_command(tmp_path: Path) -> None:
    clang_19()
    folder = project(tmp_path)
    units = units_of_project(folder)
    assert [(unit.source.name, unit.language) for unit in units] == [
        ("main.c", "c++"),
        ("part.c", "c++"),
    ]
    assert units[0].options == ("-DSIZE=4", "-I../common", "-std=c++17")
    model = model_of_files([folder])
    assert len(model.launches) == 1
    assert len(model.placeable()) == 1


def test_a_compilation_database(tmp_path: Path) -> None:
    import json

    folder = project(tmp_path)
    entries = [
        {"directory": str(folder), "command": f"clang++ -DSIZE=2 -I ../common -c {name}"}
        for name in ("main.c", "part.c")
    ]
    path = folder / "compile_commands.json"
    path.write_text(json.dumps(entries))
    assert [unit.options for unit in units_of_project(path)] == [
        ("-DSIZE=2", "-I", "../common")
    ] * 2
    clang_19()
    assert len(model_of_files([path, folder / "main.c", folder / "part.c"]).launches) == 1


@pytest.mark.parametrize("text", ["[", "{}", '[{"file": "x.c"}]', "[3]"])
def test_what_is_no_compilation_database(text: str, tmp_path: Path) -> None:
    (tmp_path / "compile_commands.json").write_text(text)
    with pytest.raises(TidegateError, match=r"not a compilation database|compiles no C"):
        units_of_project(tmp_path)


def test_a_file_whose_name_begins_with_a_dash(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clang_19()
    (tmp_path / "-x.c").write_text(
        HEAD
        + f"""int main(int c, char **v) {{
  float *x = malloc(4 * c);
  {LOOP} map(tofrom: x[0:c])
  for (int i = 0; i < c; i++) x[i] = i;
}}"""
    )
    monkeypatch.chdir(tmp_path)
    assert len(model_of_files([Path("-x.c")]).launches) == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("between", "after", "maps", "why"),
    [
        ("", "sum += x[k];", "to: x[0:n]", "never mapped back"),
        ("", "sum += y[k];", "tofrom: x[0:n]", None),
        ("", "", "to: x[0:n]", None),  # nobody looks
        ("for (int k = 0; k < n; k++) x[k] = 3;", "", "tofrom: x[0:n]", "while it is mapped"),
    ],
)
def test_copies_that_differ_on_purpose(
    between: str, after: str, maps: str, why: str | None, written: Callable[..., ProgramModel]
) -> None:
    model = written(
        f"""
int main(int c, char **v) {{
  int n = atoi(v[1]);
  float sum = 0, *x = malloc(4 * n), *y = malloc(4 * n);
  for (int k = 0; k < n; k++) x[k] = y[k] = k;
#pragma omp target data map({maps})
  {{
    for (int t = 0; t < 4; t++) {{
      {LOOP}
      for (int i = 0; i < n; i++) x[i] += 1;
      {between}
    }}
  }}
  for (int k = 0; k < n; k++) {{ {after} }}
  return sum;
}}"""
    )
    assert [note.about for note in model.two_copies] == (["x"] if why else [])
    assert all(why and why in note.text for note in model.two_copies)


def test_constructors_that_are_aliases(written: Callable[..., ProgramModel]) -> None:
    """clang makes the complete constructor an alias of the base one, which hides allocations."""
    model = written(
        f"""
struct Domain {{ float *x; int n; Domain(int n); ~Domain(); }};
Domain::Domain(int n) : x((float *)malloc(4 * n)), n(n) {{}}
Domain::~Domain() {{ free(x); }}
int main(int c, char **v) {{
  Domain d(c);
  float *x = d.x;
  int n = d.n;
  {LOOP} map(tofrom: x[0:n])
  for (int i = 0; i < n; i++) x[i] = i;
}}""",
        ".cpp",
    )
    assert len(model.placeable()) == 1


def test_what_is_allocated_after_a_launch_is_not_its_object(
    written: Callable[..., ProgramModel],
) -> None:
    """The host's check makes room in the same structure again, after the last launch."""
    model = written(
        f"""
struct grid {{ float *cells; }} grid;
__attribute__((noinline)) void fill(struct grid *g, int n) {{ g->cells = malloc(4 * n); }}
int main(int c, char **v) {{
  int n = atoi(v[1]), steps = atoi(v[2]);
  fill(&grid, n);
  for (int t = 0; t < steps; t++) {{
    float *x = grid.cells;
    {LOOP} map(tofrom: x[0:n])
    for (int i = 0; i < n; i++) x[i] += 1;
  }}
  fill(&grid, n);
  return grid.cells[atoi(v[3])];
}}"""
    )
    assert len(model.objects) == 1
    (launch,) = model.launches
    (use,) = launch.uses
    assert use.distance == pytest.approx(1)


def test_objects_have_no_names_of_the_library(written: Callable[..., ProgramModel]) -> None:
    """A smart pointer's constructor calls what it is given __p; the kernel has a better name."""
    model = written(
        f"""
struct owner {{ int *held; }} kept;
__attribute__((noinline)) void own(int *__p) {{ kept.held = __p; }}
__attribute__((noinline)) void make(int n) {{ own(new int[n]); }}
int main(int c, char **v) {{
  int n = atoi(v[1]);
  make(n);
  int *table = kept.held;
  {LOOP} map(tofrom: table[0:n])
  for (int i = 0; i < n; i++) table[i] += 1;
}}""",
        ".cpp",
    )
    assert [o.name for o in model.objects] == ["table"]
