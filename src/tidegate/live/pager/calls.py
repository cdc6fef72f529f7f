"""Calls of policies, noted in memory that the supervisor shares, and what happens when one fails.

    pager        note("eviction", "victim") ──▶ the policy ──▶ done
    supervisor   Watchdog: the same call for longer than its limit? died in a call?

A policy that loops, exits, crashes or raises costs its program nothing but a warning: its pager is
ended, as any pager may be at any moment, and the next one runs with the plain policy of its kind.
"""

from __future__ import annotations

import mmap
import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from tidegate.display.tables import printable
from tidegate.errors import PolicyError
from tidegate.live.arena.setup import ArenaSetup

# what takes the place of a policy that failed; "lrm" is the driver's own
PLAIN = {"eviction": "lrm", "prefetch": "none", "placement": "um", "tiering": "tier-order"}
KINDS = tuple(PLAIN)
METHODS = (
    *("start", "on_launch", "on_fault", "on_prefetch", "on_eviction", "on_free"),
    *("on_notification", "victim", "observe", "finished", "place", "on_return", "spill"),
    "__init__",
)
START_TIMES = 10  # ``start`` and ``__init__`` may take so many times as long: they may compile
# deaths in a row, each in a policy's call, that the policy is blamed for; a pager may be killed by
# others at any moment, so one death says nothing
DEATHS = 20
# states of a process in /proc; a debugger may stop one, too
RUNNABLE, STOPPED, IDLE = "R", "T", "TtZX"
_KILLED = {-signal.SIGKILL, -signal.SIGTERM}
_COUNT, _CODE, _ARGUMENT, _WORKS, _LEFT = range(5)  # words
_NO_ARGUMENT = 1 << 62


class PolicyFailure(PolicyError):
    """A policy of this kind cannot go on."""

    def __init__(self, kind: str, said: str):
        super().__init__(said)
        self.kind = kind


class Call(NamedTuple):
    """A call of the policy of one kind."""

    kind: str
    method: str
    argument: int | None

    def __str__(self) -> str:
        return f"{self.method}({'' if self.argument is None else self.argument})"


class PolicyCalls:
    """The call that a pager is in, and whether it works."""

    def __init__(self) -> None:
        self._words = memoryview(mmap.mmap(-1, 40)).cast("q")

    def clear(self) -> None:
        """Begin for a new pager."""
        self._words[_CODE] = self._words[_WORKS] = self._words[_LEFT] = 0

    @contextmanager
    def of(self, kind: str, method: str, argument: int | None = None) -> Iterator[None]:
        """Note a call for as long as the block lasts."""
        self.begin(code_of(kind, method), argument)
        try:
            yield
        finally:
            self.end()

    def begin(self, code: int, argument: int | None) -> None:
        """Note that a call begins; ``code`` is of ``code_of``."""
        words = self._words
        words[_COUNT] += 1
        words[_ARGUMENT] = _NO_ARGUMENT if argument is None else argument
        words[_CODE] = code

    def end(self) -> None:
        """Note that the call is over."""
        self._words[_CODE] = 0

    @property
    def current(self) -> Call | None:
        """The call that the pager is in, if any."""
        code, argument = self._words[_CODE], self._words[_ARGUMENT]
        if not code:
            return None
        kind, method = divmod(code - 1, len(METHODS))
        return Call(KINDS[kind], METHODS[method], None if argument == _NO_ARGUMENT else argument)

    @property
    def count(self) -> int:
        """Calls so far."""
        return self._words[_COUNT]

    @property
    def works(self) -> bool:
        """Whether this pager has served something, or waits for something to serve."""
        return bool(self._words[_WORKS])

    @works.setter
    def works(self, value: bool) -> None:
        self._words[_WORKS] = value

    @property
    def left(self) -> int:
        """How the pager ended by itself; 0 if it did not: a policy may end its process."""
        return self._words[_LEFT]

    @left.setter
    def left(self, value: int) -> None:
        self._words[_LEFT] = value


def code_of(kind: str, method: str) -> int:
    """Return the number of a call."""
    return 1 + KINDS.index(kind) * len(METHODS) + METHODS.index(method)


class Failure(NamedTuple):
    """The kind of a policy that failed, and how."""

    kind: str
    said: str


class Watchdog:
    """Finds the policy that keeps its pager from working."""

    def __init__(self, calls: PolicyCalls, setup: ArenaSetup):
        self._calls, self._setup, limit = calls, setup, setup.watchdog
        # the latest call, and when it was seen first: by the clock, and processor time until then
        self._seen, self._since, self._used = -1, 0.0, 0.0
        self._deaths = 0
        self._stopped_since, self._continued = 0.0, False
        self.poll_ms = max(1, int(min(limit / 2, 60) * 1000))

    def overdue(self, pid: int) -> Failure | None:
        """Return what is wrong if this pager has been in one call for too long."""
        call, count, now = self._calls.current, self._calls.count, time.monotonic()
        state, used = _progress(pid)
        if state != STOPPED:
            self._stopped_since = 0.0
        elif (failure := self._stopped(pid, call, now)) is not None:
            return failure
        if call is None or getattr(self._setup, call.kind) == PLAIN[call.kind]:
            return None
        if count != self._seen or state in IDLE:
            self._seen, self._since, self._used = count, now, used
            return None
        limit = self._setup.watchdog * (START_TIMES if call.method in ("start", "__init__") else 1)
        # a process that could run and may not is not to be blamed
        took = used - self._used if state == RUNNABLE else now - self._since
        if took < limit:
            return None
        return self._failure(call, f"did not return from {call} within {limit:g} s")

    def _stopped(self, pid: int, call: Call | None, now: float) -> Failure | None:
        """Let a stopped pager go on after a while: others may have stopped it.

        A policy of a user's file is blamed if that happens in its calls a second time.
        """
        if not self._stopped_since:
            self._stopped_since = now
        elif now - self._stopped_since >= self._setup.watchdog:
            if call is not None and ".py" in getattr(self._setup, call.kind):
                if self._continued:
                    return self._failure(call, f"stopped its process again, now in {call}")
                self._continued = True
            self._stopped_since = 0.0
            os.kill(pid, signal.SIGCONT)
        return None

    def died(self, status: int) -> Failure | None:
        """Return what is wrong if a pager's end is to be blamed on a policy.

        That is the one it was calling; else one of a user's file, which may have threads.
        """
        call, said = self._calls.current, f"with exit code {status}"
        if status < 0:
            said = f"by {signal.Signals(-status).name}"
        if call is None:
            self._deaths = 0
            return None if status in _KILLED else suspect(self._setup, f"ended its process {said}")
        self._deaths += call.method != "start"  # which may take long: others may kill it there
        if status in _KILLED and self._deaths < DEATHS:
            return None
        return self._failure(call, f"ended its process {said} in {call}")

    def _failure(self, call: Call, said: str) -> Failure:
        return Failure(call.kind, f"policy '{getattr(self._setup, call.kind)}' {said}")


def _progress(pid: int) -> tuple[str, float]:
    """Return the state of a process and its seconds of processor time."""
    try:
        words = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    except (FileNotFoundError, ProcessLookupError):
        return IDLE[-1], 0
    return words[0], (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


def suspect(setup: ArenaSetup, said: str) -> Failure | None:
    """Blame a policy of a user's file, if there is one, for what no call can be blamed for."""
    for kind in KINDS:
        if ".py" in (name := getattr(setup, kind)):
            return Failure(kind, f"policy '{name}' {said}")
    return None


def replace_policy(setup: ArenaSetup, failure: Failure) -> bool:
    """Put the plain policy in place of one that failed, with a warning; False if it is that one."""
    kind = failure.kind
    failed, plain = getattr(setup, kind), PLAIN[kind]
    if failed == plain:
        return False
    setattr(setup, kind, plain)
    setup.replaced[kind] = failed
    said = f"warning: {printable(failure.said)}; {kind} goes on with '{plain}'"
    os.write(2, f"tidegate: {said}\n".encode())
    return True
