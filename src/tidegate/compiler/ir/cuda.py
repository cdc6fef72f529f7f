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
_STUB = "__device_stub__"
_MANGLED_STUB = re.compile(rf"(\d+){_STUB}")
# clang's wrapper includes it whether or not a program uses random numbers
_ALWAYS_INCLUDED = "curand_mtgp32_kernel.h"


def is_stub(function: str) -> bool:
    """Return whether a function of the host is the one that launches a kernel."""
    return _STUB in function


def kernel_of_stub(symbol: str) -> str:
    """Return the symbol of the kernel that a stub of the host launches.

    >>> kernel_of_stub("_Z18__device_stub__addPfi"), kernel_of_stub("__device_stub__add")
    ('_Z3addPfi', 'add')
    """
    shorter = _MANGLED_STUB.sub(lambda m: str(int(m[1]) - len(_STUB)), symbol)
    return shorter.replace(_STUB, "")


def cuda_folder() -> Path:
    """Return a folder for clang's --cuda-path: CUDA_PATH, the toolkit's usual place, or NVIDIA's
    wheels. Raise an error that says what to install if there is none.
    """
    named = [os.environ[name] for name in ("CUDA_PATH", "CUDA_HOME") if name in os.environ]
    for folder in map(Path, [*named, "/usr/local/cuda", "/opt/cuda"]):
        if (folder / "include" / "cuda_runtime.h").is_file():
            return folder
    parts = _wheels()
    if "cuda_runtime" not in parts or "cuda_nvcc" not in parts:
        raise TidegateError(
            "no CUDA headers to compile CUDA sources with; install them "
            f"(pip install {' '.join(f'{w}=={VERSION}.*' for w in WHEELS.split())}), "
            "or set CUDA_PATH to a toolkit"
        )
    return _merged(parts)


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
