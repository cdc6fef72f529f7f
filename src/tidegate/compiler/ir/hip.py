"""HIP: where the headers are."""

from __future__ import annotations

import os
from pathlib import Path

from tidegate.errors import TidegateError

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
