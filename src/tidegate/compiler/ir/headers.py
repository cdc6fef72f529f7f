"""CUDA and HIP: where the headers are, and how the host's IR names kernels.

clang needs one folder with all of CUDA's headers. An installed toolkit is one; NVIDIA's wheels have
them in several folders, which are linked into one.
"""

from __future__ import annotations

import hashlib
import os
import re
import sys
from contextlib import suppress
from pathlib import Path

from tidegate.errors import TidegateError
from tidegate.files import cache_folder

WHEELS = "nvidia-cuda-runtime-cu12 nvidia-cuda-nvcc-cu12 nvidia-cuda-cccl-cu12"
"""What to install with pip where there is no toolkit."""

VERSION = "12.3"
"""The newest version of CUDA that clang 19 knows whole."""

_PARTS = ("cuda_runtime", "cuda_nvcc", "cuda_cccl", "curand")  # folders of the wheels
_UNKNOWN = 13000  # the first version that clang 19 cannot compile: its headers have moved
_DEFINED = re.compile(r"^#define CUDA_VERSION (\d+)", re.M)
_STUB = "__device_stub__"
_MANGLED_STUB = re.compile(rf"(\d+){_STUB}")
# clang's wrapper includes it whether or not a program uses random numbers
_ALWAYS_INCLUDED = "curand_mtgp32_kernel.h"


def kernel_of_stub(symbol: str) -> str:
    """Return the symbol of the kernel that a stub of the host launches.

    >>> kernel_of_stub("_Z18__device_stub__addPfi"), kernel_of_stub("__device_stub__add")
    ('_Z3addPfi', 'add')
    """
    shorter = _MANGLED_STUB.sub(lambda m: str(int(m[1]) - len(_STUB)), symbol)
    return shorter.replace(_STUB, "")


def cuda_folder() -> Path:
    """Return a folder for clang's --cuda-path: CUDA_PATH, NVIDIA's wheels, or the toolkit's usual
    place. Raise an error that says what to install if there is none that clang knows.
    """
    named = [Path(os.environ[name]) for name in ("CUDA_PATH", "CUDA_HOME") if name in os.environ]
    parts = _wheels()
    if {"cuda_runtime", "cuda_nvcc"} <= parts.keys():
        named.append(_merged(parts))
    known = [*named, Path("/usr/local/cuda"), Path("/opt/cuda")]
    found = next((folder for folder in known if _is_usable(folder)), None)
    if found is None:
        raise TidegateError(
            "no headers of CUDA 12 to compile CUDA sources with; install them "
            f"(pip install {' '.join(f'{w}=={VERSION}.*' for w in WHEELS.split())}), "
            "or set CUDA_PATH to a toolkit"
        )
    return found


def _is_usable(folder: Path) -> bool:
    """Return whether a folder has CUDA's headers, of a version that clang can compile."""
    header = folder / "include" / "cuda.h"
    if not header.is_file():
        return False
    version = _DEFINED.search(header.read_text(errors="replace"))
    return version is not None and int(version[1]) < _UNKNOWN


def _wheels() -> dict[str, Path]:
    found: dict[str, Path] = {}
    for place in sys.path:
        for part in _PARTS:
            folder = Path(place, "nvidia", part)
            if (folder / "include").is_dir():
                found.setdefault(part, folder)
    return found


def _merged(parts: dict[str, Path]) -> Path:
    """Return a folder whose include has links to the headers of all parts."""
    named = hashlib.sha256(repr(sorted(parts.items())).encode()).hexdigest()[:16]
    folder = cache_folder() / f"cuda-{named}"
    include = folder / "include"
    include.mkdir(parents=True, exist_ok=True)
    (folder / "bin").mkdir(exist_ok=True)  # clang takes no folder without it for CUDA
    for part in parts.values():
        for header in (part / "include").iterdir():
            with suppress(FileExistsError):
                (include / header.name).symlink_to(header)
    if not (include / _ALWAYS_INCLUDED).exists():
        (include / _ALWAYS_INCLUDED).write_text("/* of cuRAND, which is not installed */\n")
    return folder


PACKAGE = "libamdhip64-dev"
"""What to install with apt where there is no ROCm."""


def rocm_folder() -> Path:
    """Return a folder for clang's --rocm-path: ROCM_PATH, ROCm's usual place, or the system's.
    Raise an error that says what to install if there is none.
    """
    named = [Path(os.environ[name]) for name in ("ROCM_PATH", "ROCM_HOME") if name in os.environ]
    known = [*named, Path("/opt/rocm"), Path("/usr")]
    found = next((x for x in known if (x / "include" / "hip" / "hip_runtime.h").is_file()), None)
    if found is None:
        raise TidegateError(
            "no headers of HIP to compile HIP sources with; install them "
            f"(apt-get install {PACKAGE}), or set ROCM_PATH to a ROCm"
        )
    return found
