"""From a C, C++, CUDA or HIP file to its host and device IR, by the clang that is installed."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tidegate.errors import TidegateError
from tidegate.files import cache_folder

NEWEST, OLDEST = 22, 16
PACKAGES = "clang-19 llvm-19 libomp-19-dev clang-tools-19"
"""What to install with apt; clang-tools-19 holds the linker wrapper that offloading needs."""

TARGET = ("-fopenmp", "-fopenmp-targets=x86_64-pc-linux-gnu")
"""Offloading to the host itself: the same IR as for a GPU, and it needs none to run."""

C, CPLUSPLUS, CUDA, HIP = "c", "c++", "cuda", "hip"
LANGUAGES = {
    ".c": C,
    **dict.fromkeys((".cc", ".cpp", ".cxx", ".c++", ".C"), CPLUSPLUS),
    ".cu": CUDA,
    ".hip": HIP,
}
"""The language of a source by its suffix, as clang's -x takes it."""

_OFFLOADS = "!omp_offload.info"  # metadata of files with target regions
_FILES = re.compile(r'!DIFile\(filename: "([^"]+)", directory: "([^"]*)"')

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
# What older compilers let pass, clang refuses; the program is the same.
_FORGIVING = (
    *(f"-Wno-error={what}" for what in ("implicit-int", "implicit-function-declaration")),
    *(f"-Wno-error={what}" for what in ("int-conversion", "incompatible-function-pointer-types")),
    *(f"-Wno-error={what}" for what in ("c++11-narrowing", "reserved-user-defined-literal")),
)


@dataclass(frozen=True)
class Unit:
    """One source file and how its project compiles it."""

    source: Path
    options: tuple[str, ...] = ()
    language: str = ""  # as clang's -x takes it; "": by the suffix
    folder: Path | None = None  # where the options' relative paths begin

    @property
    def spoken(self) -> str:
        """The language that it is compiled as."""
        return self.language or LANGUAGES.get(self.source.suffix, "")


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


def compile_unit(unit: Unit, beside: str = "") -> tuple[str, str]:
    """Return the host's and the device's IR of one source file of a project, as text.

    The device's is "" if the file has nothing for it. `beside`: CUDA or HIP, if other files of the
    program are.
    """
    check_file(unit.source, "a C, C++, CUDA or HIP source file with kernels")
    clang = find_clang()
    if clang is None:
        raise TidegateError(
            f"no clang-{OLDEST} to clang-{NEWEST} to compile '{unit.source}' with; "
            f"install one (apt-get install {PACKAGES}) or give .ll files"
        )
    # Debug information of the host gives allocations the names of the variables that hold them.
    # Aliases would hide constructors from inlining.
    host = ["-g", "-Xclang", "-mno-constructor-aliases"]
    # Loops that set or copy memory stay loops, whose turns can be counted.
    device = ["--offload-device-only", "-mllvm", "-disable-loop-idiom-all"]
    if unit.spoken in _GPU:
        common = _GPU[unit.spoken]()
    elif beside:
        return _run(clang, unit, [*host, *_headers(unit, beside)]), ""
    else:
        common = list(TARGET)
    for_host = _run(clang, unit, [*common, "--offload-host-only", *host])
    if unit.spoken not in _GPU and not _has_device_code(for_host, unit):
        return for_host, ""
    return for_host, _run(clang, unit, [*common, *device])


def _headers(unit: Unit, beside: str) -> list[str]:
    """Return where a file of another language finds the headers of CUDA or HIP."""
    if unit.spoken != CPLUSPLUS:
        return []
    folder = cuda_folder() if beside == CUDA else rocm_folder()
    platform = ["-D__HIP_PLATFORM_AMD__"] if beside == HIP else []
    return ["-isystem", str(folder / "include"), *platform]


def _has_device_code(for_host: str, unit: Unit) -> bool:
    """Return whether a file has target regions, or it or a header of the project declares functions
    for the device: large projects have few such files, and each is compiled twice.
    """
    if _OFFLOADS in for_host:
        return True
    named = {Path(folder, name) for name, folder in _FILES.findall(for_host)} | {unit.source}
    own = (path for path in named if not str(path).startswith("/usr/") and path.is_file())
    return any(b"declare target" in path.read_bytes() for path in own)


def _cuda_options() -> list[str]:
    # Without NVIDIA's device library, mathematical functions stay calls, which access no memory.
    # clang forgets the version with it, and needs it for the syntax of launches.
    version = ["-Xclang", f"-target-sdk-version={VERSION}"]
    as_nvcc = ["-include", str(Path(__file__).with_name("nvcc.h"))]
    where = [f"--cuda-path={cuda_folder()}", "--cuda-gpu-arch=sm_70"]
    return ["-nocudalib", *version, *where, *as_nvcc]


def _hip_options() -> list[str]:
    return ["-nogpulib", f"--rocm-path={rocm_folder()}", "--offload-arch=gfx906"]


_GPU = {CUDA: _cuda_options, HIP: _hip_options}


def _run(clang: str, unit: Unit, options: list[str]) -> str:
    own = [option for option in _without_toolkits(unit) if is_for(option, unit.spoken)]
    spoken = ["-x", unit.spoken] if unit.language or unit.spoken in _GPU else []
    source = str(unit.source if unit.folder is None else unit.source.absolute())
    named = f"./{source}" if source.startswith("-") else source  # or it would be an option
    last = ["-S", "-emit-llvm", "-o", "-", *spoken, named]
    done = subprocess.run(
        [clang, *_PIPELINE, *_FORGIVING, *options, *own, *last],
        capture_output=True,
        text=True,
        check=False,
        cwd=unit.folder,
    )
    if done.returncode != 0:
        lines = done.stderr.strip().split("\n")
        first = next((line for line in lines if "error:" in line), lines[0])
        first = first.replace(str(unit.source.absolute()), str(unit.source))
        if remedy := _remedy(first):
            raise TidegateError(f"'{unit.source}' does not compile: {first}; {remedy}")
        command = f"{Path(clang).name} {f'-x {unit.spoken}' if unit.spoken in _GPU else '-fopenmp'}"
        raise TidegateError(
            f"'{unit.source}' does not compile: {first}; run {command} on it to see all"
        )
    return done.stdout


def _without_toolkits(unit: Unit) -> Iterator[str]:
    """Yield a unit's options without the folders of another CUDA's headers, which would come before
    those of the version that clang is told.
    """
    options = iter(unit.options)
    for option in options:
        value = next(options, "") if option in ("-I", "-isystem") else ""
        folder = (unit.folder or Path()) / (
            value or option.removeprefix("-isystem").removeprefix("-I")
        )
        if option.startswith(("-I", "-isystem")) and (folder / "cuda_runtime_api.h").is_file():
            continue
        yield from (option, value) if value else (option,)


# headers of the libraries, and the wheel that has each
_WHEEL_OF = {
    "cublas": "cublas",
    "cufft": "cufft",
    "curand": "curand",
    "cusparse": "cusparse",
    "cusolver": "cusolver",
    "nvrtc": "cuda-nvrtc",
    "nvtx3/": "nvtx",
    "nvToolsExt": "nvtx",
    "cuda_profiler_api": "cuda-profiler-api",
    "nvjpeg": "nvjpeg",
    "npp": "npp",
    "cupti": "cuda-cupti",
}
_CAUSES = {
    "no template named 'texture'": (
        "CUDA 12 has no texture references; set CUDA_PATH to a toolkit of CUDA 11"
    ),
    "__global__ function '": (
        "clang does not compile kernels that launch kernels (dynamic parallelism); "
        "launch them from the host, under a macro given with -D"
    ),
    "CUctxCreateParams": (
        "it needs CUDA 13, whose headers clang 19 does not compile; give a source for CUDA 12"
    ),
    "initialization is not supported for __shared__": (
        "clang does not compile shared variables with a constructor; leave them out with -D"
    ),
}


def _remedy(error: str) -> str:
    """Return what to do about an error of clang's, if its cause is known."""
    missing = re.search(r"'([^']+)' file not found", error)
    for start, wheel in _WHEEL_OF.items():
        if missing is not None and missing[1].startswith(start):
            return f"install its headers (pip install nvidia-{wheel}-cu12), or give -I"
    if missing is not None:
        return f"give the folder that has {missing[1]} with -I"
    return next((remedy for cause, remedy in _CAUSES.items() if cause in error), "")


def is_for(option: str, language: str) -> bool:
    """Return whether an option is for a language: clang refuses another language's standard.

    >>> is_for("-std=c++17", "c"), is_for("-std=c99", "c"), is_for("-DN=4", "c")
    (False, True, True)
    """
    if not option.startswith("-std="):
        return True
    return ("++" in option) == (language != C)


WHEELS = "nvidia-cuda-runtime-cu12 nvidia-cuda-nvcc-cu12 nvidia-cuda-cccl-cu12"
"""What to install with pip where there is no toolkit."""

VERSION = "12.3"
"""The newest version of CUDA that clang 19 knows whole."""

_PARTS = (  # folders of the wheels
    *("cuda_runtime", "cuda_nvcc", "cuda_cccl", "cuda_nvrtc", "cuda_profiler_api", "cuda_cupti"),
    *("cublas", "cufft", "curand", "cusparse", "cusolver", "nvtx", "nvjpeg", "npp"),
)
_UNKNOWN = 13000  # the first version that clang 19 cannot compile: its headers have moved
_DEFINED = re.compile(r"^#define CUDA_VERSION (\d+)", re.M)
STUB = "__device_stub__"
_MANGLED_STUB = re.compile(rf"(\d+){STUB}")
# clang's wrapper includes it whether or not a program uses random numbers
_ALWAYS_INCLUDED = "curand_mtgp32_kernel.h"


def kernel_of_stub(symbol: str) -> str:
    """Return the symbol of the kernel that a stub of the host launches.

    >>> kernel_of_stub("_Z18__device_stub__addPfi"), kernel_of_stub("__device_stub__add")
    ('_Z3addPfi', 'add')
    """
    shorter = _MANGLED_STUB.sub(lambda m: str(int(m[1]) - len(STUB)), symbol)
    return shorter.replace(STUB, "")


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
