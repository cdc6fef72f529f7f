"""``python -m benchmarks.live_patterns``: many access patterns on live memory against np.memmap.

Each measurement is a process of its own in a memory cgroup (version 1, which needs root): memmap's
holds near memory and nothing more, an arena's near memory and what docs/live-limits.md promises
beside it. The peak of each is printed, so that one sees that the limits hold. ``--throttle`` holds
the disk to 300 MB/s.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.live import THROTTLE, _cgroup, _forget_cached
from tidegate.live import Arena

NEAR = 64 << 20
BYTES = NEAR * 3 // 2
BESIDE = 160 << 20  # bytes of the pager and the supervisor, at most
SIDE = 3456  # of the array as a matrix
SOME = 8  # columns of it
PAGE = (64 << 10) // 8  # words
WRITES = ("one_pass_write", "stencil", "sort")  # patterns that change the file
SYSTEMS = (
    "memmap",
    "loop:stream",
    "cp:stream",
    "tide:stream",
    "tournament:stream",
    "lrm:stream",
    "mru:stream",
)


def one_pass(a: Any) -> None:
    a.sum()


def cyclic(a: Any) -> None:
    for _ in range(5):
        a.sum()


def back_and_forth(a: Any) -> None:
    for i in range(5):
        blocks = range(0, len(a), 16 * PAGE)
        for first in blocks if i % 2 == 0 else reversed(blocks):
            a[first : first + 16 * PAGE].sum()


def one_pass_write(a: Any) -> None:
    a[:] = 1


def zipf(a: Any) -> None:
    pages = len(a) // PAGE
    draw = np.random.default_rng(1)
    weight = 1.0 / np.arange(1, pages + 1) ** 0.9
    for page in draw.permutation(pages)[draw.choice(pages, 6000, p=weight / weight.sum())].tolist():
        a[page * PAGE : (page + 1) * PAGE].sum()


def gather(a: Any) -> None:
    a[np.random.default_rng(1).integers(0, len(a), 4000)].sum()


def scan_beside_hot(a: Any) -> None:
    """A hot quarter is used after each sixteenth of two scans through the rest."""
    hot, rest = a[: len(a) // 4], a[len(a) // 4 :]
    for _ in range(2):
        for first in range(0, len(rest), len(rest) // 16):
            rest[first : first + len(rest) // 16].sum()
            hot.sum()


def two_in_step(a: Any) -> None:
    half = len(a) // 2
    for _ in range(4):
        for first in range(0, half, PAGE):
            np.dot(
                a[first : min(first + PAGE, half)],
                a[half + first : half + first + PAGE][: half - first],
            )


def transpose(a: Any) -> None:
    """Some columns of a matrix; all of them are 3,456 passes over the file."""
    np.ascontiguousarray(a[: SIDE * SIDE].reshape(SIDE, SIDE)[:, :SOME].T)


def fft(a: Any) -> None:
    """Of the same columns."""
    np.fft.rfft(a[: SIDE * SIDE].reshape(SIDE, SIDE)[:, :SOME], axis=0)


def sort(a: Any) -> None:
    a[: len(a) * 5 // 6].sort()


def stencil(a: Any) -> None:
    m = a[: SIDE * SIDE].reshape(SIDE, SIDE)
    for _ in range(3):
        for row in range(32, SIDE - 32, 32):
            m[row : row + 32] = (m[row - 1 : row + 31] + m[row + 1 : row + 33]) / 2


def matmul(a: Any) -> None:
    """Blocks of a product of two matrices; the result is in ordinary memory."""
    n, b = 2400, 600
    left, right = (a[i * n * n : (i + 1) * n * n].reshape(n, n) for i in range(2))
    for i in range(0, n, b):
        for j in range(0, n, b):
            sum(left[i : i + b, k : k + b] @ right[k : k + b, j : j + b] for k in range(0, n, b))


def decode(a: Any) -> None:
    """Six tokens through the same layers of weights."""
    d = 768
    layers = a[: len(a) // (d * d) * d * d].reshape(-1, d, d)
    for _ in range(6):
        x = np.ones(d)
        for weights in layers:
            x = weights @ x
            x /= np.abs(x).max() + 1


PATTERNS: dict[str, Callable[[Any], None]] = {
    f.__name__: f
    for f in (
        *(one_pass, one_pass_write, cyclic, back_and_forth, decode, two_in_step),
        *(scan_beside_hot, stencil, matmul, transpose, fft, sort, zipf, gather),
    )
}


def child(path: str, how: str, pattern: str) -> dict[str, Any]:
    """Return the seconds of one pattern on one kind of array, in this process."""
    group = Path(os.environ["TIDEGATE_BENCH_MEMORY"])
    with contextlib.ExitStack() as stack:
        if how == "memmap":
            a: Any = np.memmap(path, "f8", "r+")
            limit_memory(group, NEAR)
        else:
            before = int((group / "memory.usage_in_bytes").read_text())
            eviction, prefetch, *geometry = how.split(":")
            more = {"geometry": geometry[0]} if geometry else {}
            arena = stack.enter_context(Arena(NEAR, eviction=eviction, prefetch=prefetch, **more))
            a = arena.open(path, "f8", mode="r+")
            limit_memory(group, NEAR + BESIDE, before)
        _use_free_memory(group)
        used = int((group / "memory.usage_in_bytes").read_text())
        (group / "memory.max_usage_in_bytes").write_text("0")
        pids = [os.getpid()] if how == "memmap" else [os.getpid(), *children(arena)]
        begin, processor = time.perf_counter(), _processor_seconds(pids)
        PATTERNS[pattern](a)
        seconds = time.perf_counter() - begin
        peak = int((group / "memory.max_usage_in_bytes").read_text()) - used
        stats = arena.stats() if how != "memmap" else {}
        return {
            "seconds": seconds,
            "processor": _processor_seconds(pids) - processor,
            "peak": peak,
            "read": stats.get("bytes_in", 0),
            "faults": stats.get("faults", 0),
        }


def _use_free_memory(group: Path) -> None:
    """Use free memory of the machine once, outside of this cgroup: no contender pays for that.

    A host that takes back what a virtual machine does not use (free page reporting, by pieces of
    2 MiB) makes the first use of each such piece take 4 ms.
    """
    code = (
        f"import mmap; m = mmap.mmap(-1, {4 * NEAR}, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS);"
        f"m.madvise(mmap.MADV_HUGEPAGE); m[::4096] = bytes({4 * NEAR // 4096})"
    )
    procs = group.parent / "cgroup.procs"
    leave = lambda: procs.write_text(str(os.getpid()))  # noqa: E731
    subprocess.run([sys.executable, "-c", code], preexec_fn=leave, check=True)


def children(arena: Arena) -> list[int]:
    """Return the arena's supervisor and pager."""
    pid = arena._supervisor.pid
    return [pid, *map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split())]


def _processor_seconds(pids: list[int]) -> float:
    words = (Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split() for pid in pids)
    return sum(int(w[11]) + int(w[12]) for w in words) / os.sysconf("SC_CLK_TCK")


def limit_memory(group: Path, more: int, used: int | None = None) -> None:
    if used is None:
        used = int((group / "memory.usage_in_bytes").read_text())
    (group / "memory.limit_in_bytes").write_text(str(used + more))


def measure(path: Path, how: str, pattern: str, throttled: bool, most: float) -> dict[str, Any]:
    """Return what a child says; ``most`` seconds if it takes longer."""
    words = ["benchmarks.live_patterns", "child", str(path), how, pattern]
    try:
        return in_cgroups(words, path, throttled, most)
    except subprocess.TimeoutExpired:
        return {"seconds": most, "processor": 0, "peak": 0, "read": 0, "faults": 0}


def in_cgroups(words: list[str], path: Path, throttled: bool, most: float) -> dict[str, Any]:
    """Return what a module prints in cgroups of its own, within ``most`` seconds."""
    _forget_cached(path)
    with contextlib.ExitStack() as groups:
        joins = [groups.enter_context(_cgroup("memory"))]
        # one thread: threads of BLAS that wait busily for each other hide the rest
        environment = os.environ | {
            "TIDEGATE_BENCH_MEMORY": str(joins[0]),
            "OPENBLAS_NUM_THREADS": "1",
        }
        if throttled:
            joins.append(groups.enter_context(_cgroup("blkio")))
            device = os.stat(path).st_dev
            limit = f"{os.major(device)}:{os.minor(device)} {THROTTLE}"
            for kind in ("read", "write"):
                (joins[1] / f"blkio.throttle.{kind}_bps_device").write_text(limit)

        def join() -> None:
            for group in joins:
                (group / "cgroup.procs").write_text(str(os.getpid()))

        done = subprocess.run(
            [sys.executable, "-m", *words],
            env=environment,
            preexec_fn=join,
            capture_output=True,
            text=True,
            timeout=most,
        )
        if done.returncode:
            raise RuntimeError(f"{words}: {done.returncode} {done.stderr[-800:]}")
        return dict(json.loads(done.stdout.splitlines()[-1]))


def main() -> None:
    if sys.argv[1:2] == ["child"]:
        print(json.dumps(child(*sys.argv[2:5])))
        return
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", help="patterns, by commas")
    parser.add_argument("--systems", default=",".join(SYSTEMS), help="eviction:prefetch, by commas")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--throttle", action="store_true", help="hold the disk to 300 MB/s")
    parser.add_argument("--folder", help="where the file is made; its disk is what is measured")
    parser.add_argument("--most", type=float, default=60, help="seconds for one measurement")
    options = parser.parse_args()
    systems = options.systems.split(",")
    chosen = options.only.split(",") if options.only else list(PATTERNS)
    print("Seconds: median (least to most), processor time, peak of memory, bytes in, speed-up.\n")
    print(f"| | {' | '.join(systems)} |")
    print("|---" * (len(systems) + 1) + "|")
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        path = Path(folder) / "array.bin"
        for pattern in chosen:
            took: dict[str, list[dict[str, Any]]] = {how: [] for how in systems}
            for _ in range(options.repeat):
                for how in systems:
                    if pattern in WRITES or not path.exists():
                        np.random.default_rng(0).random(BYTES // 8).tofile(path)
                    took[how].append(measure(path, how, pattern, options.throttle, options.most))
            cells = [_cell(took[how], took[systems[0]]) for how in systems]
            print(f"| {pattern} | {' | '.join(cells)} |", flush=True)


def _cell(ours: list[dict[str, Any]], peers: list[dict[str, Any]]) -> str:
    seconds = sorted(one["seconds"] for one in ours)
    middle = statistics.median(seconds)
    ratio = statistics.median(one["seconds"] for one in peers) / middle
    peak = max(one["peak"] for one in ours) / 2**20
    read = ours[0]["read"] / 1e6
    busy = statistics.median(one["processor"] for one in ours)
    said = f"{middle:.2f} ({seconds[0]:.2f}–{seconds[-1]:.2f}), {busy:.2f} busy, {peak:.0f} MiB"
    return said if ours is peers else f"{said}, {read:.0f} MB in: **{ratio:.2f} ×**"


if __name__ == "__main__":
    main()
