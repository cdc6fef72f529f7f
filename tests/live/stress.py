"""Use arenas in every way at once and check every word against ordinary memory.

    python tests/live/stress.py CONFIGURATION      (JSON; see Configuration)

Threads write and read their own words of shared pages in compiled loops, one thread does so by
system calls, one uses verbs, one makes and drops arrays. Some arrays are files, some of which can
only be read, and some regions stay pinned. Other processes read a shared array, or pester the
arenas, as another user where there is one. Others kill the pagers meanwhile (soak.py). Prints what
was checked as JSON.
"""

from __future__ import annotations

import contextlib
import json
import os
import pickle
import random
import resource
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numba import int64, njit, uint64

from tidegate.live import Arena

STRIPE = 7  # words in a row that one thread owns
HANG = 200  # seconds until a thread that does not end is said to hang
# another process, which checks parts of a shared array of numbers until stdin ends
READER = """
import pickle, random, select, sys
import numpy as np
a, words, wrong = pickle.loads(bytes.fromhex(sys.stdin.readline())).open(), 0, 0
while not select.select([sys.stdin], [], [], 0)[0]:
    first = random.randrange(len(a))
    part = a[first : first + random.choice((1, 500, 70_000))]
    words += len(part)
    wrong += int((part != np.arange(first, first + len(part), dtype="u8")).sum())
print(words, wrong)
"""


# another process: connects to all arenas, sends nonsense or nothing, and leaves, until stdin ends;
# as root it becomes another user, who must get no answer at all, and prints any that it gets
STRANGER = """
import os, random, re, select, socket, sys
from pathlib import Path
if os.geteuid() == 0:
    os.setgroups([])
    os.setresgid(65534, 65534, 65534)
    os.setresuid(65534, 65534, 65534)
other = os.geteuid() == 65534
sent = (b'{"do": "join"}', b'{"do": "stats"}', b"nonsense", b"[" * 9999)
def pester(name):
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as peer:
        peer.settimeout(5)
        try:
            peer.connect("\\0" + name)
            peer.send(random.choice(sent))
            if other and (got := peer.recv(1000)):
                print(got, flush=True)
        except OSError:
            pass
while not select.select([sys.stdin], [], [], 0.05)[0]:
    names = re.findall(r"@(tidegate-live-\\S+)", Path("/proc/net/unix").read_text())
    for name in names:
        if f"-{sys.argv[1]}-" in name:
            pester(name)
"""


@dataclass
class Configuration:
    """One configuration of arenas and their users."""

    seed: int
    seconds: float
    eviction: str = "lru"
    prefetch: str = "none"
    geometry: str = "16KiB/128KiB"
    near: int = 2 << 20
    middle: int = 0
    tiering: str = ""
    ratio: float = 4  # bytes of all arrays, over near
    arenas: int = 1
    threads: int = 4
    readers: int = 0  # other processes
    strangers: int = 0  # processes that do not belong
    read_only: bool = False  # one more array of a file that can only be read
    pinned: int = 0  # regions that stay pinned all the time
    files: int = 0  # limit of open files of the program and its helpers; 0: as it is


@dataclass
class Array:
    """An array in an arena, its words in ordinary memory, and its file if it has one."""

    arena: Arena
    live: Any
    right: Any
    path: Path | None
    read_only: bool = False


@dataclass
class Result:
    """What was checked. ``errors``: exceptions and threads that hang."""

    words: int = 0
    wrong: int = 0
    where: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    restarts: int = 0
    verbs: int = 0

    def __post_init__(self) -> None:
        self._lock = threading.Lock()

    def note(self, where: str, words: int, wrong: int) -> None:
        with self._lock:
            self.words += words
            self.wrong += wrong
            if wrong:
                self.where.append(f"{where}: {wrong} of {words}")


@njit(nogil=True, cache=True)
def draw(state: Any) -> Any:
    x = state[0]
    x ^= x << uint64(13)
    x ^= x >> uint64(7)
    x ^= x << uint64(17)
    state[0] = x
    return x


@njit(nogil=True, cache=True)
def use(live: Any, right: Any, own: int, owners: int, state: Any, longest: int) -> Any:
    """Check, write or both, in a run of words or in scattered ones; return checked and wrong."""
    n, checked, wrong = len(live), 0, 0
    what = draw(state) % uint64(4)
    scattered = draw(state) % uint64(4) == uint64(0)
    first = int64(draw(state) % uint64(n))
    length = 256 if scattered else min(int64(draw(state) % uint64(longest)) + 1, n - first)
    value = draw(state)
    for i in range(length):
        at = int64(draw(state) % uint64(n)) if scattered else first + i
        if at // STRIPE % owners != own:
            continue
        if what != uint64(1):
            checked += 1
            wrong += live[at] != right[at]
        if what != uint64(0):
            live[at] = right[at] = value * uint64(at + 1)
    return checked, wrong


class Stress:
    """Arenas and threads of one configuration."""

    def __init__(self, configuration: Configuration, folder: Path):
        self._c, self.result, self._enough = configuration, Result(), threading.Event()
        self._random = random.Random(configuration.seed)
        self._owners = configuration.threads + 1
        if configuration.files:
            resource.setrlimit(resource.RLIMIT_NOFILE, (configuration.files, configuration.files))
        self._arrays = [a for i in range(configuration.arenas) for a in self._open(folder, i)]
        self._pins = contextlib.ExitStack()
        for a in self._arrays[:: len(self._arrays) // configuration.arenas]:
            self._pin(a)
        self._strangers = [self._start(STRANGER) for _ in range(configuration.strangers)]
        self._readers = [self._read_elsewhere() for _ in range(configuration.readers)]

    def _open(self, folder: Path, number: int) -> list[Array]:
        c = self._c
        more: dict[str, Any] = {"middle": c.middle, "tiering": c.tiering} if c.middle else {}
        arena = Arena(
            c.near,
            eviction=c.eviction,
            prefetch=c.prefetch,
            geometry=c.geometry,
            span="1GiB",
            **more,
        )
        words = int(c.near * c.ratio) // 8
        own = Array(arena, arena.empty(words // 2 + 123, "u8"), None, None)
        own.right = np.zeros(len(own.live), "u8")
        path = folder / f"{number}.bin"
        right = np.random.default_rng(c.seed).integers(0, 1 << 63, words // 2 + 77, "u8")
        right.tofile(path)
        found = [own, Array(arena, arena.open(path, "u8", mode="r+"), right, path)]
        if c.read_only:
            path = folder / f"{number}.readonly"
            right = np.random.default_rng(c.seed + 1).integers(0, 1 << 63, words // 4 + 77, "u8")
            right.tofile(path)
            found.append(Array(arena, arena.open(path, "u8"), right, path, read_only=True))
        return found

    def _pin(self, a: Array) -> None:
        """Pin the first regions of an array until the end."""
        if self._c.pinned:
            words = self._c.pinned * a.arena.geometry.region // 8
            self._pins.enter_context(a.arena.pin(a.live[: words - 1]))

    def _read_elsewhere(self) -> subprocess.Popen[str]:
        """Start a process that reads an array which nobody writes to."""
        arena = self._arrays[0].arena
        array = arena.empty(self._c.near // 16, "u8")
        array[:] = np.arange(len(array))
        reader = self._start(READER)
        assert reader.stdin is not None
        print(pickle.dumps(arena.share(array)).hex(), file=reader.stdin, flush=True)
        return reader

    @staticmethod
    def _start(code: str) -> subprocess.Popen[str]:
        command, pipe = [sys.executable, "-c", code, str(os.getpid())], subprocess.PIPE
        return subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True)

    def _stop_readers(self) -> None:
        for stranger in self._strangers:
            if got := stranger.communicate(timeout=HANG)[0]:
                self.result.errors.append(f"another user got {got[:200]}")
        for reader in self._readers:
            said, _ = reader.communicate(timeout=HANG)
            if reader.returncode:
                self.result.errors.append(f"a reader ended with {reader.returncode}")
            else:
                self.result.note("reader", *map(int, said.split()))

    def run(self) -> Result:
        """Let all threads work for the time given; then check every word, in files too."""
        work: list[Callable[[], None]] = [
            *(lambda own=i: self._write(own) for i in range(self._c.threads)),  # type: ignore
            self._use_system_calls,
            self._use_verbs,
            self._come_and_go,
        ]
        threads = [threading.Thread(target=self._guard, args=(w,), daemon=True) for w in work]
        for thread in threads:
            thread.start()
        self._enough.wait(self._c.seconds)
        self._enough.set()
        end = time.monotonic() + HANG
        for thread in threads:
            thread.join(max(0, end - time.monotonic()))
        if any(thread.is_alive() for thread in threads):
            self.result.errors.append("a thread hangs")
            return self.result
        self._guard(self._stop_readers)
        self._guard(self._pins.close)
        self._check_all()
        return self.result

    def _guard(self, work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException:
            self.result.errors.append(traceback.format_exc(limit=-2)[-500:])
            self._enough.set()

    def _write(self, own: int) -> None:
        state = np.array([self._c.seed * 7919 + own * 104729 + 12345], "u8")
        choose = random.Random(own)
        while not self._enough.is_set():
            a = choose.choice(self._arrays)
            if a.read_only:
                self._read(a, choose)
                continue
            counts = use(a.live, a.right, own, self._owners, state, 20_000)
            self.result.note(f"thread {own}", *counts)

    def _read(self, a: Array, choose: random.Random) -> None:
        first = choose.randrange(len(a.live))
        part = slice(first, first + choose.choice((1, 500, 20_000)))
        wrong = int((a.live[part] != a.right[part]).sum())
        self.result.note("read-only file", len(a.right[part]), wrong)

    def _use_system_calls(self) -> None:
        """Read and write words of its own by preadv and pwritev: faults in the kernel."""
        choose, own = random.Random(self._c.seed), self._c.threads
        fd = os.memfd_create("words")
        arrays = [a for a in self._arrays if not a.read_only]
        while not self._enough.is_set():
            a = choose.choice(arrays)
            if not a.arena.serves_system_calls:
                return
            begin = choose.randrange(len(a.live) // STRIPE // self._owners - 1)
            at = (begin * self._owners + own) * STRIPE
            words = memoryview(a.live)[at : at + STRIPE].cast("B")
            if choose.random() < 0.5:
                new = np.full(STRIPE, choose.getrandbits(60), "u8")
                os.pwrite(fd, new.tobytes(), 0)
                os.preadv(fd, [words], 0)
                a.right[at : at + STRIPE] = new
            else:
                os.pwritev(fd, [words], 0)
                got = np.frombuffer(os.pread(fd, STRIPE * 8, 0), "u8")
                wrong = int((got != a.right[at : at + STRIPE]).sum())
                self.result.note("system call", STRIPE, wrong)
        os.close(fd)

    def _use_verbs(self) -> None:
        choose = random.Random(self._c.seed + 1)
        while not self._enough.is_set():
            a = choose.choice(self._arrays)
            first = choose.randrange(len(a.live))
            part = a.live[first : first + choose.randrange(1, 1 << 15)]
            match choose.randrange(7):
                case 0:
                    a.arena.prefetch(part)
                case 1:
                    a.arena.advise(part, "far")
                case 2:
                    a.arena.advise(part, None)
                case 3:
                    with a.arena.pin(part[:100]):
                        time.sleep(0.005)
                case 4:
                    a.arena.flush()
                case 5:
                    a.arena.settle()
                case 6:
                    a.arena.stats()
            self.result.verbs += 1
            time.sleep(choose.random() * 0.02)

    def _come_and_go(self) -> None:
        """Make arrays, which are zeros; write, copy, check and drop them."""
        choose = random.Random(self._c.seed + 2)
        while not self._enough.is_set():
            arena, n = choose.choice(self._arrays).arena, choose.choice((1, 500, 9_000, 70_000))
            new = arena.empty(n, "u8")
            self.result.note("new array", n, int(np.count_nonzero(new)))
            right = np.arange(n, dtype="u8") * np.uint64(choose.getrandbits(30))
            new[:] = right
            other = arena.empty(n, "u8")
            other[:] = new
            del new
            self.result.note("array that comes and goes", n, int((other != right).sum()))

    def _check_all(self) -> None:
        for a in self._arrays:
            where = "own array" if a.path is None else "file array"
            self.result.note(f"{where} at the end", len(a.live), int((a.live != a.right).sum()))
        for arena in {id(a.arena): a.arena for a in self._arrays}.values():
            stats = arena.stats()
            self.result.restarts += stats["restarts"]
            if stats["replaced"]:
                self.result.errors.append(f"replaced {stats['replaced']}")
            arena.close()
        for a in self._arrays:
            if a.path is not None:
                file = np.fromfile(a.path, "u8")
                self.result.note("file", len(file), int((file != a.right).sum()))


def main() -> None:
    configuration = Configuration(**json.loads(sys.argv[1]))
    with tempfile.TemporaryDirectory() as folder:
        result = Stress(configuration, Path(folder)).run()
    said = {name: getattr(result, name) for name in Result.__dataclass_fields__}
    print(json.dumps(said), flush=True)
    os._exit(0 if not result.errors and not result.wrong else 1)  # a thread may hang


if __name__ == "__main__":
    main()
