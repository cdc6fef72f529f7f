"""tidegate doctor: what this machine can do, and how to get what is missing."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from tidegate.cli import output


@dataclass(frozen=True)
class Check:
    """One ability of the machine. ``remedy``: what to do if it is missing."""

    what: str
    found: str
    here: bool = True
    remedy: str = ""

    @property
    def todo(self) -> str:
        return "" if self.here else self.remedy


def doctor(as_json: output.AsJson = False, as_csv: output.AsCsv = False) -> None:
    """Show what this machine can do, and how to get what is missing.

    tidegate doctor
    """
    output.check(as_json, as_csv, None)
    findings = [finding for check in CHECKS for finding in check()]
    if as_json or as_csv:
        (output.print_json if as_json else output.print_csv)([asdict(f) for f in findings])
        return
    rows = [(f.what, f.found if f.here else f"no {f.found}".strip(), f.todo) for f in findings]
    output.print_table(["what", "found", "to get it"], rows, left=3)


def _python() -> Iterator[Check]:
    version = ".".join(map(str, sys.version_info[:3]))
    yield Check("Python", version, sys.version_info >= (3, 11), "install Python 3.11 or newer")
    cores = len(os.sched_getaffinity(0))
    yield Check("cores", f"{cores} of {os.cpu_count()}")


def _memory() -> Iterator[Check]:
    from tidegate.units import show_size

    pages, page = os.sysconf("SC_PHYS_PAGES"), os.sysconf("SC_PAGE_SIZE")
    yield Check("RAM", show_size(pages * page))
    limit = _cgroup_limit()
    yield Check(
        "memory cgroup",
        "no limit" if limit is None else f"limit {show_size(limit)}",
        Path("/sys/fs/cgroup").is_dir(),
        "only benchmarks of live memory need it: mount cgroup2",
    )


def _cgroup_limit() -> int | None:
    for name in ("memory.max", "memory/memory.limit_in_bytes"):
        try:
            said = (Path("/sys/fs/cgroup") / name).read_text().strip()
        except OSError:
            continue
        return int(said) if said.isdigit() and int(said) < 1 << 60 else None
    return None


def _live_memory() -> Iterator[Check]:
    from tidegate.errors import TidegateError
    from tidegate.live.transfer.userfault import Userfault

    try:
        opened, in_kernel = Userfault.open()
    except (TidegateError, OSError) as error:
        remedy = "setfacl -m u:USER:rw /dev/userfaultfd, or sysctl vm.unprivileged_userfaultfd=1"
        yield Check("live memory (userfaultfd)", str(error), False, remedy)
        return
    os.close(opened.fd)
    served = "all faults" if in_kernel else "not of system calls (docs/live.md, Access)"
    yield Check("live memory (userfaultfd)", f"Linux {os.uname().release}, {served}")


def _compilers() -> Iterator[Check]:
    from tidegate.compiler.ir.clang import cuda_folder, find_clang
    from tidegate.errors import TidegateError

    clang = find_clang()
    yield Check(
        "clang, for compile and plan", clang or "", clang is not None, "apt-get install clang-19"
    )
    try:
        yield Check("headers of CUDA", str(cuda_folder()))
    except (TidegateError, OSError):  # wheels' headers are merged in the cache folder
        yield Check("headers of CUDA", "", False, "pip install 'tidegate[cuda]'")


def _kernel() -> Iterator[Check]:
    from tidegate.driver.kernel import has_dummy_ops, missing

    why = missing()
    hooks = "" if why else f", {'with' if has_dummy_ops() else 'without'} bpf_dummy_ops"
    found = why if why else f"Linux {os.uname().release}{hooks}"
    what, _, remedy = found.partition("; ")
    yield Check("policies in the kernel (bpf), for emit --check", what, not why, remedy)


def _packages() -> Iterator[Check]:
    for package, purpose, extra in (
        ("torch", "record PyTorch programs", "torch"),
        ("triton", "record Triton kernels", "triton"),
        ("starlette", "show the page of tidegate studio", "studio"),
        ("scipy", "calibrate a machine file", "calibrate"),
        ("distributed", "run sweeps on a cluster", "cluster"),
        ("obstore", "store sweeps in object storage", "cluster"),
    ):
        there = importlib.util.find_spec(package) is not None
        found = importlib.metadata.version(package) if there else ""
        yield Check(f"{package}, to {purpose}", found, there, f"pip install 'tidegate[{extra}]'")


def _browser() -> Iterator[Check]:
    found = next(
        filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), ""
    )
    remedy = "apt-get install chromium; only tests of pages need it"
    yield Check("Chromium", found, bool(found), remedy)


def _cache() -> Iterator[Check]:
    from tidegate.cli.cached_files import held
    from tidegate.files import cache_folder
    from tidegate.units import show_size

    folder, size = cache_folder(), sum(h.bytes for h in held())
    above = next((p for p in (folder, *folder.parents) if p.exists()), folder)
    writable = above.is_dir() and os.access(above, os.W_OK)
    found = f"{folder}, {show_size(size)}"
    yield Check("cache", found, writable, "set TIDEGATE_CACHE to a folder that can be written")


CHECKS: tuple[Callable[[], Iterator[Check]], ...] = (
    _python,
    _memory,
    _cache,
    _live_memory,
    _compilers,
    _kernel,
    _packages,
    _browser,
)
