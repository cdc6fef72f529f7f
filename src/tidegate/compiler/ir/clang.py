"""From a C or C++ file to its host and device IR, by the clang that is installed."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from tidegate.errors import TidegateError

NEWEST, OLDEST = 22, 16
PACKAGES = "clang-19 llvm-19 libomp-19-dev clang-tools-19"
"""What to install with apt; clang-tools-19 holds the linker wrapper that offloading needs."""

TARGET = ("-fopenmp", "-fopenmp-targets=x86_64-pc-linux-gnu")
"""Offloading to the host itself: the same IR as for a GPU, and it needs none to run."""

# -O1 and nothing that multiplies loop bodies: localities are to be those of the program, not of the
# vectoriser.
_PIPELINE = (
    "-O1",
    "-fno-unroll-loops",
    "-fno-vectorize",
    "-fno-slp-vectorize",
    "-fno-discard-value-names",
)


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
    path = Path(source)
    check_file(path, "a C or C++ source file with OpenMP target regions")
    clang = find_clang()
    if clang is None:
        raise TidegateError(
            f"no clang-{OLDEST} to clang-{NEWEST} to compile '{path}' with; "
            f"install one (apt-get install {PACKAGES}) or give .ll files"
        )
    # Debug information of the host gives allocations the names of the variables that hold them.
    host = _run(clang, path, ["--offload-host-only", "-g", *options])
    return host, _run(clang, path, ["--offload-device-only", *options])


def _run(clang: str, path: Path, options: list[str]) -> str:
    command = [clang, *_PIPELINE, *TARGET, *options, "-S", "-emit-llvm", "-o", "-", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        lines = done.stderr.strip().split("\n")
        first = next((line for line in lines if "error:" in line), lines[0])
        raise TidegateError(
            f"'{path}' does not compile: {first}; run {Path(clang).name} -fopenmp on it to see all"
        )
    return done.stdout
