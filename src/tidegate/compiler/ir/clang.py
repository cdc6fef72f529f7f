"""From a C or C++ file to its host and device IR, by the clang that is installed."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tidegate.errors import TidegateError

NEWEST, OLDEST = 22, 16
PACKAGES = "clang-19 llvm-19 libomp-19-dev clang-tools-19"
"""What to install with apt; clang-tools-19 holds the linker wrapper that offloading needs."""

TARGET = ("-fopenmp", "-fopenmp-targets=x86_64-pc-linux-gnu")
"""Offloading to the host itself: the same IR as for a GPU, and it needs none to run."""

C, CPLUSPLUS, CUDA = "c", "c++", "cuda"
LANGUAGES = {".c": C, **dict.fromkeys((".cc", ".cpp", ".cxx", ".c++", ".C"), CPLUSPLUS)}
"""The language of a source by its suffix, as clang's -x takes it."""

# -O1 and nothing that multiplies loop bodies: localities are to be those of the program, not of the
# vectoriser.
_PIPELINE = (
    "-O1",
    "-fno-unroll-loops",
    "-fno-vectorize",
    "-fno-slp-vectorize",
    "-fno-discard-value-names",
    "-w",
)


@dataclass(frozen=True)
class Unit:
    """One source file and how its project compiles it."""

    source: Path
    options: tuple[str, ...] = ()
    language: str = ""  # as clang's -x takes it; "": by the suffix
    folder: Path | None = None  # where the options' relative paths begin


def find_clang() -> str | None:
    """Return the clang to use: 19, with which all of this was tried, or the newest known one."""
    versions = [19, *(v for v in range(NEWEST, OLDEST - 1, -1) if v != 19)]
    return next((found for v in versions if (found := shutil.which(f"clang-{v}"))), None)


def check_file(path: Path, wanted: str) -> None:
    """Raise an error unless the path is a file."""
    if not path.is_file():
        problem = "a folder is no file" if path.is_dir() else "no file"
        raise TidegateError(f"{problem}: '{path}'; give {wanted}")


def compile_ir(source: str | Path, options: Sequence[str] = ()) -> tuple[str, str]:
    """Return the host's and the device's IR of one source file, as text."""
    return compile_unit(Unit(Path(source), tuple(options)))


def compile_unit(unit: Unit) -> tuple[str, str]:
    """Return the host's and the device's IR of one source file of a project, as text."""
    check_file(unit.source, "a C or C++ source file with OpenMP target regions")
    clang = find_clang()
    if clang is None:
        raise TidegateError(
            f"no clang-{OLDEST} to clang-{NEWEST} to compile '{unit.source}' with; "
            f"install one (apt-get install {PACKAGES}) or give .ll files"
        )
    # Debug information of the host gives allocations the names of the variables that hold them.
    host = _run(clang, unit, ["--offload-host-only", "-g"])
    return host, _run(clang, unit, ["--offload-device-only"])


def _run(clang: str, unit: Unit, side: list[str]) -> str:
    language = unit.language or LANGUAGES.get(unit.source.suffix, "")
    own = [option for option in unit.options if _is_for(option, language)]
    spoken = ["-x", language] if unit.language else []
    # "--": the name of a file may begin with a dash
    last = ["-S", "-emit-llvm", "-o", "-", *spoken, "--", str(unit.source.absolute())]
    done = subprocess.run(
        [clang, *_PIPELINE, *TARGET, *side, *own, *last],
        capture_output=True,
        text=True,
        check=False,
        cwd=unit.folder,
    )
    if done.returncode != 0:
        lines = done.stderr.strip().split("\n")
        first = next((line for line in lines if "error:" in line), lines[0])
        raise TidegateError(
            f"'{unit.source}' does not compile: {first}; "
            f"run {Path(clang).name} -fopenmp on it to see all"
        )
    return done.stdout


def _is_for(option: str, language: str) -> bool:
    """Return whether an option is for a language: clang refuses another language's standard.

    >>> _is_for("-std=c++17", "c"), _is_for("-std=c99", "c"), _is_for("-DN=4", "c")
    (False, True, True)
    """
    if not option.startswith("-std="):
        return True
    return ("++" in option) == (language != C)
