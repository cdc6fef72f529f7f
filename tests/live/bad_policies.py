"""Live policies that fail, each in its own way."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import time

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
