"""``python -m benchmarks.live``: the speed of live memory, against peers on the same arrays.

    peers   np.memmap in a memory cgroup of the size of near memory, also with MADV_RANDOM ·
            a pager in C
    disk    as it is, or held to 300 MB/s by a blkio cgroup

Every measurement is a process of its own (``python -m benchmarks.live child ...``), so that cgroups
hold all of it and nothing else. Cgroups (version 1) need root, the pager in C needs gcc.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import mmap
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from tidegate.live import Arena
from tidegate.live.arena.files import open_file
from tidegate.live.transfer import userfault

NEAR = 256 << 20
PAGE = 64 << 10
PASSES = 5
ZIPF_READS = 12_000
FAULTS = 3000
THROTTLE = 300_000_000
CGROUPS = Path("/sys/fs/cgroup")


# What is measured: seconds of work on an array that is a file


def sequential(a: np.ndarray) -> None:
    assert a.sum() == len(a)


def cyclic(a: np.ndarray) -> None:
    for _ in range(PASSES):
        assert a.sum() == len(a)


def zipf(a: np.ndarray) -> None:
    """One byte of each of many pages, popular ones scattered over the array."""
    draw = np.random.default_rng(1)
    pages = len(a) * 8 // PAGE
    weight = 1.0 / np.arange(1, pages + 1) ** 0.9
    chosen = draw.permutation(pages)[draw.choice(pages, ZIPF_READS, p=weight / weight.sum())]
    step = PAGE // 8
    for page in chosen.tolist():
        block = a[page * step : (page + 1) * step]
        assert block.sum() == step


WORK: dict[str, Callable[[np.ndarray], None]] = {
    "sequential": sequential,
    "cyclic": cyclic,
    "zipf": zipf,
}


def child(path: str, how: str, work: str) -> dict[str, Any]:
    """Return the seconds of one work on one kind of array, in this process."""
    if how.startswith("memmap"):
        a = np.memmap(path, "u8", "r")
        if how == "memmap-random":
            a._mmap.madvise(mmap.MADV_RANDOM)
        _limit_memory(NEAR)
        begin = time.perf_counter()
        WORK[work](a)
        return {"seconds": time.perf_counter() - begin}
    eviction, prefetch, geometry = how.split(":")
    with Arena(NEAR, eviction=eviction, prefetch=prefetch, geometry=geometry) as arena:
        a = arena.open(path, "u8")
        begin = time.perf_counter()
        WORK[work](a)
        seconds = time.perf_counter() - begin
        return {"seconds": seconds, **arena.stats()}


def _limit_memory(near: int) -> None:
    """Limit this process to so much more than it has now, page cache included."""
    if group := os.environ.get("TIDEGATE_BENCH_MEMORY"):
        used = int((Path(group) / "memory.usage_in_bytes").read_text())
        (Path(group) / "memory.limit_in_bytes").write_text(str(used + near))


# A child in its cgroups


def measure(path: Path, how: str, work: str, throttled: bool) -> dict[str, Any]:
    _forget_cached(path)
    with contextlib.ExitStack() as groups:
        environment, joins = dict(os.environ), []
        if how.startswith("memmap"):
            group = groups.enter_context(_cgroup("memory"))
            environment["TIDEGATE_BENCH_MEMORY"] = str(group)
            joins.append(group)
        if throttled:
            group = groups.enter_context(_cgroup("blkio"))
            device = os.stat(path).st_dev
            limit = f"{os.major(device)}:{os.minor(device)} {THROTTLE}"
            for kind in ("read", "write"):
                (group / f"blkio.throttle.{kind}_bps_device").write_text(limit)
            joins.append(group)

        def join() -> None:
            for group in joins:
                (group / "cgroup.procs").write_text(str(os.getpid()))

        command = [sys.executable, "-m", "benchmarks.live", "child", str(path), how, work]
        done = subprocess.run(
            command, env=environment, preexec_fn=join, capture_output=True, text=True
        )
        if done.returncode:
            raise RuntimeError(f"{how} {work}: {done.stderr}")
        return dict(json.loads(done.stdout))


@contextlib.contextmanager
def _cgroup(kind: str) -> Iterator[Path]:
    group = CGROUPS / kind / f"tidegate-bench-{os.getpid()}"
    group.mkdir()
    try:
        yield group
    finally:
        for _ in range(100):
            try:
                group.rmdir()
                break
            except OSError:
                time.sleep(0.05)


def _forget_cached(path: Path) -> None:
    fd = os.open(path, os.O_RDONLY)
    os.fsync(fd)
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(fd)


# A fault, against a pager in C


def fault_in_c(path: Path, pager: Path, near: int) -> float:
    """Return the microseconds of a page fault that a minimal pager serves."""
    size = path.stat().st_size
    uffd, _ = userfault.Userfault.open()
    memory = os.memfd_create("bench", 0)
    os.ftruncate(memory, size)
    base = userfault.reserve(size)
    userfault.map_shared(base, size, memory)
    uffd.register(base, size)
    store, plain = open_file(str(path), False)
    command = [
        str(pager),
        *map(str, (uffd.fd, memory, store, base, size // PAGE, PAGE, near // PAGE)),
    ]
    process = subprocess.Popen(command, pass_fds=[uffd.fd, memory, store])
    try:
        return _touch_at_random(base, size, near)
    finally:
        process.kill()
        process.wait()
        userfault.seal(base, size)
        for fd in (uffd.fd, memory, store, plain):
            os.close(fd)


def fault_in_arena(path: Path, near: int) -> float:
    with Arena(near, eviction="lrm", prefetch="none", geometry="64KiB/64KiB") as arena:
        a = arena.open(path, "u8")
        return _touch_at_random(a.ctypes.data, a.nbytes, near)


def _touch_at_random(base: int, size: int, near: int) -> float:
    """Return the median microseconds of touches that were faults, once near memory is full."""
    import ctypes

    byte = ctypes.c_uint8.from_address
    pages = size // PAGE
    for page in range(near // PAGE):
        byte(base + page * PAGE).value  # noqa: B018
    took = []
    for page in np.random.default_rng(1).integers(0, pages, FAULTS).tolist():
        begin = time.perf_counter_ns()
        byte(base + page * PAGE).value  # noqa: B018
        took.append(time.perf_counter_ns() - begin)
    return statistics.median(t for t in took if t > 10_000) / 1000


# All of it


def main() -> None:
    if sys.argv[1:2] == ["child"]:
        print(json.dumps(child(*sys.argv[2:5])))
        return
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", help="cyclic, zipf, sequential, fault, observation or storm")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--folder", help="where the file is made; its disk is what is measured")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        path = Path(folder) / "array.bin"
        np.ones(NEAR * 3 // 2 // 8, "u8").tofile(path)
        for name, part in (
            ("fault", show_fault),
            ("cyclic", show_cyclic),
            ("zipf", show_zipf),
            ("sequential", show_sequential),
            ("observation", show_observation),
            ("storm", show_storm),
        ):
            if options.only in (None, name):
                part(path, options.repeat)


def show_fault(path: Path, repeat: int) -> None:
    pager = path.with_name("pager")
    subprocess.run(
        ["gcc", "-O2", "-o", str(pager), str(Path(__file__).with_name("pager.c"))], check=True
    )
    near = 64 << 20
    ours, theirs = [], []
    for _ in range(repeat):
        theirs.append(fault_in_c(path, pager, near))
        ours.append(fault_in_arena(path, near))
    ratio = statistics.median(a / b for a, b in zip(ours, theirs, strict=True))
    print(
        f"fault of a 64 KB page: {_spread(ours)} us, in C {_spread(theirs)} us: "
        f"{ratio:.2f} x (to reach: 1.1)",
        flush=True,
    )


def race(
    path: Path, repeat: int, work: str, peer: str, throttled: bool, systems: list[str], goal: str
) -> None:
    """Run each system and the peer in turns; print ratios of medians."""
    took: dict[str, list[float]] = {how: [] for how in [peer, *systems]}
    read: dict[str, int] = {}
    for _ in range(repeat):
        for how in took:
            answer = measure(path, how, work, throttled)
            took[how].append(answer["seconds"])
            read[how] = answer.get("bytes_in", 0)
    disk = "disk held to 300 MB/s" if throttled else "disk as it is"
    print(f"{work}, {disk}: {peer} {_spread(took[peer])} s   ({goal})", flush=True)
    for how in systems:
        ratio = statistics.median(took[peer]) / statistics.median(took[how])
        print(
            f"    {how:30} {_spread(took[how])} s, {read[how] / 1e6:.0f} MB read: "
            f"{ratio:.2f} x as fast",
            flush=True,
        )


def show_cyclic(path: Path, repeat: int) -> None:
    systems = [f"{e}:stream:64KiB/2MiB" for e in ("loop", "mru", "cp", "tide", "tournament")]
    race(path, repeat, "cyclic", "memmap", True, systems, "to reach: 2 x")
    race(path, repeat, "cyclic", "memmap", False, systems, "to reach: 0.91 x")


def show_zipf(path: Path, repeat: int) -> None:
    race(
        path,
        repeat,
        "zipf",
        "memmap-random",
        False,
        [f"{e}:none:64KiB/64KiB" for e in ("lru", "lrm")],
        "to reach: 3 x",
    )


def show_sequential(path: Path, repeat: int) -> None:
    race(
        path, repeat, "sequential", "memmap", False, ["loop:stream:64KiB/2MiB"], "to reach: 0.83 x"
    )


def show_observation(path: Path, repeat: int) -> None:
    """Print the cost by the pager's clock, and against lrm, which decides as lru does in a loop."""
    for how in ("lru:region:64KiB/2MiB", "tournament:fdp+rgp:64KiB/2MiB"):
        shares = []
        for _ in range(repeat):
            answer = measure(path, how, "cyclic", False)
            shares.append(100 * answer["observe_seconds"] / answer["seconds"])
        print(f"observation, {how}: {_spread(shares)} % of the run (to reach: 3)", flush=True)
    race(
        path,
        repeat,
        "cyclic",
        "lrm:region:64KiB/2MiB",
        False,
        ["lru:region:64KiB/2MiB"],
        "to reach: 0.97 x",
    )


def show_storm(path: Path, repeat: int) -> None:
    """Print what observation costs where all fits: a random gather in 15 MiB of 96."""
    took: dict[str, list[float]] = {how: [] for how in ("lrm", "loop", "lru", "tide", "tournament")}
    noticed = dict.fromkeys(took, 0)
    for _ in range(repeat):
        for how, seconds in took.items():
            with Arena("96MiB", eviction=how) as arena:
                a = arena.empty(15 << 17, "u8")
                a[:] = 1
                places = np.random.default_rng(1).integers(0, len(a), 20_000_000)
                begin = time.perf_counter()
                a[places].sum()
                seconds.append(time.perf_counter() - begin)
                noticed[how] += arena.stats()["notifications"]
    for how, seconds in took.items():
        ratio = statistics.median(seconds) / statistics.median(took["lrm"])
        said = f"{_spread(seconds)} s, {noticed[how]} notifications: {ratio:.2f} x lrm"
        print(f"all fits, {how:12} {said} (to reach: 1.1)", flush=True)


def _spread(values: list[float]) -> str:
    return f"{statistics.median(values):.2f} ({min(values):.2f}–{max(values):.2f})"


if __name__ == "__main__":
    main()
