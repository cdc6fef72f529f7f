"""``python tests/live/soak.py --kills 20000``: kill pagers over random configurations.

Each configuration (stress.py) is a process of its own; this one kills its pagers at random moments,
many while they recover, and stops some for a moment. No word may be wrong.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from live.sequences import live_policies
from live.stress import Configuration

STRESS = Path(__file__).with_name("stress.py")
PREFETCH = ("none", "region", "tree", "pattern", "fdp+rgp", "sequential-local", "stream")
GEOMETRIES = ("4KiB/64KiB", "16KiB/128KiB", "64KiB/512KiB", "64KiB/2MiB", "64KiB/64KiB")
# A verb such as flush can take longer than a pager lives; after a burst of kills one can be done.
# A pager that starts is busy; one that has slept since has served something, or has nothing to do.
# On a loaded machine that takes longer than the pause. 200 pagers in a row that die before they
# have served anything end the program, as docs/live.md says.
BURST, PAUSE, LONGEST_PAUSE = 10, 0.5, 3.0
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
    middle = choose.random() < 0.2
    return Configuration(
        seed=seed,
        seconds=seconds,
        eviction=choose.choice(live_policies()),
        prefetch=choose.choice(PREFETCH),
        geometry=geometry,
        near=region[geometry.split("/")[1]] * choose.choice((6, 8, 16)),
        middle=(1 << 20) if middle else 0,
        tiering=choose.choice(TIERINGS) if middle else "",
        ratio=choose.choice((1.5, 3, 5)),
        arenas=choose.choice((1, 1, 2)),
        threads=choose.choice((1, 2, 4, 8)),
        readers=choose.choice((0, 0, 1, 2)),
    )


def run(given: Configuration, rate: float) -> tuple[dict[str, Any], int, int]:
    """Run one configuration, killing ``rate`` pagers a second; return what it says, and kills."""
    command = [sys.executable, str(STRESS), json.dumps(asdict(given))]
    choose, kills, stops = random.Random(given.seed), 0, 0
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        while process.poll() is None:
            time.sleep(choose.expovariate(rate))
            pagers = pagers_of(process.pid)
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
                    kills += 1
                    if kills % BURST == 0:
                        let_work(process.pid)
        assert process.stdout is not None
        assert process.stderr is not None
        out, err = process.stdout.read(), process.stderr.read()
    try:
        return json.loads(out), kills, stops
    except ValueError:
        said = f"exit code {process.returncode}: {err.decode()[-2000:]}"
        return {"words": 0, "wrong": 0, "where": [], "errors": [said], "restarts": 0}, kills, stops


def let_work(pid: int) -> None:
    """Wait until the pagers of this process have had time to start and to serve something."""
    time.sleep(PAUSE)
    end, awake = time.monotonic() + LONGEST_PAUSE, set(pagers_of(pid))
    while awake and time.monotonic() < end:
        time.sleep(PAUSE / 10)
        awake = {p for p in awake if state_of(p) not in "SZX"}


def pagers_of(pid: int) -> list[int]:
    return [p for s in children(pid) if is_supervisor(s) for p in children(s)]


def state_of(pid: int) -> str:
    """Return the letter of a process's state; X if it is gone."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    return "X"


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
    options = parser.parse_args()
    total, seed = Total(), options.seed
    while total.kills < options.kills:
        given = configuration(seed, options.seconds)
        said, kills, stops = run(given, options.rate)
        total.configurations += 1
        total.kills += kills
        total.stops += stops
        total.restarts += said["restarts"]
        total.words += said["words"]
        total.wrong += said["wrong"]
        total.errors += len(said["errors"])
        if said["wrong"] or said["errors"]:
            print(f"{asdict(given)}\n    {said['where']}\n    {said['errors']}", flush=True)
        print(total, flush=True)
        seed += 1
    return 1 if total.wrong or total.errors else 0


if __name__ == "__main__":
    sys.exit(main())
