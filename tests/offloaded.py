"""The example programs of examples/openmp: arguments for tests, and runs on the host."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from tidegate.compiler.ir import clang

EXAMPLES = Path(__file__).parents[1] / "examples" / "openmp"
NAMES = ("backprop", "bfs", "cfd", "hotspot", "kmeans", "louvain", "nn", "srad")

# Small, and not the defaults, so that arguments matter; loops long enough to have a mean.
ARGUMENTS = {
    "backprop": ("64", "8", "2"),
    "bfs": ("600", "3"),
    "cfd": ("8",),
    "hotspot": ("16", "9"),
    "kmeans": ("300", "4", "3"),
    "louvain": ("512", "3"),
    "nn": ("100", "3"),
    "srad": ("12", "20", "6"),
}


@dataclass(frozen=True)
class RunOutput:
    """The output of a program."""

    objects: dict[str, int]
    launches: tuple[tuple[str, ...], ...]  # kernel region, then its objects
    checksum: str
    kernels: tuple[str, ...]  # launches in libomptarget's own output

    @property
    def functions(self) -> list[str]:
        return [region.split(":")[0] for region, *_ in self.launches]


def clang_19() -> str:
    """Return the compiler, or skip the test."""
    found = clang.find_clang()
    if found is None or not found.endswith("-19"):
        pytest.skip(
            f"clang-19 is not installed: apt-get install --no-install-recommends {clang.PACKAGES}"
        )
    return found


def cuda() -> Path:
    """Return the folder of CUDA's headers, or skip the test."""
    clang_19()
    from tidegate.compiler.ir.clang import cuda_folder
    from tidegate.errors import TidegateError

    try:
        return cuda_folder()
    except TidegateError as error:
        pytest.skip(str(error))


def run(binary: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a program offloaded to the host; fail if it cannot be."""
    folder = subprocess.run(
        [clang_19(), "-print-resource-dir"], capture_output=True, text=True, check=True
    )
    environment = {
        **os.environ,
        "LD_LIBRARY_PATH": str(Path(folder.stdout.strip()).parents[1]),
        "OMP_TARGET_OFFLOAD": "MANDATORY",
        "LIBOMPTARGET_INFO": "16",
        "OMP_NUM_THREADS": "2",
    }
    return subprocess.run(
        [binary, *arguments],
        capture_output=True,
        text=True,
        env=environment,
        timeout=300,
        check=False,
    )
