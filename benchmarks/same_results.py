"""``python -m benchmarks.same_results FOLDER``: do programs that check themselves give the same
results with the emitted OpenMP header?

Each OpenMP program in FOLDER is built twice, as it is and with the header of `tidegate plan --emit
openmp` included in every file, and both run on the host as an offload device, whose memory is its
own. What they print about their checks must be the same. The header puts the program under unified
shared memory; its functions are not called, since where they are to be called is the user's choice.

Programs for which `plan` refuses a header run with the bare directive instead, which shows whether
they had to be refused:

    $ python -m benchmarks.same_results HeCBench/src --only '*-omp' --sample 348 --wanted 20
"""

from __future__ import annotations

import argparse
import os
import random
import re
import resource
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from benchmarks.programs import is_wanted
from benchmarks.truth import CannotRun, arguments_of, call, smaller
from tidegate.compiler.ir.clang import TARGET, Unit, find_clang, is_for
from tidegate.compiler.project import units_of_project
from tidegate.errors import TidegateError

SAME, CHANGED = "same results", "CHANGED results"
REFUSED_RIGHTLY = "refused, and the directive alone changes results"
REFUSED_WITHOUT_NEED = "refused, and the directive alone changes nothing"
KINDS = (SAME, CHANGED, REFUSED_RIGHTLY, REFUSED_WITHOUT_NEED)
_VERDICT = re.compile(
    r"\b(pass(ed)?|fail(ed|ure)?|success\w*|(in)?correct|wrong|mismatch\w*|errors?)\b", re.I
)
_PASSED = re.compile(r"\b(pass(ed)?|success\w*|correct)\b", re.I)
_BARE = "#pragma omp requires unified_shared_memory\n"
_ATTEMPTS = 3
_REPEATS = 3


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.same_results", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", default="*-omp", help="a pattern of names")
    parser.add_argument("--sample", type=int, default=348, help="take so many, in random order")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--limit", type=int, default=20, help="seconds of processor time for a run")
    parser.add_argument("--wanted", type=int, default=20, help="stop when so many were compared")
    asked = parser.parse_args()
    folders = sorted(p for p in asked.folder.iterdir() if is_wanted(p, asked.only))
    folders = random.Random(asked.seed).sample(folders, min(asked.sample, len(folders)))
    counts: Counter[str] = Counter()
    with suppress(KeyboardInterrupt):
        for folder in (f for f in folders if checks_itself(f)):
            found = compared(folder, asked.limit)
            counts[found if found in KINDS else "not compared"] += 1
            print(f"{folder.name}: {found}", flush=True)
            if counts[SAME] + counts[CHANGED] >= asked.wanted:
                break
    for kind, count in counts.most_common():
        print(f"{count:4} {kind}")


def checks_itself(folder: Path) -> bool:
    """Return whether a program's sources print that a check was passed."""
    sources = (p for p in folder.rglob("*") if p.suffix in (".c", ".cpp", ".cc", ".cxx", ".h"))
    return any(re.search(rb'"[^"\n]*\bPASS', p.read_bytes()) for p in sources)


def compared(folder: Path, limit: int) -> str:
    """Return whether a program's results are the same with its header, or why it was not run."""
    with tempfile.TemporaryDirectory() as place:
        header = Path(place, "plan.h")
        refusal = _plan(folder, header)
        if refusal and "needs two copies" not in refusal:
            return f"not planned: {refusal}"
        if refusal:
            header.write_text(_BARE)
        try:
            before = built(folder, Path(place, "before"))
            after = built(folder, Path(place, "after"), ["-include", str(header)])
            verdicts, arguments = _first_results(folder, before, limit)
            changed = results(after, arguments, folder, limit) != verdicts
        except (CannotRun, TidegateError) as error:
            return f"not run: {error}"
    if refusal:
        return REFUSED_RIGHTLY if changed else REFUSED_WITHOUT_NEED
    return CHANGED if changed else SAME


def _plan(folder: Path, header: Path) -> str:
    """Write a program's header. Return why there is none; "" if there is."""
    words = ["plan", folder, "--near", "1GiB", "--emit", "openmp", "--out", header]
    command = [sys.executable, "-m", "tidegate", *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return "" if done.returncode == 0 else (done.stderr.strip().splitlines() or ["?"])[-1]


def built(folder: Path, place: Path, more: Sequence[str] = ()) -> Path:
    """Return a program built for the host as an offload device, with `more` options."""
    clang = find_clang() or "clang"
    place.mkdir()
    objects = []
    for n, unit in enumerate(units_of_project(folder)):
        objects.append(place / f"{n}.o")
        call([clang, *_options(unit), *more, unit.source.absolute(), "-c", "-o", objects[-1]])
    libraries = Path(call([clang, "-print-resource-dir"]).strip()).parents[1]
    linked = [*TARGET, f"-Wl,-rpath,{libraries}", *objects, "-lm", "-o", place / "program"]
    call([clang.replace("clang", "clang++"), *linked])
    return place / "program"


def _options(unit: Unit) -> list[str]:
    own = [option for option in unit.options if is_for(option, unit.spoken)]
    # paths of the project's options begin in its folder
    inside = [f"-working-directory={unit.folder}"] if unit.folder else []
    spoken = ["-x", unit.spoken] if unit.language else []
    return ["-O2", "-w", *TARGET, *inside, *own, *spoken]


def _first_results(folder: Path, program: Path, limit: int) -> tuple[list[str], list[str]]:
    """Return what a program prints about its checks, and arguments with which it ends in time."""
    arguments = _repeating_less(arguments_of(folder))
    for _ in range(_ATTEMPTS):
        with suppress(subprocess.TimeoutExpired):
            verdicts = results(program, arguments, folder, limit)
            if not any(map(_PASSED.search, verdicts)):
                raise CannotRun(f"no check is passed: {verdicts[:3]}")
            return verdicts, arguments
        arguments = [smaller(word) for word in arguments]
    raise CannotRun("takes too long")


def _repeating_less(arguments: list[str]) -> list[str]:
    """Return the arguments with a smaller last number, which mostly says how often to repeat.

    >>> _repeating_less(["graph.txt", "256", "1000"])
    ['graph.txt', '256', '3']
    """
    if not arguments or not arguments[-1].isdigit():
        return arguments
    return [*arguments[:-1], str(min(int(arguments[-1]), _REPEATS))]


def results(program: Path, arguments: Sequence[str], folder: Path, limit: int) -> list[str]:
    """Return the lines of a run that are about checks, and its exit code. A run that is stopped
    raises TimeoutExpired.
    """

    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 1))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

    done = subprocess.run(
        [program, *arguments],
        cwd=folder,
        env=os.environ | {"OMP_TARGET_OFFLOAD": "MANDATORY", "OMP_WAIT_POLICY": "passive"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        preexec_fn=limited,
        check=False,
    )
    if done.returncode in (-24, -9):  # SIGXCPU, SIGKILL
        raise subprocess.TimeoutExpired(str(program), limit)
    verdicts = [line for line in done.stdout.splitlines() if _VERDICT.search(line)]
    return [*verdicts, f"exit code {done.returncode}"]


if __name__ == "__main__":
    main()
