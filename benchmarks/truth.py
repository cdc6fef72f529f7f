"""What an OpenMP program really does: build it for the host, instrumented, and run it.

    build   the host's IR before optimisation ──▶ marks where kernels begin and end ──▶ clang, which
            makes every load and store a call ──▶ linked with truth_log.c
    run     as the Makefile's `run` says, until it ends or its processor time is over
    read    the log: launches, their arguments, touched pages

Regions run on the host, one thread at a time where the program leaves it open.
"""

from __future__ import annotations

import os
import re
import resource
import shlex
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tidegate.compiler.ir.clang import TARGET, Unit, find_clang, is_for
from tidegate.compiler.project import units_of_project

_RUNTIME = Path(__file__).with_name("truth_log.c")
_KERNEL = re.compile(
    r"^(define [^@\n]*)@(__omp_offloading_[^.(\s]+_l\d+(?:_\d+)?)(\([^\n]*)\{\n"
    r"((?:[^}\n][^\n]*\n|\n)*)\}$",
    re.M,
)
_COPY = re.compile(
    r"^( +)(call void @llvm\.mem(?:cpy|move)\.p0\.p0\.i64\(ptr [^%@,]*([%@][^\s,]+), "
    r"ptr [^%@,]*([%@][^\s,]+), i64 ([^\s,]+),)",
    re.M,
)
_FILL = re.compile(
    r"^( +)(call void @llvm\.memset\.p0\.i64\(ptr [^%@,]*([%@][^\s,]+), i8 [^,]+, i64 ([^\s,]+),)",
    re.M,
)
_ATOMIC = re.compile(
    r"^( +)((?:%[^\s]+ = )?(?:atomicrmw (?:volatile )?\w+|cmpxchg (?:weak )?(?:volatile )?) ?"
    r"ptr ([%@][^\s,]+),)",
    re.M,
)
_DECLARED = """
declare void @tidegate_enter()
declare void @tidegate_leave(ptr)
declare void @tidegate_copied(ptr, ptr, i64)
declare void @tidegate_filled(ptr, i64)
declare void @tidegate_updated(ptr)
"""
_OPTIMISED = ("-O1", "-fno-unroll-loops", "-fno-vectorize", "-fno-slp-vectorize", "-w")
_COVERED = (
    "-fsanitize-coverage=func,trace-loads,trace-stores",
    *("-mllvm", "-disable-loop-idiom-all"),  # loops that copy stay loops, whose accesses count
)
_BUILD_SECONDS = 120
_ATTEMPTS = 3


class CannotRun(Exception):
    """A program cannot be built or run here; the text says why."""


@dataclass
class LoggedLaunch:
    """One launch of a run."""

    kernel: str
    trips: int  # 0: not passed by the host
    arguments: dict[int, int | str]  # number → object on the heap, or a global's name
    touched: dict[int, tuple[int, int, bool]]  # object → pages touched, all its pages, written


@dataclass
class Log:
    """A run. Objects are numbered; each has the chain of calls that made it, innermost first."""

    whole: bool  # the program ended by itself
    arguments: list[str]  # of the command
    sites: dict[int, tuple[int, ...]] = field(default_factory=dict)  # addresses
    sizes: dict[int, int] = field(default_factory=dict)
    lines: dict[tuple[int, ...], frozenset[int]] = field(default_factory=dict)
    launches: list[LoggedLaunch] = field(default_factory=list)


def log_of(folder: Path, limit: int, place: Path) -> Log:
    """Return what a program does in a run of so many seconds of processor time."""
    binary = build(folder, place)
    arguments = arguments_of(folder)
    for _ in range(_ATTEMPTS):
        path = place / "log"
        code = _run(binary, arguments, folder, limit, path)
        log = read(path, Log(code == 0, arguments)) if path.exists() else Log(False, arguments)
        smaller = [smaller(word) for word in arguments]
        if log.launches or smaller == arguments:
            break
        arguments = smaller
    if not log.launches:
        raise CannotRun(f"no launch was logged, exit code {code}")
    _find_lines(binary, log)
    _name_globals(binary, log)
    return log


def smaller(argument: str) -> str:
    """Return a tenth of a large number: no launch came in time with it.

    >>> smaller("8192"), smaller("100"), smaller("graph.txt")
    ('819', '100', 'graph.txt')
    """
    return str(int(argument) // 10) if argument.isdigit() and int(argument) >= 500 else argument


def build(folder: Path, place: Path) -> Path:
    """Return the instrumented program."""
    clang = find_clang() or "clang"
    units = units_of_project(folder)
    objects = [_object(clang, unit, place / f"{n}") for n, unit in enumerate(units)]
    runtime = place / "log.o"
    call([clang, "-O2", "-fno-builtin", "-fno-omit-frame-pointer", "-c", _RUNTIME, "-o", runtime])
    libraries = Path(call([clang, "-print-resource-dir"]).strip()).parents[1]
    linked = ["-no-pie", "-o", place / "program", *objects, runtime, f"-L{libraries}"]
    call(
        [f"{clang.replace('clang', 'clang++')}", *linked, f"-Wl,-rpath,{libraries}", "-lomp", "-lm"]
    )
    return place / "program"


def _object(clang: str, unit: Unit, place: Path) -> Path:
    plain, marked, made = (place.with_suffix(s) for s in (".ll", ".marked.ll", ".o"))
    spoken = ["-x", unit.spoken] if unit.language else []
    own = [option for option in unit.options if is_for(option, unit.spoken)]
    lines = ["-gline-tables-only", "-gdwarf-4", "-fno-omit-frame-pointer"]
    # the calls of the model, one by one, and each with a frame
    lines += ["-Xclang", "-mno-constructor-aliases", "-fno-optimize-sibling-calls"]
    as_ir = ["--offload-host-only", "-Xclang", "-disable-llvm-passes", "-S", "-emit-llvm"]
    options = [*_OPTIMISED, *TARGET, *lines, *as_ir, *own, *spoken]
    call([clang, *options, unit.source.absolute(), "-o", plain], unit.folder)
    marked.write_text(mark(plain.read_text()))
    call([clang, *_OPTIMISED, lines[2], *_COVERED, "-c", marked, "-o", made])
    return made


def mark(text: str) -> str:
    """Return IR in which kernels say that they begin and end, and what they copy, fill and update
    is logged.
    """
    names: list[str] = []

    def marked(kernel: re.Match[str]) -> str:
        head, name, rest, code = kernel.groups()
        names.append(name)
        leave = f"call void @tidegate_leave(ptr @.tidegate.{name})"
        code = re.sub(r"^(\w+:.*\n)?", r"\g<0>  call void @tidegate_enter()\n", code, count=1)
        code = re.sub(r"^  ret void", f"  {leave}\n  ret void", code, flags=re.M)
        return f"{head}@{name}{rest}{{\n{code}}}"

    text = _KERNEL.sub(marked, text)
    text = _COPY.sub(r"\1call void @tidegate_copied(ptr \3, ptr \4, i64 \5)\n\1\2", text)
    text = _FILL.sub(r"\1call void @tidegate_filled(ptr \3, i64 \4)\n\1\2", text)
    text = _ATOMIC.sub(r"\1call void @tidegate_updated(ptr \3)\n\1\2", text)
    strings = (
        f'@.tidegate.{name} = private constant [{len(name) + 1} x i8] c"{name}\\00"\n'
        for name in dict.fromkeys(names)
    )
    return text + "".join(strings) + _DECLARED


def arguments_of(folder: Path) -> list[str]:
    """Return the arguments of the first run of the program in the Makefile's `run`."""
    asked = ["make", "--dry-run", "--always-make", "-C", str(folder), "run", "LAUNCHER="]
    done = subprocess.run(asked, capture_output=True, text=True, check=False)
    for line in done.stdout.replace("\\\n", " ").splitlines():
        found = re.match(r"^\s*(?:\w+=\S+ )*\./\S+(.*)$", line)
        if found and " -o " not in line:
            return shlex.split(re.split(r"[|>;&]", found[1])[0])
    return []


def _run(binary: Path, arguments: Sequence[str], folder: Path, limit: int, log: Path) -> int:
    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 1))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

    alone = {"OMP_NUM_THREADS": "1", "LIBOMP_USE_HIDDEN_HELPER_TASK": "0"}
    alone |= {"OMP_WAIT_POLICY": "passive", "TIDEGATE_TRUTH": str(log)}
    try:
        done = subprocess.run(
            [binary, *arguments],
            cwd=folder,
            env=os.environ | alone,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            preexec_fn=limited,
            timeout=10 * limit,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return -1
    return done.returncode


def read(path: Path, log: Log) -> Log:
    """Return the log with what a file says."""
    for line in path.read_text(errors="replace").splitlines():
        words = line.split(" ")
        if words[0] == "O" and len(words) == 4:
            number = int(words[1])
            log.sites[number] = tuple(map(int, words[2].split(",")))
            log.sizes[number] = int(words[3])
        elif words[0] == "L" and len(words) == 5:
            log.launches.append(_launch(*words[1:]))
    return log


def _launch(kernel: str, trips: str, arguments: str, touched: str) -> LoggedLaunch:
    given: dict[int, int | str] = {}
    for number, value in _pairs(arguments):
        given[int(number)] = value if value.startswith("@") else int(value)
    pages = {}
    for number, value in _pairs(touched):
        some, of, written = map(int, value.split(":"))
        pages[int(number)] = (some, of, bool(written))
    return LoggedLaunch(kernel, int(trips), given, pages)


def _pairs(text: str) -> Iterator[tuple[str, str]]:
    for pair in text.split(",") if text != "-" else ():
        first, _, rest = pair.partition(":")
        yield first, rest


def _find_lines(binary: Path, log: Log) -> None:
    """Set, for each chain of calls, the lines of the source on it."""
    addresses = sorted({a for site in log.sites.values() for a in site if a})
    command = ["addr2line", "-i", "-a", "-e", str(binary)]
    asked = "".join(f"{a:#x}\n" for a in addresses)
    done = subprocess.run(command, input=asked, capture_output=True, text=True, check=False)
    lines: dict[int, list[int]] = {}
    for text in done.stdout.splitlines():
        if text.startswith("0x"):
            here = lines.setdefault(int(text, 16), [])
        elif found := re.search(r":(\d+)", text):
            here.append(int(found[1]))
    for site in set(log.sites.values()):
        log.lines[site] = frozenset(n for a in site for n in lines.get(a, ()))


def _name_globals(binary: Path, log: Log) -> None:
    """Replace the addresses of globals among the arguments by their names."""
    named = [line.split() for line in call(["nm", "-n", str(binary)]).splitlines()]
    symbols = [(int(w[0], 16), w[2]) for w in named if len(w) == 3 and w[1] in "bBdDrRuVG"]
    for launch in log.launches:
        for number, value in launch.arguments.items():
            if isinstance(value, str):
                at = int(value[1:])
                before = [name for address, name in symbols if address <= at]
                launch.arguments[number] = before[-1] if before else value


def call(command: Sequence[object], folder: Path | None = None) -> str:
    words = [str(word) for word in command]
    try:
        done = subprocess.run(
            words, capture_output=True, text=True, cwd=folder, check=False, timeout=_BUILD_SECONDS
        )
    except subprocess.TimeoutExpired:
        raise CannotRun("takes too long to build") from None
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines() or [""]
        error = next((line for line in lines if "error" in line or "undefined" in line), lines[0])
        raise CannotRun(f"does not build: {error}")
    return done.stdout
