"""``python tests/live/soak.py --kills 20000``: kill pagers over random configurations.

Each configuration (stress.py) is a process of its own; this one kills its pagers at random moments,
many while they recover, and stops some for a moment. No word may be wrong.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import os
import random
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from live.sequences import live_policies
from live.stress import Configuration
from tidegate.live.pager.pager import MESSAGE

STRESS = Path(__file__).with_name("stress.py")
PREFETCH = ("none", "region", "tree", "pattern", "fdp+rgp", "sequential-local", "stream")
GEOMETRIES = ("4KiB/64KiB", "16KiB/128KiB", "64KiB/512KiB", "64KiB/2MiB", "64KiB/64KiB")
# After a burst of kills each pager must have answered a request before it is killed again. So verbs
# such as flush, which take longer than a pager may live, can be done, and never do 200 pagers in a
# row die before they have served anything: that would end the program (docs/live-limits.md).
BURST = 10
ANSWER = 240  # seconds for an answer, however busy the machine
TIERINGS = ("tier-order", "tier-reuse", "tier-random")


@dataclass
class Total:
    """Figures of all configurations so far."""

    configurations: int = 0
    kills: int = 0
    restarts: int = 0
    stops: int = 0
    words: int = 0
    wrong: int = 0
    errors: int = 0

    def __post_init__(self) -> None:
        self._lock = threading.Lock()

    def add(self, given: Configuration, said: dict[str, Any], kills: int, stops: int) -> None:
        """Add what one configuration says, and print the sum."""
        with self._lock:
            self.configurations += 1
            self.kills += kills
            self.stops += stops
            self.restarts += said["restarts"]
            self.words += said["words"]
            self.wrong += said["wrong"]
            self.errors += len(said["errors"])
            if said["wrong"] or said["errors"]:
                print(f"{asdict(given)}\n    {said['where']}\n    {said['errors']}", flush=True)
            print(self, flush=True)

    def __str__(self) -> str:
        return (
            f"{self.configurations} configurations, {self.kills:,} kills, {self.stops:,} stops, "
            f"{self.restarts:,} restarts, {self.words:,} words checked, {self.wrong} wrong, "
            f"{self.errors} errors"
        )


def configuration(seed: int, seconds: float) -> Configuration:
    """Draw a configuration."""
    choose = random.Random(seed)
    geometry = choose.choice(GEOMETRIES)
    region = {"64KiB": 1 << 16, "128KiB": 1 << 17, "512KiB": 1 << 19, "2MiB": 1 << 21}
    middle, frames = choose.random() < 0.2, choose.choice((6, 8, 16))
    return Configuration(
        seed=seed,
        seconds=seconds,
        eviction=choose.choice(live_policies()),
        prefetch=choose.choice(PREFETCH),
        geometry=geometry,
        near=region[geometry.split("/")[1]] * frames,
        middle=(1 << 20) if middle else 0,
        tiering=choose.choice(TIERINGS) if middle else "",
        ratio=choose.choice((1.5, 3, 5)),
        arenas=choose.choice((1, 1, 2)),
        threads=choose.choice((1, 2, 4, 8)),
        readers=choose.choice((0, 0, 1, 2)),
        strangers=choose.choice((0, 0, 1)),
        read_only=choose.random() < 0.4,
        pinned=choose.choice((0, 0, 1, frames // 2 - 1)),
        files=choose.choice((0, 0, 128)),
    )


def run(given: Configuration, rate: float) -> tuple[dict[str, Any], int, int]:
    """Run one configuration, killing ``rate`` pagers a second; return what it says, and kills."""
    command = [sys.executable, str(STRESS), json.dumps(asdict(given))]
    choose, kills, stops, silent = random.Random(given.seed), 0, 0, list[str]()
    killed = set[int]()  # a pager that was killed may take a while to die; it is not killed twice
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        while process.poll() is None:
            time.sleep(choose.expovariate(rate))
            pagers = [p for p in pagers_of(process.pid) if p not in killed]
            if not pagers:
                continue
            pager, luck = choose.choice(pagers), choose.random()
            with contextlib.suppress(ProcessLookupError):
                if luck < 0.1:
                    os.kill(pager, signal.SIGSTOP)
                    stops += 1
                    time.sleep(choose.random() * 0.1)
                    os.kill(pager, signal.SIGCONT)
                else:
                    os.kill(pager, signal.SIGKILL)
                    killed.add(pager)
                    kills += 1
                    if kills % BURST == 0:
                        silent += let_work(process.pid)
        assert process.stdout is not None
        assert process.stderr is not None
        out, err = process.stdout.read(), process.stderr.read()
    try:
        said = json.loads(out)
    except ValueError:
        why = f"exit code {process.returncode}: {err.decode()[-2000:]}"
        said = {"words": 0, "wrong": 0, "where": [], "errors": [why], "restarts": 0}
    return said | {"errors": said["errors"] + silent}, kills, stops


def let_work(pid: int) -> list[str]:
    """Wait until each arena of this process has answered a request; return those that did not."""
    silent = []
    for name in arenas_of(pid):
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as peer:
            peer.settimeout(ANSWER)
            try:
                peer.connect("\0" + name)
                peer.send(json.dumps({"do": "stats"}).encode())
                peer.recv(MESSAGE)
            except TimeoutError:
                silent.append(f"{name} did not answer within {ANSWER} s")
            except OSError:
                continue  # it has just been closed
    return silent


def arenas_of(pid: int) -> list[str]:
    """Return the names under which the arenas of a process listen."""
    names = re.findall(r"@(tidegate-live-\d+-(\d+)-[0-9a-f]+)", Path("/proc/net/unix").read_text())
    return [name for name, owner in names if int(owner) == pid]


def pagers_of(pid: int) -> list[int]:
    return [p for s in children(pid) if is_supervisor(s) for p in children(s)]


def children(pid: int) -> list[int]:
    found: list[int] = []
    with contextlib.suppress(OSError):
        for task in os.listdir(f"/proc/{pid}/task"):
            with contextlib.suppress(OSError):
                found += map(int, Path(f"/proc/{pid}/task/{task}/children").read_text().split())
    return found


def is_supervisor(pid: int) -> bool:
    with contextlib.suppress(OSError):
        return b"tidegate.live.pager.supervisor" in Path(f"/proc/{pid}/cmdline").read_bytes()
    return False


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=20_000)
    parser.add_argument("--seconds", type=float, default=20, help="of each configuration")
    parser.add_argument("--rate", type=float, default=12, help="kills a second, in bursts")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--at-a-time", type=int, default=2, help="configurations")
    options = parser.parse_args()
    total, seeds = Total(), itertools.count(options.seed)

    def work() -> None:
        while total.kills < options.kills:
            given = configuration(next(seeds), options.seconds)
            total.add(given, *run(given, options.rate))

    with ThreadPoolExecutor(options.at_a_time) as pool:
        for worker in [pool.submit(work) for _ in range(options.at_a_time)]:
            worker.result()
    return 1 if total.wrong or total.errors else 0


if __name__ == "__main__":
    sys.exit(main())
