"""Write from several threads into the same pages and check every byte against ordinary memory.

    python tests/live/writers.py EVICTION PREFETCH SECONDS KILLS [MIDDLE TIERING [GEOMETRY]]

The pager is killed KILLS times a second at random moments, often during an eviction: near memory is
a quarter of the array. Prints the arena's statistics as JSON; fails if one byte is wrong.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import threading
import time
from pathlib import Path

import numpy as np

from tidegate.live import Arena

THREADS = 4
PAGE = 16 * 1024
WORDS = PAGE // 8
PAGES = 512
LEAST = 5 / 8  # share of the kills that must happen, however slow the machine


def main(
    eviction: str,
    prefetch: str,
    seconds: float,
    kills: float,
    middle: str = "0",
    tiering: str = "",
    geometry: str = "16KiB/128KiB",
) -> None:
    with Arena(
        "2MiB",
        eviction=eviction,
        prefetch=prefetch,
        geometry=geometry,
        span="1GiB",
        middle=middle,
        tiering=tiering or None,
    ) as arena:
        live = arena.empty(PAGES * WORDS, "u8")
        shadow = np.zeros(PAGES * WORDS, "u8")
        begin, enough = time.monotonic(), threading.Event()
        wrong: list[str] = []
        threads = [
            threading.Thread(target=write, args=(live, shadow, n, enough, wrong))
            for n in range(THREADS)
        ]
        for thread in threads:
            thread.start()
        killed = 0
        if not kills:
            time.sleep(seconds)
        while (
            kills
            and not wrong
            and (time.monotonic() < begin + seconds or killed < LEAST * kills * seconds)
        ):
            time.sleep(np.random.default_rng(killed).random() * 2 / kills)
            killed += kill_pager(arena._supervisor.pid)
        enough.set()
        for thread in threads:
            thread.join()
        assert not wrong, wrong[0]
        for first in range(0, len(live), WORDS):
            assert (live[first : first + WORDS] == shadow[first : first + WORDS]).all(), (
                f"page {first // WORDS} is wrong"
            )
        stats = arena.stats()
    print(json.dumps(stats | {"killed": killed, "sum": int(shadow.sum())}))


def write(
    live: np.ndarray, shadow: np.ndarray, own: int, enough: threading.Event, wrong: list[str]
) -> None:
    """Add to every fourth word of some pages, and check the words."""
    draw = np.random.default_rng(own)
    while not enough.is_set() and not wrong:
        first = (
            int(draw.integers(0, PAGES - 4))
            if draw.random() < 0.5
            else int(draw.integers(0, PAGES // 8))
        )
        part = slice(first * WORDS + own, (first + 4) * WORDS, THREADS)
        if not (live[part] == shadow[part]).all():
            wrong.append(
                f"thread {own} read other words than it wrote in pages {first} to {first + 3}"
            )
        value = int(draw.integers(1, 1 << 32))
        live[part] += np.uint64(value)
        shadow[part] += np.uint64(value)


def kill_pager(supervisor: int) -> int:
    """Kill the supervisor's child and wait until it is gone; return 1 if there was one."""
    children = Path(f"/proc/{supervisor}/task/{supervisor}/children")
    killed = 0
    for child in children.read_text().split():
        with contextlib.suppress(ProcessLookupError):  # it has ended by itself
            os.kill(int(child), signal.SIGKILL)
            killed += 1
            while child in children.read_text().split():
                time.sleep(0.001)
    return killed


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], float(sys.argv[3]), float(sys.argv[4]), *sys.argv[5:])
