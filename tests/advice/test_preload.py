"""The preload library moves an unmodified program's memory by a plan: a CUDA runtime that keeps
books runs programs with it and without.
"""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path

import pytest

from advice.programs import MIB
from advice.test_emit_cuda import cuda_headers
from compiler.test_cuda import cuda
from offloaded import clang_19
from tidegate.cli import invoke
from tidegate.compiler.model_file import save
from tidegate.compiler.plan.preload import plan_text
from tidegate.compiler.plan.schedule import Action
from tidegate.compiler.project import model_of_files

HERE = Path(__file__).parent / "cudart"
SOURCE = str(files("tidegate.compiler.plan").joinpath("preload.c"))
STRICT = ["-Wall", "-Wextra", "-Werror"]
SIZE = 8 << 16  # of each of the program's three objects
ADD, TWICE = "_Z3addPdPKdm", "_Z5twicePdm"


def compiler(name: str = "cc") -> str:
    """Return a C compiler, or skip the test."""
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is not installed: it builds the library and the program it runs in")
    return found


def build(*words: str | Path, name: str = "cc") -> None:
    done = subprocess.run(
        [compiler(name), *STRICT, *words], capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stderr


@dataclass(frozen=True)
class Ran:
    """A run of the program: what it printed, and the runtime's books."""

    code: int
    out: str
    said: list[str]
    books: list[str]

    def number(self, name: str) -> int:
        return int(next(b for b in self.books if b.startswith(name)).split()[1])

    def calls(self, *kinds: str) -> list[str]:
        """Return what was done, without the streams' numbers."""
        return [b.partition(" stream")[0] for b in self.books if b.startswith(kinds)]


@dataclass
class Built:
    """The program, the runtime and the library, compiled."""

    folder: Path
    version: int
    options: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        runtime = self.folder / f"libcudart.so.{self.version}"
        own = [f"-I{HERE}", f"-DCUDART_VERSION={self.version}000", "-g", *self.options]
        shared = [*own, "-shared", "-fPIC"]
        build(*shared, HERE / "cudart.c", f"-Wl,-soname,{runtime.name}", "-o", runtime)
        build(*own, HERE / "program.c", runtime, "-o", self.folder / "program", "-lpthread")
        build(*shared, SOURCE, "-o", self.folder / "preload.so", "-ldl", "-lpthread")

    def run(
        self, words: str, plan: str | None = None, program: str = "program", **environment: str
    ) -> Ran:
        """Run the program; with a plan's text, under the library."""
        books, file = self.folder / "books", self.folder / "plan.json"
        given = {**os.environ, "LD_LIBRARY_PATH": str(self.folder), "BOOKS": str(books)}
        if plan is not None:
            file.write_text(plan)
            given |= {"LD_PRELOAD": str(self.folder / "preload.so"), "TIDEGATE_PLAN": "plan.json"}
        done = subprocess.run(
            [self.folder / program, *words.split()],
            cwd=self.folder,
            env={**given, **environment},
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )
        return Ran(
            done.returncode, done.stdout, done.stderr.splitlines(), books.read_text().splitlines()
        )


@pytest.fixture(scope="module", params=[12, 13], ids=["cuda12", "cuda13"])
def built(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Built:
    return Built(tmp_path_factory.mktemp("preload"), request.param)


def act(verb: str, name: str, first: int = 0, end: int = SIZE) -> Action:
    return Action(verb, name, first, end, SIZE)


def plan(run: Sequence[tuple[str, Sequence[Action]]], **sizes: int) -> str:
    return plan_text("by hand", sizes or dict.fromkeys("xyz", SIZE), run)


# Two of three objects are near: x makes room for y and z, and the other way round.
BEFORE_ADD = (act("evict", "x"), act("prefetch", "y"), act("prefetch", "z"))
BEFORE_TWICE = (act("evict", "z"), act("prefetch", "x"))
TURNS = [(ADD, BEFORE_ADD), (TWICE, BEFORE_TWICE)] * 4
PLAN = plan(TURNS)
TEXT = {ADD: ["evict 0", "prefetch 1", "prefetch 2", ADD], TWICE: ["evict 2", "prefetch 0", TWICE]}
WORDS = "add twice " * 4


def order(run: Ran) -> list[str]:
    """Return moves and kernels as they were done; whole objects only."""
    moved = run.calls("evict", "prefetch", "_Z")
    return [m.removesuffix(f" 0 {SIZE}") for m in moved]


def test_moves_are_made_in_the_planned_order_and_results_stay(built: Built) -> None:
    plain, planned = built.run(WORDS), built.run(WORDS, PLAN)
    assert (planned.out, planned.code, planned.said) == (plain.out, 0, [])
    assert order(planned) == (TEXT[ADD] + TEXT[TWICE]) * 4
    assert plain.number("peak") == 3 * SIZE
    assert planned.number("peak") == 2 * SIZE
    assert planned.number("faults") == 0


def test_memory_is_managed_but_for_none_at_all(built: Built) -> None:
    plain, planned = built.run("nothing async"), built.run("nothing async", PLAN)
    assert planned.out == plain.out  # cudaMalloc of no bytes, and a pool's memory
    assert plain.calls("managed", "device") == [
        f"device 0 {SIZE}",
        f"device 1 {SIZE}",
        f"managed 2 {SIZE}",
        f"device 3 {SIZE}",
    ]
    assert {call.split()[0] for call in planned.calls("managed", "device")} == {"managed"}
    assert planned.said == [
        LEFT.format(f"the program allocates {SIZE} bytes more than the plan has")
    ]


LEFT = "tidegate: {}; plain managed memory from here on"


@pytest.mark.parametrize("form", ["handle", "configured", "cooperative", "ptsz"])
def test_every_form_of_launch_is_seen(built: Built, form: str) -> None:
    planned = built.run(f"{form} {WORDS}", PLAN)
    assert planned.said == []
    assert order(planned) == (TEXT[ADD] + TEXT[TWICE]) * 4


def test_what_repeats_goes_on_for_longer_than_was_planned(built: Built) -> None:
    planned = built.run("add twice " * 100, PLAN)
    assert planned.said == []
    assert order(planned) == (TEXT[ADD] + TEXT[TWICE]) * 100


def test_ranges_and_advice(built: Built) -> None:
    half = SIZE // 2
    text = plan(
        [
            (ADD, [act("far", "z", half), act("read-mostly", "y"), act("prefetch", "z", 0, half)]),
            (ADD, [act("anywhere", "z", half), act("discard", "x")]),
        ]
    )
    planned = built.run("add add", text)
    assert planned.out == built.run("add add").out
    assert planned.books[3:] == [
        f"prefer 2 {half} {SIZE} at -1",
        f"accessed 2 {half} {SIZE} at 0",
        f"read-mostly 1 0 {SIZE} at 0",
        f"unset prefer 2 {half} {SIZE} at -1",
        f"unset accessed 2 {half} {SIZE} at 0",
        f"prefetch 2 0 {half} stream 0",
        f"{ADD} stream 0",
        f"{ADD} stream 0",
        f"peak {2 * SIZE}",
        f"faults {(SIZE + half) // 4096}",
    ]


def test_far_memory_is_used_from_afar(built: Built) -> None:
    planned = built.run(
        "add add", plan([(ADD, [act("far", "z"), act("prefetch", "y")]), (ADD, [])])
    )
    assert planned.out == built.run("add add").out
    assert planned.number("peak") == SIZE


# Streams and threads


def test_requests_wait_for_launches_on_other_streams(built: Built) -> None:
    """The newest stream runs first if nothing holds it: before its turn it would push out x."""
    words = "add1 twice2 " * 4 + "last1"
    turns = [*TURNS, (ADD, BEFORE_ADD[1:])]
    plain, planned = built.run(words), built.run(words, plan(turns))
    assert planned.out == plain.out
    assert planned.said == []
    assert [b for b in plain.books if b.startswith("_Z")][:4] == [f"{TWICE} stream 2"] * 4
    assert order(planned)[:-3] == (TEXT[ADD] + TEXT[TWICE]) * 4
    assert planned.number("peak") <= 3 * SIZE
    streams = [b.split()[-1] for b in planned.books if b.startswith("_Z")]
    assert streams == ["1", "2"] * 4 + ["1"], "each on the program's own stream"


def test_a_stream_that_is_gone_is_waited_for_no_more(built: Built) -> None:
    words = "add1 twice2 destroy " * 4
    planned = built.run(words, PLAN)
    assert (planned.out, planned.said) == (built.run(words).out, [])
    assert order(planned) == (TEXT[ADD] + TEXT[TWICE]) * 4


def test_threads_that_take_turns_follow_the_plan(built: Built) -> None:
    words = f"threads {WORDS}"
    planned = built.run(words, PLAN)
    assert (planned.out, planned.said) == (built.run(words).out, [])
    assert order(planned) == (TEXT[ADD] + TEXT[TWICE]) * 4


def test_threads_with_streams_of_their_own_leave_the_plan(built: Built) -> None:
    words = f"ptsz threads {WORDS}"
    planned = built.run(words, PLAN)
    assert planned.out == built.run(words).out
    assert planned.said == [LEFT.format("default streams of several threads are in use")]


def test_threads_in_no_order_leave_the_plan_once(built: Built) -> None:
    planned = built.run("crowd", PLAN)
    assert planned.out == built.run("crowd").out
    assert len(planned.said) == 1
    assert planned.said[0].startswith("tidegate: ")


# Leaving the plan

DIVERSIONS = {
    "twice": f"launch 1 is {TWICE}, the plan has {ADD}",
    "add add": f"launch 2 is {ADD}, the plan has {TWICE}",
    "add more twice": "the program allocates 4096 bytes more than the plan has",
    "n=1000 add": f"the program allocates 8000 bytes, the plan has {SIZE} here, for x",
    "add smaller twice": "the program allocates 65536 bytes more than the plan has",
    "add capture twice2": "launch 2 is captured into a graph",
    "add device twice": "launch 2 is on another device than the first one",
}


@pytest.mark.parametrize("words", DIVERSIONS)
def test_another_program_is_told_once_and_runs_on(built: Built, words: str) -> None:
    words_on = f"{words} add add twice twice"
    plain, planned = built.run(words_on), built.run(words_on, PLAN)
    assert planned.out == plain.out
    assert planned.code == 0
    assert planned.said == [LEFT.format(DIVERSIONS[words])]
    assert not planned.calls("device")
    kernels = [n for n, b in enumerate(planned.books) if b.startswith("_Z")]
    assert not any(b.startswith(("prefetch", "evict")) for b in planned.books[kernels[1] :])


def test_a_plan_that_does_not_repeat_ends(built: Built) -> None:
    planned = built.run("add twice add", plan(TURNS[:2]))
    assert planned.out == built.run("add twice add").out
    assert planned.said == [LEFT.format(f"launch 3 is {ADD}, the plan ends before it")]


def test_advice_is_taken_back(built: Built) -> None:
    planned = built.run("add add", plan([(ADD, [act("far", "z")]), (TWICE, [])]))
    assert f"unset prefer 2 0 {SIZE} at -1" in planned.books
    assert planned.number("peak") == 2 * SIZE, "z comes near by faults again"


def test_nothing_is_asked_while_a_graph_is_captured(built: Built) -> None:
    text = plan([(ADD, [act("far", "z")]), (TWICE, BEFORE_TWICE)])
    planned = built.run("add capture twice2", text)
    assert len(planned.said) == 1
    assert planned.calls("unset", "evict", "prefetch") == []


def test_early_exit_says_nothing(built: Built) -> None:
    planned = built.run("add early twice", PLAN)
    assert (planned.out, planned.code, planned.said) == (*early(built), [])


def early(built: Built) -> tuple[str, int]:
    plain = built.run("add early twice")
    assert plain.code == 3
    return plain.out, plain.code


def test_an_object_that_is_freed_and_made_anew_is_the_same(built: Built) -> None:
    words = "add twice again add twice"
    planned = built.run(words, PLAN)
    assert (planned.out, planned.said) == (built.run(words).out, [])
    late = plan([(ADD, [act("far", "z"), act("evict", "z")]), (TWICE, []), (ADD, []), (TWICE, [])])
    assert built.run(words, late).calls("prefer", "evict") == [
        f"prefer 2 0 {SIZE} at -1",
        f"evict 2 0 {SIZE}",
        f"prefer 3 0 {SIZE} at -1",
    ]


# Errors


def test_the_programs_errors_are_its_own(built: Built) -> None:
    """An error before a launch with requests, and a launch that the runtime refuses."""
    for words in ("wrong error error", "add wrong twice more error error"):
        turns = [(ADD, BEFORE_ADD)] * (2 if words.startswith("add") else 1)
        planned = built.run(words, plan([*turns, (TWICE, BEFORE_TWICE)]))
        assert planned.out == built.run(words).out
        assert "error 9\nerror 9\nerror 0" in planned.out


@pytest.mark.parametrize("call", [1, 2, 5])
def test_a_request_that_fails_is_said_and_harms_nothing(built: Built, call: int) -> None:
    words = f"{WORDS} error"
    planned = built.run(words, PLAN, FAIL=f"cudaMemPrefetchAsync:{call}")
    assert planned.out == built.run(words).out
    assert "error 0\nerror 0\nerror 0" in planned.out
    verb = "prefetch x" if call == 5 else "evict x" if call == 1 else "prefetch y"
    assert planned.said == [
        LEFT.format(f"cudaErrorInvalidDevice: the plan's request ({verb}) failed")
    ]


def test_advice_that_cannot_be_taken_back_is_no_error_of_the_program(built: Built) -> None:
    words, text = "add more error", plan([(ADD, [act("far", "z")]), (TWICE, [])])
    planned = built.run(words, text, FAIL="cudaMemAdvise:3")
    assert planned.out == built.run(words).out
    assert planned.said == [LEFT.format("the program allocates 4096 bytes more than the plan has")]


def test_memory_that_cannot_be_managed_is_the_runtimes_own(built: Built) -> None:
    planned = built.run(f"{WORDS} error", PLAN, FAIL="cudaMallocManaged:2")
    assert planned.out == built.run(f"{WORDS} error").out
    assert planned.calls("device") == [f"device 1 {SIZE}"]
    why = f"cudaErrorMemoryAllocation: {SIZE} bytes cannot be managed"
    assert planned.said == [LEFT.format(why)]


# Plans that cannot be used

LINES = PLAN.splitlines()
NAMED = PLAN[PLAN.index("[") : PLAN.index("]") + 1]
MALFORMED: dict[str, tuple[str, str]] = {
    "empty": ("", "line 1: expected {, got ''"),
    "cut": ("\n".join(LINES[:5]), "line 5: expected {, got ''"),
    "not a plan": ('{"places": []}', 'line 1: expected "tidegate preload", got \'"places": []}\''),
    "other version": (PLAN.replace(": 1,", ": 2,", 1), "expected version 1 of plans, got '2,'"),
    "verb": (PLAN.replace('"evict"', '"erase"', 1), "expected prefetch, evict, far, anywhere or"),
    "object": (PLAN.replace('"evict", 0', '"evict", 3', 1), "expected the number of an object"),
    "no objects": (PLAN.replace(NAMED, "[]"), "expected an object before any request"),
    "beyond": (PLAN.replace(f"0, {SIZE}]", f"0, {SIZE + 1}]", 1), "a later byte of the object"),
    "backwards": (PLAN.replace(f"0, {SIZE}]", f"{SIZE}, 0]", 1), "a later byte of the object"),
    "negative": (PLAN.replace("0, 0,", "0, -1,", 1), "expected a byte of the object, got '-1,"),
    "fraction": (PLAN.replace(f": {SIZE}}}", ": 1.5}", 1), "expected at least one byte"),
    "overflow": (PLAN.replace(f": {SIZE}}}", f": {2**64 + 8}}}", 1), "expected at least one byte"),
    "zeros": (PLAN.replace(f": {SIZE}}}", ": 007}", 1), "expected at least one byte"),
    "again": (PLAN.replace('"again": 2', '"again": 3'), "no more launches than there are"),
    "trailing": (PLAN + "x", "expected the end of the file, got 'x'"),
    "open text": (PLAN.replace('"x"', '"x', 1).replace('"', "", 1), "expected"),
    "a line in a name": (PLAN.replace('"x"', '"x\n"', 1), "expected the end of a text"),
    "a last escape": (PLAN[: PLAN.index('"x"') + 2] + "\\", "expected the end of a text"),
    "nested": ("[" * 100_000, "line 1: expected {"),
    "nul": (PLAN.replace("x", "\0", 1), "is not text"),
}


@pytest.mark.parametrize("what", MALFORMED)
def test_a_malformed_plan_is_one_line_and_plain_managed_memory(built: Built, what: str) -> None:
    text, said = MALFORMED[what]
    planned = built.run(WORDS, text)
    assert planned.out == built.run(WORDS).out
    assert not planned.calls("device", "prefetch", "evict")
    assert len(planned.said) == 1
    assert said in planned.said[0]
    assert planned.said[0].startswith("tidegate: plan.json")


def test_any_text_may_say_what_a_plan_is_about(built: Built) -> None:
    sizes = {'a "name" \\': SIZE, "ü": SIZE, "\n": SIZE}
    planned = built.run("add", plan_text('"C:\\" \\', sizes, [(ADD, [])]))
    assert planned.said == []


def test_no_plan_or_another_runtime(built: Built) -> None:
    missing = built.run("add", PLAN, TIDEGATE_PLAN="nowhere.json")
    assert missing.said == [LEFT.format("nowhere.json cannot be opened")]
    folder = built.run("add", PLAN, TIDEGATE_PLAN=".")
    assert folder.said == [LEFT.format(". cannot be read")]
    other = built.run("add", PLAN, VERSION="11080")
    assert "the program runs with CUDA 11; build it again" in other.said[0]
    assert not other.calls("device", "prefetch")


EMPTY = "int main(void) { return 0; }"
LOADS = """#include <dlfcn.h>
int main(int count, char **given) {
  void *plugin = dlopen("./plugin.so", RTLD_NOW | RTLD_LOCAL);
  return plugin ? ((int (*)(int, char **))dlsym(plugin, "run"))(count, given) : 99;
}
"""


def test_a_runtime_that_cannot_be_seen_is_said(built: Built, tmp_path: Path) -> None:
    """With the driver loaded and no call seen, the runtime was linked statically."""
    (tmp_path / "empty.c").write_text(EMPTY)
    driver = tmp_path / "libcuda.so.1"
    empty, plain, static = (tmp_path / name for name in ("empty.c", "plain", "static"))
    build("-shared", "-fPIC", "-Wl,-soname,libcuda.so.1", empty, "-o", driver)
    build(empty, "-o", plain)
    build(empty, "-Wl,--no-as-needed", driver, f"-Wl,-rpath,{tmp_path}", "-o", static)
    loaded = {**os.environ, "LD_PRELOAD": str(built.folder / "preload.so")}
    said = [
        subprocess.run([p], env=loaded, capture_output=True, text=True, check=True).stderr
        for p in (plain, static)
    ]
    assert said[0] == ""
    assert said[1].startswith("tidegate: no call of the CUDA runtime was seen")
    assert "-cudart shared" in said[1]


def test_a_runtime_that_was_loaded_later_is_found(built: Built) -> None:
    """As in Python, whose modules load it for themselves only."""
    (built.folder / "loads.c").write_text(LOADS)
    runtime = built.folder / f"libcudart.so.{built.version}"
    own = [f"-I{HERE}", f"-DCUDART_VERSION={built.version}000", "-shared", "-fPIC", "-Dmain=run"]
    build(*own, HERE / "program.c", runtime, "-o", built.folder / "plugin.so", "-lpthread")
    build(built.folder / "loads.c", "-o", built.folder / "loads", "-ldl")
    planned = built.run(WORDS, PLAN, program="loads")
    assert (planned.out, planned.said) == (built.run(WORDS).out, [])
    assert order(planned) == (TEXT[ADD] + TEXT[TWICE]) * 4


@pytest.mark.slow
@pytest.mark.parametrize("sanitizer", ["address,undefined", "thread"])
def test_no_sanitizer_finds_anything(sanitizer: str, tmp_path: Path) -> None:
    """Malformed plans, every cut of a plan, threads and diversions."""
    options = [f"-fsanitize={sanitizer}", "-fno-sanitize-recover=all"]
    try:
        checked = Built(tmp_path, 12, options)
    except AssertionError as error:
        pytest.skip(f"no {sanitizer} sanitizer: {str(error)[:200]}")
    # the program is built with the sanitizer, so its runtime is there before the library
    quiet = {"ASAN_OPTIONS": "detect_leaks=0:verify_asan_link_order=0", "TSAN_OPTIONS": ""}
    texts = [text for text, _ in MALFORMED.values()]
    texts += [PLAN[:n] for n in range(0, len(PLAN), 7)] if "address" in sanitizer else []
    for text in texts:
        ran = checked.run("n=64 add", text, **quiet)
        assert (ran.code, len(ran.said)) == (0, 1), ran.said
    for words in (WORDS, "crowd", f"threads {WORDS}", "add1 twice2 destroy add1", *DIVERSIONS):
        ran = checked.run(words, PLAN, **quiet)
        assert (ran.code, len(ran.said) <= 1) == (0, True), ran.said


# The runtime's own headers and libraries


@pytest.mark.extra
@pytest.mark.parametrize("name", ["gcc", "clang-19"])
@pytest.mark.parametrize("wheel", ["nvidia/cuda_runtime", "nvidia/cu13"])
def test_it_compiles_with_the_headers_of_cuda_12_and_13(
    wheel: str, name: str, tmp_path: Path
) -> None:
    made = tmp_path / "preload.so"
    build(*cuda_headers(wheel), "-shared", "-fPIC", "-O2", SOURCE, "-o", made, name=name)
    assert made.stat().st_size > 0


@pytest.mark.extra
@pytest.mark.parametrize("wheel", ["nvidia/cuda_runtime", "nvidia/cu13"])
def test_every_wrapped_function_is_one_of_the_runtimes(wheel: str, tmp_path: Path) -> None:
    """It loads in programs without the runtime, too: it needs none of its functions."""
    headers = cuda_headers(wheel)
    folder = Path(headers[0].removeprefix("-I")).parent / "lib"
    runtime = next(folder.glob("libcudart.so.*"))
    made = tmp_path / "preload.so"
    build(*headers, "-shared", "-fPIC", SOURCE, "-o", made)
    listed = subprocess.run(["nm", "-D", made], capture_output=True, text=True, check=True)
    words = [line.split() for line in listed.stdout.splitlines()]
    wrapped = [w[2] for w in words if w[1] == "T"]
    assert {"cudaMalloc", "__cudaLaunchKernel", "cudaLaunchKernel_ptsz"} < set(wrapped)
    assert not [w[1] for w in words if w[0] == "U" and w[1].startswith(("cuda", "__cuda"))]
    known = ctypes.CDLL(str(runtime))
    assert [name for name in wrapped if not hasattr(known, name)] == []


ERRORS = """#include <cuda_runtime_api.h>
#include <stdio.h>
int main(void) {
  void *at = 0;
  for (int k = 0; k < 2; k++) {
    int made = cudaMalloc(&at, 4096), peeked = cudaPeekAtLastError(), last = cudaGetLastError();
    printf("%d %d %d %d\\n", made, peeked, last, cudaGetLastError());
  }
}
"""


@pytest.mark.extra
@pytest.mark.parametrize("wheel", ["nvidia/cuda_runtime", "nvidia/cu13"])
def test_without_a_gpu_the_errors_are_the_runtimes_own(wheel: str, tmp_path: Path) -> None:
    headers = cuda_headers(wheel)
    folder = Path(headers[0].removeprefix("-I")).parent / "lib"
    (tmp_path / "errors.c").write_text(ERRORS)
    program, made = tmp_path / "errors", tmp_path / "preload.so"
    runtime = next(folder.glob("libcudart.so.*"))
    build(*headers, tmp_path / "errors.c", runtime, f"-Wl,-rpath,{folder}", "-o", program)
    build(*headers, "-shared", "-fPIC", SOURCE, "-o", made)
    outs = [
        subprocess.run(
            [program], env={**os.environ, **more}, capture_output=True, text=True, check=True
        )
        for more in ({}, {"LD_PRELOAD": str(made)})
    ]
    if outs[0].stdout.startswith("0"):
        pytest.skip("there is a GPU: the call does not fail")
    assert outs[0].stdout == outs[1].stdout
    assert (
        outs[1].stderr == LEFT.format("TIDEGATE_PLAN is not set; set it to the plan's file") + "\n"
    )


# From a source to a run

# the program of program.c, as a person would write it
CUDA = """
#include <cstdio>
#include <cstdlib>
__global__ void add(double *a, const double *b, size_t n) {
  size_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) a[i] += b[i] + 1;
}
__global__ void twice(double *a, size_t n) {
  size_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) a[i] *= 2;
}
int main(int argc, char **argv) {
  size_t n = atol(argv[1]), bytes = n * sizeof(double);
  int repeat = atoi(argv[2]);
  double *h = (double *)malloc(bytes), *x, *y, *z;
  cudaMalloc(&x, bytes);
  cudaMalloc(&y, bytes);
  cudaMallocManaged(&z, bytes);
  cudaMemcpy(x, h, bytes, cudaMemcpyHostToDevice);
  for (int i = 0; i < repeat; i++) {
    add<<<(n + 255) / 256, 256>>>(y, z, n);
    twice<<<(n + 255) / 256, 256>>>(x, n);
  }
  add<<<(n + 255) / 256, 256>>>(y, x, n);
  cudaMemcpy(h, y, bytes, cudaMemcpyDeviceToHost);
  printf("%f\\n", h[0]);
  cudaFree(x), cudaFree(y), cudaFree(z);
}
"""
N, REPEAT, NEAR = 1 << 20, 6, 16 * MIB
MANY = f"n={N} " + "add twice " * REPEAT + "last"


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    cuda()
    made = tmp_path_factory.mktemp("source") / "program.cu"
    made.write_text(CUDA)
    return made


@pytest.mark.extra
@pytest.mark.parametrize("placement", ["rdm", "glm", "object-lru", "host", "prefetch-all"])
def test_each_placement_of_a_source_is_carried_out(
    built: Built, source: Path, placement: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(built.folder)
    sizes = ["--set", f"n={N}", "--set", f"repeat={REPEAT}", "--placement", placement]
    assert invoke(["plan", str(source), "--near", "16MiB", "--emit", "preload", *sizes]) == 0
    plain = built.run(MANY)
    planned = built.run(MANY, Path("program.plan.json").read_text())
    assert (planned.out, planned.said) == (plain.out, [])
    assert plain.number("peak") == 3 * 8 * N > NEAR
    if placement != "prefetch-all":  # which counts on the driver to make room
        assert planned.number("peak") <= NEAR
    fitting = built.run(f"n={N // 2} add", Path("program.plan.json").read_text())
    assert len(fitting.said) == 1


IDLE = """
  double *a, *b, *odd, *host;
  cudaMalloc(&a, bytes), cudaMalloc(&b, 64);
  cudaMallocHost(&host, 64);
"""


@pytest.mark.extra
def test_memory_that_no_kernel_uses_is_in_the_plan(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """But not what the library does not see, and what has no size that is known."""
    monkeypatch.chdir(tmp_path)
    idle = CUDA.replace("  cudaMalloc(&y", IDLE + "  cudaMalloc(&y")
    Path("idle.cu").write_text(
        idle.replace("  cudaFree", "  cudaMalloc(&odd, atoi(argv[3]));\n  cudaFree")
    )
    assert (
        invoke(["plan", "idle.cu", "--near", "16MiB", "--set", "n=1000", "--emit", "preload"]) == 0
    )
    data = json.loads(Path("idle.plan.json").read_text())
    assert [o["bytes"] for o in data["objects"]] == [8000, 8000, 64, 8000, 8000]
    assert [o["name"] for o in data["objects"]][::3] == ["x", "y"]
    save(model_of_files([Path("idle.cu")]), Path("model.json"))
    again = ["plan", "model.json", "--near", "16MiB", "--set", "n=1000", "--emit", "preload"]
    assert invoke([*again, "--out", "again"]) == 0
    assert json.loads(Path("again.plan.json").read_text()) == data


@pytest.mark.extra
def test_a_binary_of_clang_is_recognised(built: Built, source: Path, tmp_path: Path) -> None:
    """Kernels that clang registers have the names of the plan."""
    if built.version == 13:
        pytest.skip("clang 19 knows CUDA up to 12.3")
    plan_file, binary, code = tmp_path / "p.plan.json", tmp_path / "program", tmp_path / "none"
    sizes = ["--set", "n=1048576", "--set", "repeat=3", "--placement", "object-lru"]
    words = ["plan", str(source), "--near", "16MiB", "--emit", "preload", *sizes]
    assert invoke([*words, "--out", str(tmp_path / "p")]) == 0
    code.write_bytes(b"no code")
    options = ["-x", "cuda", f"--cuda-path={cuda()}", "--cuda-host-only", "-nocudalib", "-w"]
    with_code = ["-Xclang", "-fcuda-include-gpubinary", "-Xclang", code, "-c"]
    made = binary.with_suffix(".o")
    subprocess.run([clang_19(), *options, *with_code, source, "-o", made], check=True, timeout=300)
    runtime = built.folder / "libcudart.so.12"
    build(made, runtime, f"-Wl,-rpath,{built.folder}", "-o", binary)
    ran = built.run(f"{N} 3", plan_file.read_text(), program=str(binary), NAMES="1")
    assert (ran.code, ran.said) == (0, [])
    assert ran.calls("_Z") == [ADD, TWICE] * 3 + [ADD]
    assert ran.calls("prefetch", "evict")[:3] == [
        f"prefetch 1 0 {SIZE * 16}",
        f"prefetch 2 0 {SIZE * 16}",
        f"evict 1 0 {SIZE * 16}",
    ]


@pytest.mark.extra
def test_advice_writes_the_library_and_the_plan(
    source: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    words = ["advise", str(source), "--near", "16MiB", "--set", f"n={N}", "--emit", "preload"]
    assert invoke([*words, "--workers", "1"]) == 0
    said = capsys.readouterr().out
    assert said.startswith("written to program.plan.json, program.preload.c")
    assert "note: repeat = 32 was assumed" in said
    assert Path("program.preload.c").read_text() == Path(SOURCE).read_text()
    data = json.loads(Path("program.plan.json").read_text())
    assert [o["bytes"] for o in data["objects"]] == [8 * N] * 3
    assert {launch["kernel"] for launch in data["launches"]} == {ADD, TWICE}
    assert invoke([*words, "--workers", "1", "--out", "advice.html"]) == 0
    assert Path("advice.plan.json").read_text() == Path("program.plan.json").read_text()
    assert "advice.preload.c" in Path("advice.html").read_text()
