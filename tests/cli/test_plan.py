"""tidegate plan: its structure, and what it refuses."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from offloaded import EXAMPLES, NAMES, clang_19, run
from tidegate.cli import invoke
from tidegate.compiler import ProgramModel, model_of_source
from tidegate.compiler.analysis.sizes import Formula
from tidegate.compiler.ir.clang import TARGET
from tidegate.compiler.plan.emit import emit_cuda, emit_openmp
from tidegate.compiler.plan.schedule import Schedule
from tidegate.experiments.planning import make_policy, rehearse, settle
from tidegate.papers.hybrid.applications import model_named
from tidegate.trace.geometry import Geometry
from tidegate.workloads.modelled import Modelled

CFD = str(EXAMPLES / "cfd.c")


@pytest.mark.slow
def test_json_holds_places_actions_and_predictions(capsys: pytest.CaptureFixture[str]) -> None:
    clang_19()
    assert invoke(["plan", CFD, "--near", "64MiB", "--set", "side=900", "--emit", "json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert [p["name"] for p in data["places"]] == [
        "initialize_variables",
        "copy",
        "compute_step_factor",
        "compute_flux",
        "time_step",
    ]
    assert {a["verb"] for p in data["places"] for v in p["visits"] for a in v} <= {
        "prefetch",
        "evict",
        "far",
        "anywhere",
    }
    times = {name: run.get("time_ns") for name, run in data["predicted"].items()}
    assert times["explicit"] is None
    assert times["rdm"] < times["um"]


@pytest.mark.slow
def test_json_is_asked_for_as_in_other_verbs(capsys: pytest.CaptureFixture[str]) -> None:
    clang_19()
    assert invoke(["plan", CFD, "--near", "64MiB", "--set", "side=900", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["places"]
    assert invoke(["plan", CFD, "--json", "--emit", "cuda"]) == 2
    assert "--json and --emit cuda" in capsys.readouterr().err


def test_a_policy_that_would_be_faster_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    """nn uses everything once, so moving it does not pay."""
    clang_19()
    assert invoke(["plan", str(EXAMPLES / "nn.c"), "--near", "64MiB"]) == 0
    assert "note: host is predicted to be faster" in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.parametrize(
    ("form", "call"),
    [("cuda", "TIDEGATE_PREFETCH((char *)variables"), ("openmp", "enter data map(close, to : var")],
)
def test_code_asks_at_the_right_launches(form: str, call: str, tmp_path: Path) -> None:
    clang_19()
    header = tmp_path / "plan.h"
    assert (
        invoke(
            [
                "plan",
                CFD,
                "--near",
                "64MiB",
                "--set",
                "side=900",
                "--emit",
                form,
                "--out",
                str(header),
            ]
        )
        == 0
    )
    first, *_ = header.read_text().split("tidegate_before_copy")
    assert call in first  # variables come before the launch that uses them first


# Names that C++ has taken, that are none, and that become the same; a global array; a region
# reached by two calls.
AWKWARD = """#include <stdlib.h>
float new[4000000];
struct both { float *x, *y; };
static void step(float *a, float *b, int n) {
#pragma omp target teams distribute parallel for map(tofrom : a[0 : n], b[0 : n], new)
  for (int i = 0; i < n; i++) a[i] += b[i] * new[i];
}
static void step_2(struct both s, int n) {
#pragma omp target teams distribute parallel for map(tofrom : s.x[0 : n], s.y[0 : n])
  for (int i = 0; i < n; i++) s.x[i] += s.y[i];
}
int main(int c, char **v) {
  int n = atoi(v[1]);
  float *class = malloc(4 * n), *cudaFree = malloc(4 * n);
  struct both s = {malloc(4 * n), calloc(n, 4)};
  for (int t = 0; t < 10; t++)
    step(class, cudaFree, n);
  step_2(s, n);
  step(cudaFree, class, n);
  return class[0] + s.x[0];
}
"""


@pytest.fixture(scope="module")
def awkward(tmp_path_factory: pytest.TempPathFactory) -> ProgramModel:
    clang_19()
    source = tmp_path_factory.mktemp("awkward") / "awkward.c"
    source.write_text(AWKWARD)
    return model_of_source(source)


def planned(model: ProgramModel) -> Schedule:
    near = 64 * 2**20
    return rehearse(
        Modelled(model, settle(model, {}, near)[0]), make_policy("rdm"), Geometry(), near // 2**21
    )


def test_names_are_made_valid_and_differ(awkward: ProgramModel) -> None:
    """The functions step (of two places) and step_2 must not become the same function."""
    schedule = planned(awkward)
    functions = [schedule.functions()[place.name] for place in schedule.places]
    assert len(set(functions)) == len(functions) == 3
    called = schedule.parameters()
    assert called["class"] == "class_"
    assert called["new"] == "new_"
    assert called["cudaFree"] == "o_cudaFree"
    assert "class is called class_ here" in emit_cuda(schedule)
    assert all(re.fullmatch(r"[A-Za-z]\w*", spelt, re.ASCII) for spelt in called.values())
    assert (called["s.x"], called["s.y"]) == ("s_x", "s_y")


def test_each_function_says_which_launch_it_is_for(awkward: ProgramModel) -> None:
    for text in (emit_cuda(planned(awkward)), emit_openmp(planned(awkward))):
        before = re.findall(r"/\* Before every launch of (.*)\. \*/", text)
        assert sorted(before) == ["step:5 from main:17", "step:5 from main:19", "step_2:9"]


def test_places_differ_without_debug_information(awkward: ProgramModel) -> None:
    model = replace(
        awkward, launches=tuple(replace(launch, calls=()) for launch in awkward.launches)
    )
    places = sorted(model.where(launch) for launch in model.launches)
    assert places == ["step:5, place 1 of 2", "step:5, place 2 of 2", "step_2:9"]


def test_a_global_array_has_the_size_of_its_type(awkward: ProgramModel) -> None:
    assert awkward.object("new").bytes == Formula.number(16_000_000)
    assert planned(awkward).places[0].objects.count("new") == 1
    assert "new: is a global array; it is placed as if it were managed memory" in "".join(
        map(str, awkward.notes)
    )


def test_what_is_assumed_is_large_whatever_the_globals_are(awkward: ProgramModel) -> None:
    """near memory of 8 MiB is smaller than the global array alone; n has to size 1.5 times 8 MiB
    all the same.
    """
    values, notes = settle(awkward, {}, 2**23)
    assert 4 * 4 * values["n"] == pytest.approx(1.5 * 2**23, rel=1e-5)
    assert "was assumed" in notes[0]


def test_code_of_every_example_is_cuda(awkward: ProgramModel, tmp_path: Path) -> None:
    """All in one file, each in a namespace of its own, because nvcc takes seconds to begin."""
    nvcc = shutil.which("nvcc")
    if nvcc is None:
        pytest.skip("nvcc is not installed")
    models = {"awkward": awkward, **{name: model_named(name) for name in NAMES}}
    for name, model in models.items():
        (tmp_path / f"{name}.h").write_text(emit_cuda(planned(model)))
    parts = [f'namespace {name} {{\n#include "{name}.h"\n}}\n' for name in models]
    (tmp_path / "all.cu").write_text(
        "".join(["#include <cuda_runtime.h>\n", *parts, "int main() { return 0; }\n"])
    )
    done = subprocess.run(
        [nvcc, "-c", "all.cu"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr


STUB = """
#include <stdio.h>
#define CUDART_VERSION 12000
#define cudaCpuDeviceId (-1)
enum { cudaMemAdviseSetPreferredLocation, cudaMemAdviseUnsetPreferredLocation,
       cudaMemAdviseSetAccessedBy, cudaMemAdviseUnsetAccessedBy };
static char *base;
static inline void cudaMemAdvise(void *p, size_t n, int advice, int device) {
  const char *verb = advice == cudaMemAdviseSetPreferredLocation ? "far"
                   : advice == cudaMemAdviseUnsetPreferredLocation ? "anywhere" : 0;
  if (verb) printf("%s %td %zu\\n", verb, (char *)p - base, n);
}
static inline void cudaMemPrefetchAsync(void *p, size_t n, int device, int stream) {
  printf("%s %td %zu\\n", device == cudaCpuDeviceId ? "evict" : "prefetch", (char *)p - base, n);
}
"""


# all there are, and three iterations of the outer loop
@pytest.mark.parametrize("rehearsed", [200, 49])
@pytest.mark.parametrize("policy", ["rdm", "rlm", "object-lru", "glm"])
def test_the_emitted_code_asks_at_each_launch_what_the_policy_asked(
    policy: str, rehearsed: int, tmp_path: Path
) -> None:
    """The header is compiled against functions that print, and called in the order in which the
    program launches.
    """
    model = model_named("cfd")
    program = Modelled(model, {"side": 900})
    whole = rehearse(program, make_policy(policy), Geometry(), 24)
    schedule = rehearse(
        Modelled(model, {"side": 900}, most=rehearsed), make_policy(policy), Geometry(), 24
    )
    (tmp_path / "cuda_runtime.h").write_text(STUB)
    (tmp_path / "plan.h").write_text(emit_cuda(schedule))
    # addresses that nobody looks at
    at = {o.name: 10**9 * n for n, o in enumerate(model.placeable())}
    place = {p.name: p for p in whole.places}
    names = [launch.name for launch in program.plan().launches]
    order = [place[names[n]] for n in program.order]
    functions, calls = schedule.functions(), []
    for p in order:
        arguments = ", ".join(["0", *(f"base + {at[o]}" for o in p.used)])
        calls.append(f'puts("launch"); {functions[p.name]}({arguments});')
    source = tmp_path / "main.c"
    source.write_text(
        '#include "plan.h"\nint main(void) {\n' + "\n".join(calls) + "\nreturn 0;\n}\n"
    )
    subprocess.run(
        [clang_19(), "-I", tmp_path, source, "-o", tmp_path / "main"], check=True, timeout=300
    )
    done = subprocess.run(
        [tmp_path / "main"], capture_output=True, text=True, check=True, timeout=300
    )
    printed = [part.split("\n")[1:-1] for part in done.stdout.split("launch")[1:]]
    visits: Counter[str] = Counter()
    for p, lines in zip(order, printed, strict=True):
        asked = [
            f"{a.verb} {at[a.object] + a.first} {a.end - a.first}" for a in p.visits[visits[p.name]]
        ]
        assert lines == asked, (p.name, visits[p.name])
        visits[p.name] += 1
    assert sum(map(len, printed)) > 5
    assert ("were rehearsed" in emit_cuda(schedule)) == (rehearsed == 49)


@pytest.mark.slow
@pytest.mark.parametrize("name", [*NAMES, "awkward"])
@pytest.mark.parametrize("form", ["cuda", "openmp"])
def test_code_of_every_example_compiles(
    name: str, form: str, awkward: ProgramModel, tmp_path: Path
) -> None:
    """As C, without a warning; CUDA's against functions that print."""
    schedule = planned(awkward if name == "awkward" else model_named(name))
    (tmp_path / "plan.h").write_text((emit_cuda if form == "cuda" else emit_openmp)(schedule))
    if form == "cuda":
        (tmp_path / "cuda_runtime.h").write_text(STUB)
    (tmp_path / "main.c").write_text('#include "plan.h"\nint main(void) { return 0; }\n')
    options = [clang_19(), "-Wall", "-Werror", "-Wno-unused-function", "-I", ".", "-fsyntax-only"]
    more = [] if form == "cuda" else ["-fopenmp", "-fopenmp-targets=x86_64-pc-linux-gnu"]
    done = subprocess.run(
        [*options, *more, "main.c"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


# Each launch uses two of three objects, so that with room for two they take turns; the host reads
# one between launches.
TURNS = """#include <stdio.h>
#include <stdlib.h>
static void add(double *a, double *b, int n) {
#pragma omp target teams distribute parallel for map(to : a[0 : n]) map(tofrom : b[0 : n])
  for (int i = 0; i < n; i++) b[i] += a[i] + 1;
}
int main(int c, char **v) {
  int n = atoi(v[1]);
  double sum = 0, *x = malloc(8 * (size_t)n);
  double *y = malloc(8 * (size_t)n), *z = malloc(8 * (size_t)n);
  for (int i = 0; i < n; i++) x[i] = i, y[i] = 2 * i, z[i] = 3 * i;
  for (int k = 0; k < 6; k++) {
    BEFORE_1 add(x, y, n);
    BEFORE_2 add(y, z, n);
    READ
    sum += z[k]; z[k] = k;
    WRITTEN
    BEFORE_3 add(z, x, n);
  }
  END
  for (int i = 0; i < n; i++) sum += x[i] + 2 * y[i] + 3 * z[i];
  printf("%.17g\\n", sum);
}
"""


@pytest.mark.slow
@pytest.mark.parametrize("policy", ["rdm", "object-lru", "glm", "prefetch-all"])
@pytest.mark.parametrize("frames", [3, 5, 6])  # of 2 MiB, where each object has two
def test_the_emitted_directives_leave_results_as_they_were(
    policy: str, frames: int, tmp_path: Path
) -> None:
    """Offload to the host itself, where a near object has its own copy, as on a GPU."""
    clang_19()
    (tmp_path / "turns.c").write_text(TURNS)
    n, hooks = 2**19, ("BEFORE_1", "BEFORE_2", "BEFORE_3", "READ", "WRITTEN", "END")
    model = model_of_source(tmp_path / "turns.c", [f"-D{hook}=" for hook in hooks])
    schedule = rehearse(Modelled(model, {"n": n}), make_policy(policy), Geometry(), frames)
    header = emit_openmp(schedule)
    (tmp_path / "plan.h").write_text(header)

    def call(function: str) -> str:
        (objects,) = re.findall(rf"void {function}\((.*)\)", header)
        given = re.findall(r"char \*(\w+)", objects)
        return f"{function}({', '.join(f'(char *){o}' for o in given)});"

    functions = re.findall(r"void (tidegate_before_\w+)\(", header)
    copies = re.findall(r"void (tidegate_update_from_device_\w+)\(", header)
    z = [call(name) for name in re.findall(r"void (tidegate_update_\w+_device_z)\(", header)] or [
        "",
        "",
    ]
    with_plan = dict(
        zip(hooks, [*map(call, functions), z[0], z[1], " ".join(map(call, copies))], strict=True)
    )
    sums = []
    for name, defined in (("plain", dict.fromkeys(hooks, "")), ("planned", with_plan)):
        options = [f"-D{hook}={text}" for hook, text in defined.items()]
        command = [
            clang_19(),
            "-O1",
            *TARGET,
            "-include",
            tmp_path / "plan.h",
            *options,
            tmp_path / "turns.c",
        ]
        subprocess.run([*command, "-o", tmp_path / name], check=True, timeout=300)
        done = run(tmp_path / name, str(n))
        assert done.returncode == 0, done.stderr
        sums.append(done.stdout)
    assert sums[0] == sums[1]
    assert copies or policy == "glm"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--set", "side=none"], "whole number"),
        (["--set", "sides=9"], "sides"),
        (["--near", "1KiB"], "near memory must hold at least one region"),
        (["--placement", "um"], "policy must decide at launches"),
        (["--out", "/nowhere/plan.h"], "no folder"),
        (["--emit", "fortran"], "fortran"),
        (["--emit", "table"], "give another --emit"),
    ],
)
def test_bad_input_is_one_line(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    clang_19()
    out = tmp_path / "plan.h"
    extra = [] if "--out" in arguments else ["--out", str(out)]
    form = [] if "--emit" in arguments else ["--emit", "cuda"]
    assert invoke(["plan", CFD, *form, *arguments, *extra]) == 2
    error = capsys.readouterr().err.strip()
    assert message in error
    assert len(error.splitlines()) == 1
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_a_saved_model_is_planned_as_its_source_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    clang_19()
    saved = str(tmp_path / "m.json")
    assert invoke(["compile", CFD, "--out", saved]) == 0
    capsys.readouterr()
    plans = []
    for given in (CFD, saved):
        assert (
            invoke(["plan", given, "--near", "64MiB", "--set", "side=900", "--emit", "cuda"]) == 0
        )
        plans.append(capsys.readouterr().out)
    assert plans[0] == plans[1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["m.json"],
            "'m.json' is not a program model; give a file that tidegate compile --out wrote",
        ),
        (["none.json"], "cannot read none.json: No such file or directory"),
        (["m.json", CFD], "a saved model (.json) is a whole program; give it alone"),
        (["m.json", "--clang=-O2"], "'m.json' is a saved model, which clang does not compile"),
    ],
)
def test_what_is_no_saved_model(
    arguments: list[str],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "m.json").write_text('{"a": 1}')
    assert invoke(["plan", *arguments]) == 2
    error = capsys.readouterr().err.strip()
    assert message in error
    assert len(error.splitlines()) == 1


def test_the_region_graph_is_drawn(tmp_path: Path) -> None:
    clang_19()
    assert invoke(["compile", CFD, "--plot", str(tmp_path / "cfd.svg")]) == 0
    assert "<svg" in (tmp_path / "cfd.svg").read_text()
