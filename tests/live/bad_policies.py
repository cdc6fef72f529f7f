"""Live policies that fail, each in its own way."""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import signal
import threading
import time
from typing import ClassVar

from tidegate.policies.eviction.fifo import FIFO
from tidegate.policies.interface.policy import PrefetchPolicy

TIME_TO_FAIL = 3  # the region; some are near by then


class LoopsInVictim(FIFO):
    name = "loops"

    def victim(self) -> int:
        while True:
            with contextlib.suppress(BaseException):
                time.sleep(0)


class LoopsInOnFault(FIFO):
    name = "loops"

    def on_fault(self, region: int) -> None:
        while region == TIME_TO_FAIL:
            pass
        super().on_fault(region)


class Sleeps(FIFO):
    name = "sleeps"

    def on_eviction(self, region: int) -> None:
        time.sleep(1e6)


class Exits(FIFO):
    name = "exits"

    def victim(self) -> int:
        raise SystemExit(3)


class EndsItsProcess(FIFO):
    name = "ends"

    def victim(self) -> int:
        os._exit(0)


class ExitsAsIfClosed(FIFO):
    name = "closed"

    def victim(self) -> int:
        os._exit(100)


class ExitsAsIfFailed(FIFO):
    name = "failed"

    def victim(self) -> int:
        os._exit(101)


class Crashes(FIFO):
    name = "crashes"

    def victim(self) -> int:
        return len(ctypes.string_at(8))


class KillsItself(FIFO):
    name = "kills"

    def victim(self) -> int:
        os.kill(os.getpid(), signal.SIGKILL)
        return super().victim()


class Stops(FIFO):
    name = "stops"

    def victim(self) -> int:
        signal.raise_signal(signal.SIGSTOP)
        return super().victim()


class Forks(FIFO):
    """The child would go on as a second pager."""

    name = "forks"

    def victim(self) -> int:
        os.fork()
        return super().victim()


class ClosesFiles(FIFO):
    name = "closes"

    def victim(self) -> int:
        os.closerange(3, 256)
        return super().victim()


class LowersLimits(FIFO):
    name = "limits"

    def start(self) -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (8, 8))
        super().start()


class FromThread(FIFO):
    """Its thread acts when ``victim`` has returned, or is about to; the next call waits for it."""

    thread: threading.Thread | None = None

    def victim(self) -> int:
        if self.thread is not None:
            self.thread.join()
        self.thread = threading.Thread(target=self.act, daemon=True)
        self.thread.start()
        return super().victim()

    def act(self) -> None:
        raise NotImplementedError


class ExitsFromThread(FromThread):
    name = "exits"

    def act(self) -> None:
        os._exit(100)


class AlarmsItself(FromThread):
    name = "alarms"

    def act(self) -> None:
        os.kill(os.getpid(), signal.SIGALRM)


class LoopsWhenMade(FIFO):
    name = "loops"

    def __init__(self) -> None:
        while True:
            with contextlib.suppress(BaseException):
                time.sleep(0)


class StopsWhenMade(FIFO):
    name = "stops"

    def __init__(self) -> None:
        signal.raise_signal(signal.SIGSTOP)


class ExitsWhenMade(FIFO):
    name = "exits"

    def __init__(self) -> None:
        os._exit(0)


class LoopsInThePager(FIFO):
    """It is made a first time in the supervisor."""

    name = "loops"
    made: ClassVar[list[int]] = []

    def __init__(self) -> None:
        super().__init__()
        self.made.append(0)
        while len(self.made) > 1:
            pass


class Raises(FIFO):
    name = "raises"

    def on_fault(self, region: int) -> None:
        if region == TIME_TO_FAIL:
            raise ValueError("it is Tuesday")
        super().on_fault(region)


class NamesNobody(FIFO):
    name = "nobody"

    def victim(self) -> int:
        return [0]  # type: ignore[return-value]


class EvictsEverything(FIFO):
    name = "everything"

    def on_fault(self, region: int) -> None:
        super().on_fault(region)
        for other in self.resident:
            self.memory.evict(other)


class LosesItsList(FIFO):
    name = "careless"

    def finished(self) -> None:
        raise AssertionError("my list is not the resident set")


class LoopsAtTheEnd(FIFO):
    name = "loops"

    def finished(self) -> None:
        while True:
            pass


class PrefetchLoops(PrefetchPolicy):
    name = "loops"

    def on_fault(self, region: int) -> None:
        while region == TIME_TO_FAIL:
            pass


class PrefetchesEverything(PrefetchPolicy):
    name = "everything"

    def on_fault(self, region: int) -> None:
        pages = self.memory.geometry.pages_per_region
        self.memory.prefetch(0, self.memory.regions * pages)
