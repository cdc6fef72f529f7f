"""A policy that fails is replaced; its program goes on, loses nothing and heeds Ctrl-C."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from live.test_reliable import SMALL
from live.test_script import live, script
from tidegate.errors import TidegateError
from tidegate.live import Arena
from tidegate.live.arena.setup import ArenaSetup
from tidegate.live.pager import calls
from tidegate.live.pager.calls import DEATHS, PolicyCalls, Watchdog, code_of

pytestmark = pytest.mark.live

BAD = Path(__file__).parent / "bad_policies.py"
SOON = 0.5  # seconds, for policies that never return
NEVER = 600  # for those that do, however busy the machine


def use(
    capfd: pytest.CaptureFixture[str], watchdog: float = SOON, **policies: str
) -> tuple[dict[str, Any], str]:
    """Use an arena with these policies; return its statistics and what went to stderr."""
    options: Any = SMALL | {"eviction": "fifo", "prefetch": "none"} | policies
    with Arena(**options, watchdog=watchdog) as arena:
        a, b = arena.zeros(1 << 17), arena.zeros(1 << 17)  # 8 regions each, in 4 frames
        for n in range(3):
            np.add(a, 1, out=a)
            np.add(a, b, out=b)
            assert (a == n + 1).all()
            assert (b == (n + 1) * (n + 2) / 2).all()
        stats = arena.stats()
    return stats, capfd.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("LoopsInVictim", f"did not return from victim() within {SOON} s"),
        ("LoopsInOnFault", f"did not return from on_fault(3) within {SOON} s"),
        ("Sleeps", "did not return from on_eviction(0)"),
        ("EndsItsProcess", "ended its process with exit code 0 in victim()"),
        ("ExitsAsIfClosed", "ended its process with exit code 100 in victim()"),
        ("ExitsAsIfFailed", "ended its process with exit code 101 in victim()"),
        ("Crashes", "ended its process by SIGSEGV in victim()"),
        ("KillsItself", "ended its process by SIGKILL in victim()"),
        ("Stops", "stopped its process again, now in victim()"),
        ("ClosesFiles", "ended its process with exit code 1"),
        ("ExitsFromThread", "ended its process with exit code 100"),
        ("AlarmsItself", "ended its process by SIGALRM"),
        ("LoopsInThePager", "did not return from __init__() within 5 s"),
        ("Exits", "raised in victim(): SystemExit: 3"),
        ("Raises", "raised in on_fault(3): ValueError: it is Tuesday"),
        ("NamesNobody", "named region [0] in victim()"),
    ],
)
def test_an_eviction_policy_that_fails_is_replaced(
    name: str, said: str, capfd: pytest.CaptureFixture[str]
) -> None:
    watchdog = SOON if said.startswith(("did not return", "stopped")) else NEVER
    stats, err = use(capfd, watchdog, eviction=f"{BAD}:{name}")
    (line,) = err.splitlines()
    assert line.startswith("tidegate: warning: policy '")
    assert said in line
    assert line.endswith("; eviction goes on with 'lrm'")
    assert (stats["eviction"], stats["replaced"]) == ("lrm", {"eviction": f"{BAD}:{name}"})


@pytest.mark.slow
def test_a_policy_that_lowers_limits_is_replaced_when_they_matter(tmp_path: Path) -> None:
    np.ones(1 << 18).tofile(tmp_path / "data")
    options: Any = SMALL | {"eviction": f"{BAD}:LowersLimits"}
    with Arena(**options, watchdog=NEVER) as arena:
        a = arena.zeros(1 << 17)
        a += 1
        b = arena.open(tmp_path / "data", "f8")
        assert (a.sum(), b.sum()) == (1 << 17, 1 << 18)
        assert arena.stats()["replaced"] == {"eviction": f"{BAD}:LowersLimits"}


@pytest.mark.slow
def test_a_policy_that_forks_leaves_one_pager(capfd: pytest.CaptureFixture[str]) -> None:
    stats, err = use(capfd, NEVER, eviction=f"{BAD}:Forks")
    assert not err
    assert (stats["replaced"], stats["restarts"]) == ({}, 0)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("LoopsWhenMade", "LoopsWhenMade' did not start within 5 s; mend it"),
        ("StopsWhenMade", "StopsWhenMade' did not start within 5 s; mend it"),
        ("ExitsWhenMade", "the arena's supervisor ended while it started"),
    ],
)
def test_a_policy_that_cannot_be_made_is_an_error(name: str, said: str) -> None:
    with pytest.raises(TidegateError, match=re.escape(said)):
        Arena(**SMALL, eviction=f"{BAD}:{name}", watchdog=SOON)  # type: ignore[arg-type]


@pytest.mark.slow
def test_another_kind_of_policy_is_replaced_alone(capfd: pytest.CaptureFixture[str]) -> None:
    stats, err = use(capfd, prefetch=f"{BAD}:PrefetchLoops")
    assert "on_fault(3)" in err
    assert err.endswith("; prefetch goes on with 'none'\n")
    assert (stats["eviction"], stats["prefetch"]) == ("fifo", "none")


@pytest.mark.slow
@pytest.mark.parametrize(
    "policies",
    [
        {"eviction": f"{BAD}:EvictsEverything"},
        {"prefetch": f"{BAD}:PrefetchesEverything"},
        {"eviction": "mru", "prefetch": f"{BAD}:PrefetchesEverything"},
    ],
)
def test_policies_that_empty_or_fill_memory_let_the_program_go_on(
    policies: dict[str, str], capfd: pytest.CaptureFixture[str]
) -> None:
    stats, err = use(capfd, NEVER, **policies)
    assert not err
    assert not stats["replaced"]
    assert stats["faults"] < 5000  # an element at a time it would be 262,144 for each addition


@pytest.mark.slow
def test_a_policy_that_has_lost_its_list_is_said_at_the_end(
    capfd: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(TidegateError, match=r"finished\(\): AssertionError: my list is not"):
        use(capfd, NEVER, eviction=f"{BAD}:LosesItsList")


@pytest.mark.slow
def test_a_policy_that_loops_at_the_end_does_not_keep_the_arena_open(
    capfd: pytest.CaptureFixture[str],
) -> None:
    _, err = use(capfd, eviction=f"{BAD}:LoopsAtTheEnd")
    assert "did not return from finished()" in err


@pytest.mark.slow
def test_scripts_go_on_and_their_policies_are_checked_too(tmp_path: Path) -> None:
    path = script(tmp_path, "a = np.ones(1 << 18)\nprint(a.sum())\n")
    options = ("--near", "1MiB", "--geometry", "16KiB/128KiB", "--min-array", "64KiB")
    done = live("run", *options, "--eviction", f"{BAD}:LosesItsList", path)
    assert (done.returncode, done.stdout) == (0, "262144.0\n"), done.stderr
    assert "tidegate: warning: policy 'careless' raised in finished(): Assertion" in done.stderr
    watched = (*options, "--watchdog", str(SOON), "--eviction", f"{BAD}:LoopsInVictim")
    done = live("run", *watched, path)
    assert (done.returncode, done.stdout) == (0, "262144.0\n"), done.stderr
    assert f"lrm (in place of {BAD}:LoopsInVictim)" in done.stderr


@pytest.mark.slow
def test_an_arena_that_is_never_closed_checks_its_policies() -> None:
    code = f"""
from tidegate.live import Arena
arena = Arena(**{SMALL!r}, eviction="{BAD}:LosesItsList")
a = arena.zeros(1000)
a += 1
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=200)
    assert "raised in finished(): AssertionError" in done.stderr
    assert done.returncode == 1


@pytest.mark.slow
def test_ctrl_c_is_heeded_when_the_policy_is_replaced() -> None:
    code = f"""
from tidegate.live import Arena
arena = Arena(**{SMALL!r}, eviction="{BAD}:LoopsInVictim", watchdog=3)
with arena:
    a = arena.zeros(1 << 17)
    print("ready", flush=True)
    while True:
        a += 1
"""
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.send_signal(signal.SIGINT)  # now, or while the program waits for the policy
        _, err = process.communicate(timeout=200)
    assert process.returncode == -signal.SIGINT
    assert "KeyboardInterrupt" in err


@pytest.mark.parametrize("seconds", [0, -1, float("nan")])
def test_a_watchdog_without_time_is_refused(seconds: float) -> None:
    with pytest.raises(TidegateError, match="must be positive"):
        Arena(**SMALL, watchdog=seconds)  # type: ignore[arg-type]


# The watchdog by itself, with a clock of its own


LOOPS, STOPPED, SLEEPS, STARVES = range(4)  # processes


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [0.0]
    monkeypatch.setattr(calls.time, "monotonic", lambda: now[0])
    state = {LOOPS: ("R", 1.0), STOPPED: ("T", 0), SLEEPS: ("S", 0), STARVES: ("R", 0)}
    monkeypatch.setattr(calls, "_progress", lambda pid: (state[pid][0], now[0] * state[pid][1]))
    return now


def watch(seconds: float = 5) -> tuple[PolicyCalls, Watchdog]:
    empty = dict.fromkeys(("page", "region", "pages", "frames", "samples", "middle_bytes"), 0)
    setup = ArenaSetup(
        name="",
        eviction="mine",
        prefetch="none",
        placement="um",
        observed=None,
        observe_share=0.03,
        watchdog=seconds,
        tiering="",
        **empty,  # type: ignore[arg-type]
    )
    noted = PolicyCalls()
    return noted, Watchdog(noted, setup)


@pytest.mark.parametrize("pid", [LOOPS, SLEEPS])
def test_only_one_long_call_is_overdue(pid: int, clock: list[float]) -> None:
    noted, watchdog = watch()
    for second in range(20):  # many short ones
        clock[0] = second
        noted.begin(code_of("eviction", "victim"), None)
        assert watchdog.overdue(pid) is None
    clock[0] += 4.9
    assert watchdog.overdue(pid) is None
    clock[0] += 0.2
    overdue = watchdog.overdue(pid)
    assert overdue == ("eviction", "policy 'mine' did not return from victim() within 5 s")
    noted.end()
    assert watchdog.overdue(pid) is None


def test_start_may_compile(clock: list[float]) -> None:
    (noted, watchdog), pid = watch(), LOOPS
    noted.begin(code_of("eviction", "start"), None)
    assert watchdog.overdue(pid) is None
    clock[0] = 49
    assert watchdog.overdue(pid) is None
    clock[0] = 51
    assert watchdog.overdue(pid) is not None


def test_a_pager_that_may_not_run_is_not_overdue(clock: list[float]) -> None:
    noted, watchdog = watch()
    noted.begin(code_of("eviction", "victim"), None)
    for second in (1, 10, 20):
        clock[0] = second
        assert watchdog.overdue(STARVES) is None


@pytest.mark.parametrize("name", ["lru", "mine.py:Mine"])
def test_a_pager_that_is_stopped_goes_on(
    name: str, clock: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Others may have stopped it; a user's policy is blamed the second time."""
    sent: list[tuple[int, int]] = []
    monkeypatch.setattr(os, "kill", lambda *given: sent.append(given))
    noted, watchdog = watch()
    watchdog._setup.eviction = name
    noted.begin(code_of("eviction", "victim"), None)
    found = []
    for clock[0] in (1, 5, 6, 10, 14, 15):
        found.append(watchdog.overdue(STOPPED) is not None)
    own = name != "lru"
    assert found == [False] * 5 + [own]
    assert sent == [(STOPPED, signal.SIGCONT)] * (2 - own)


def test_only_a_users_policy_is_blamed_without_a_call() -> None:
    _, watchdog = watch()
    assert watchdog.died(100) is None
    watchdog._setup.prefetch = "mine.py:Mine"
    assert watchdog.died(-signal.SIGKILL) is None
    assert watchdog.died(100) == (
        "prefetch",
        "policy 'mine.py:Mine' ended its process with exit code 100",
    )


def test_a_pager_that_others_kill_is_nobodys_fault() -> None:
    noted, watchdog = watch()
    for _ in range(3):
        for _ in range(DEATHS - 1):
            noted.begin(code_of("eviction", "victim"), None)
            assert watchdog.died(-signal.SIGKILL) is None
        noted.end()
        assert watchdog.died(-signal.SIGKILL) is None
    noted.begin(code_of("eviction", "victim"), None)
    assert watchdog.died(-signal.SIGSEGV) is not None
