"""``python -m benchmarks.programs FOLDER``: what the compiler makes of programs nobody here wrote.

Each folder in FOLDER that has a Makefile or a compile_commands.json is a program. Every program is
compiled and planned by a process of its own, with a limit on its processor time. The table says how
many give a model, and why the others give none:

    $ python -m benchmarks.programs HeCBench/src --only '*-omp' --results omp.jsonl

``--results`` keeps a line for each program; programs that are already there are not run again.
Ctrl-C ends the run early, with the table of what was done.
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import os
import random
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.agreement import KINDS, agreement
from benchmarks.truth import CannotRun, log_of
from tidegate.compiler.model_file import load

MODEL, REFUSED, TIMEOUT, ABORT = "model", "refused", "timeout", "abort"
_LONGEST = 20  # times the limit by the clock: the machine may be busy


@dataclass
class Outcome:
    """What became of one program."""

    program: str
    outcome: str
    seconds: float  # of processor time, clang's included
    cause: str = ""  # of a refusal, an abort
    facts: dict[str, Any] = field(default_factory=dict)
    plan: str = ""  # how planning ended: "" if there was nothing to be planned
    plan_seconds: float = 0.0
    header: str = ""  # "" if the emitted header compiles, else the first error
    truth: dict[str, Any] = field(default_factory=dict)  # of a logged run, or why there is none


def main() -> None:
    asked = _arguments()
    folders = sorted(p for p in asked.folder.iterdir() if is_wanted(p, asked.only))
    if asked.sample:  # in random order, so that those done when it is interrupted are a sample, too
        folders = random.Random(asked.seed).sample(folders, min(asked.sample, len(folders)))
    outcomes: list[Outcome] = []
    with suppress(KeyboardInterrupt):
        _examine_all(folders, asked, outcomes)
    for table in tables(outcomes, asked.limit):
        Console(width=110).print(table)


def _examine_all(folders: list[Path], asked: argparse.Namespace, outcomes: list[Outcome]) -> None:
    known = _known(asked.results)
    for n, folder in enumerate(folders, 1):
        if folder.name not in known:
            known[folder.name] = examine(folder, asked.limit, asked.plan, asked.truth)
            if asked.results:
                with asked.results.open("a") as file:
                    file.write(json.dumps(asdict(known[folder.name])) + "\n")
        outcomes.append(known[folder.name])
        if sys.stderr.isatty():
            print(f"\r{n} of {len(folders)} {folder.name:40}", end="", file=sys.stderr)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.programs", description=__doc__)
    parser.add_argument("folder", type=Path, help="a folder of programs, each a folder of its own")
    parser.add_argument("--only", default="*", help="a pattern of names, such as '*-omp'")
    parser.add_argument("--sample", type=int, help="take so many of them, at random")
    parser.add_argument("--seed", type=int, default=1, help="of the sample")
    parser.add_argument("--limit", type=int, default=30, help="seconds of processor time for each")
    parser.add_argument("--plan", action="store_true", help="plan them, too; compile the headers")
    parser.add_argument(
        "--truth",
        type=int,
        nargs="?",
        const=5,
        default=0,
        metavar="SECONDS",
        help="run them, too (OpenMP, on the host), so long, and compare: launches, touched pages",
    )
    parser.add_argument("--results", type=Path, help="a file to keep results in, and to resume")
    return parser.parse_args()


def is_wanted(folder: Path, pattern: str) -> bool:
    names = ("Makefile", "makefile", "GNUmakefile", "compile_commands.json")
    return fnmatch.fnmatch(folder.name, pattern) and any((folder / n).is_file() for n in names)


def _known(results: Path | None) -> dict[str, Outcome]:
    if results is None or not results.exists():
        return {}
    found = (Outcome(**json.loads(line)) for line in results.read_text().splitlines())
    return {outcome.program: outcome for outcome in found}


def examine(folder: Path, limit: int, planned: bool, truth: int = 0) -> Outcome:
    """Return what becomes of one program."""
    with tempfile.TemporaryDirectory() as place:
        saved = Path(place, "model.json")
        code, said, seconds = _tidegate(limit, "compile", folder, "--out", saved, "--json")
        found = _outcome(folder.name, code, said, seconds)
        if found.outcome == MODEL:
            data = json.loads(saved.read_text())
            found.facts = facts(data)
            if planned:
                _plan(found, saved, Path(place), limit)
            if truth:
                found.truth = _truth(folder, saved, truth, Path(place))
    return found


def _truth(folder: Path, saved: Path, seconds: int, place: Path) -> dict[str, Any]:
    """Return how the model agrees with a run of so many seconds."""
    try:
        log = log_of(folder, seconds, place)
    except CannotRun as error:
        return {"not run": str(error)}
    found = agreement(load(saved), log)
    return {"whole": log.whole, "launches": len(log.launches), **asdict(found)}


def _tidegate(limit: int, *words: object) -> tuple[int | None, str, float]:
    """Return the exit code (None: stopped at the limit), the errors and the processor time."""

    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 1))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-m", "tidegate", *map(str, words)]
    try:
        done = subprocess.run(
            command,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            preexec_fn=limited,
            timeout=_LONGEST * limit,
            check=False,
        )
        code, said = done.returncode, done.stderr
    except subprocess.TimeoutExpired:
        code, said = None, ""
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    stopped = code in (-24, -9) or (seconds >= limit and code != 0)  # SIGXCPU, SIGKILL
    return None if stopped else code, said, seconds


def _outcome(name: str, code: int | None, said: str, seconds: float) -> Outcome:
    if code is None:
        return Outcome(name, TIMEOUT, seconds)
    if code == 0:
        return Outcome(name, MODEL, seconds)
    last = (said.strip().splitlines() or [""])[-1]
    if code == 2 and "Traceback" not in said:
        return Outcome(name, REFUSED, seconds, last)
    return Outcome(name, ABORT, seconds, f"exit code {code}: {last}")


def facts(data: dict[str, Any]) -> dict[str, Any]:
    """Return what the model leaves open, in numbers."""
    launches = data["launches"]
    return {
        "places": len(launches),
        "without iterations": sum(x["trip_count"] is None for x in launches),
        "without accesses": sum(not any(u["locality"] for u in x["uses"]) for x in launches),
        "arguments": sum(len(x["arguments"]) for x in launches),
        "not traced": sum(not a["objects"] for x in launches for a in x["arguments"]),
        "objects": len(data["objects"]),
    }


def _plan(found: Outcome, model: Path, place: Path, limit: int) -> None:
    header = place / "plan.h"
    words = ("--near", "1GiB", "--emit", "openmp", "--out", header)
    code, said, found.plan_seconds = _tidegate(limit, "plan", model, *words)
    planned = _outcome(found.program, code, said, found.plan_seconds)
    found.plan = "planned" if planned.outcome == MODEL else f"{planned.outcome}: {planned.cause}"
    if header.exists():
        text = header.read_text()
        found.facts["places planned"] = len(
            re.findall(r"^static inline void tidegate_before", text, re.M)
        )
        found.header = _compiled(header)


def _compiled(header: Path) -> str:
    """Return the first error of an emitted header; "" if it compiles."""
    from tidegate.compiler.ir.clang import find_clang

    command = [find_clang() or "clang", "-fopenmp", "-fsyntax-only", "-x", "c++", "-w", str(header)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    errors = (line for line in done.stderr.splitlines() if "error:" in line)
    return "" if done.returncode == 0 else next(errors, "does not compile")


def tables(outcomes: list[Outcome], limit: int) -> Iterator[Table]:
    """Yield the tables: outcomes, causes, what models leave open, and the slowest programs."""
    total = len(outcomes) or 1
    by_outcome = Counter(o.outcome for o in outcomes)
    table = Table("outcome", "programs", "share", title=f"{len(outcomes)} programs, {limit} s each")
    for name in (MODEL, REFUSED, TIMEOUT, ABORT):
        table.add_row(name, str(by_outcome[name]), f"{by_outcome[name] / total:.1%}")
    yield table
    causes = Table("why not", "programs", "such as")
    failed = [o for o in outcomes if o.outcome in (REFUSED, ABORT)]
    for cause, count in Counter(_kind(o.cause) for o in failed).most_common():
        such = ", ".join(o.program for o in failed if _kind(o.cause) == cause)
        causes.add_row(cause, str(count), such[:60])
    if failed:
        yield causes
    if stopped := [o.program for o in outcomes if o.outcome == TIMEOUT]:
        yield Table(f"stopped at {limit} s: {', '.join(stopped)}")
    yield _open_questions([o for o in outcomes if o.outcome == MODEL])
    if run := [o.truth for o in outcomes if o.truth]:
        yield _agreement(run)
    slow = Table("slowest", "processor time")
    for o in sorted(outcomes, key=lambda o: -o.seconds)[:8]:
        slow.add_row(o.program, f"{o.seconds:.1f} s")
    slow.add_row("all", f"{sum(o.seconds for o in outcomes):.0f} s")
    yield slow


def _agreement(run: list[dict[str, Any]]) -> Table:
    logged = [truth for truth in run if "not run" not in truth]
    table = Table("of the logged", "right", "of", "share", title=f"{len(logged)} programs were run")
    for kind in KINDS:
        right, of = (sum(truth[what][kind] for truth in logged) for what in ("right", "of"))
        table.add_row(kind, str(right), str(of), f"{right / (of or 1):.1%}")
    for cause, count in Counter(_kind(t["not run"]) for t in run if "not run" in t).most_common(5):
        table.add_row(f"not run: {cause}", str(count))
    return table


def _open_questions(models: list[Outcome]) -> Table:
    table = Table("of the models", "programs", "in all")
    for name in ("places", "without iterations", "without accesses", "arguments", "not traced"):
        counts = [o.facts.get(name, 0) for o in models]
        table.add_row(name, str(sum(n > 0 for n in counts)), str(sum(counts)))
    if any(o.plan for o in models):
        planned = [o for o in models if o.plan == "planned"]
        missing = [o.facts["places"] - o.facts["places planned"] for o in planned]
        table.add_row("planned", str(len(planned)), "")
        table.add_row(
            "launch places not planned", str(sum(n > 0 for n in missing)), str(sum(missing))
        )
        table.add_row("headers that do not compile", str(sum(bool(o.header) for o in planned)), "")
        for plan, count in Counter(_kind(o.plan) for o in models if o.plan != "planned").items():
            table.add_row(f"not planned, {plan}", str(count), "")
    return table


def _kind(cause: str) -> str:
    """Return a message without names and numbers, so that like causes count together."""
    plain = re.sub(r"'[^']*'|\S*/\S*|\d+", "…", cause.removeprefix("tidegate: "))
    return plain.split(":")[0][:80] if "does not compile" in plain else plain[:100]


if __name__ == "__main__":
    os.environ.setdefault("COLUMNS", "120")
    began = time.monotonic()
    main()
    print(f"{time.monotonic() - began:.0f} s by the clock")
