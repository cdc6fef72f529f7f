"""A short soak: pagers are killed under a few configurations. ``make soak`` has random ones."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from live.soak import run
from live.stress import Configuration
from live.test_failures import OPEN
from live.test_failures import run as run_code

pytestmark = pytest.mark.live

SECONDS = 3.0


@pytest.mark.slow
@pytest.mark.parametrize(
    "given",
    [
        Configuration(1, SECONDS, "mhpe", "region", "64KiB/512KiB", 4 << 20, arenas=2, threads=8),
        Configuration(
            2, SECONDS, "tournament", "fdp+rgp", "64KiB/2MiB", 8 << 20, ratio=2, readers=1
        ),
        Configuration(3, SECONDS, "lru", "tree", middle=1 << 20, tiering="tier-random"),
        Configuration(
            4,
            SECONDS,
            "loop",
            "stream",
            strangers=1,
            read_only=True,
            pinned=3,
            files=128,
            readers=1,
        ),
    ],
    ids=lambda given: f"{given.eviction}-{given.prefetch}",
)
def test_nothing_is_wrong_when_pagers_are_killed(given: Configuration) -> None:
    said, kills, _ = run(given, rate=12)
    assert (said["wrong"], said["errors"]) == (0, []), said
    assert kills > 0
    assert said["words"] > 100_000


@pytest.mark.slow
def test_killing_idle_pagers_ends_no_program() -> None:
    """As many as may die in a row: those that die of their work must not be confused with them."""
    code = f"""{OPEN}
from live.writers import kill_pager
from tidegate.live.pager import supervisor
a = arena.empty(1 << 20, "u1")
a[:] = 7
for _ in range(supervisor.TOO_OFTEN + 5):
    kill_pager(arena._supervisor.pid)
    arena.stats()
print((a == 7).all())
"""
    # every kill is of a pager that waits: it has answered a request
    tests = str(Path(__file__).parent.parent)
    done = run_code(code, env={**os.environ, "PYTHONPATH": tests})
    assert (done.returncode, done.stdout) == (0, "True\n"), done.stderr
