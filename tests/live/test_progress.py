"""Each thread gets on, whatever the policy answers, and however late it runs."""

from __future__ import annotations

import threading
import time
import zlib
from typing import Any

import numpy as np
import pytest

from live.sequences import GEOMETRY, live_policies
from tidegate.live import Arena
from tidegate.live.pager.engine import Engine
from tidegate.live.pager.no_mover import NoMover
from tidegate.live.pager.threads import HELD_TURNS, Threads
from tidegate.policies.interface.policy import EvictionPolicy
from tidegate.policies.prefetch.together import make_prefetch
from tidegate.policies.registries import eviction, placement
from tidegate.trace.trace import Object

PPR = GEOMETRY.pages_per_region
QUICK = ("mru", "loop", "tournament")


class Newest(EvictionPolicy):
    """Evict what was brought last, also if it is served."""

    def on_fault(self, region: int) -> None:
        self.order.move_to_tail(region)

    def on_eviction(self, region: int) -> None:
        self.order.remove(region)

    def victim(self) -> int:
        return int(self.order.tail)


def make_engine(policy: EvictionPolicy, frames: int, regions: int) -> Engine:
    policies = (policy, make_prefetch("none"), placement.make("um"))
    mover: Any = NoMover()
    engine = Engine(GEOMETRY, frames, policies, mover)
    engine.set_objects((Object("a", regions * GEOMETRY.region, 0, regions * PPR),))
    engine.start()
    return engine


class LateThread:
    """A thread that goes over its own regions again and again."""

    def __init__(self, number: int, regions: list[int], rounds: int):
        self.number, self._left = number, regions * rounds

    def run(self, engine: Engine) -> int | None:
        """Use pages while they are near; return the page that is not, None at the end."""
        while self._left:
            if not engine.region[self._left[0]].near & 1:
                return self._left[0] * PPR
            self._left.pop(0)
        return None


def faults_until_the_end(engine: Engine, threads: list[LateThread], most: int) -> int:
    """Run threads in turn: each runs only when the faults of all others have been served."""
    faults, left = 0, list[int]()
    while threads and faults <= most:
        for thread in tuple(threads):
            page = thread.run(engine)
            if page is None:
                threads.remove(thread)
                continue
            number, bit = page // PPR, 1 << page % PPR
            faults += 1
            if engine.region[number].sampled & bit:
                engine.threads.note_use(thread.number, number)
                left = engine.serve(left, [page])
            else:
                engine.threads.note_fault(thread.number, number, bit)
                left = engine.serve([*left, page])
    return faults


@pytest.mark.parametrize("threads", [2, 3, 8])
@pytest.mark.parametrize("policy", [*live_policies(), "newest"])
def test_every_fault_lets_its_thread_run(policy: str, threads: int) -> None:
    """There is one fault for each use at most, or two if its page is sampled meanwhile."""
    made = Newest() if policy == "newest" else eviction.make(policy)
    engine = make_engine(made, threads + 2, 3 * threads)
    own = [LateThread(i + 1, [3 * i, 3 * i + 1, 3 * i + 2], 50) for i in range(threads)]
    uses = threads * 150
    assert faults_until_the_end(engine, own, 10 * uses) <= 2 * uses
    assert engine.count["evictions"] > 0
    engine.finished()


def test_for_one_thread_nothing_is_held() -> None:
    threads = Threads.for_frames(8)
    for turn in range(100):
        threads.note_fault(7, turn, 1)
        threads.begin(turn)
        threads.serve(turn, 1)
        assert not threads.held
        threads.end({})


def test_a_region_is_held_until_its_thread_faults_again_or_turns_have_passed() -> None:
    threads = Threads.for_frames(8)
    threads.note_fault(1, 10, 1)
    threads.note_fault(2, 20, 1)
    threads.begin(1)
    assert threads.held == {10, 20}
    threads.note_fault(1, 11, 1)
    threads.begin(2)
    assert threads.held == {11, 20}
    for turn in range(3, HELD_TURNS):  # thread 2 has ended, or sleeps
        threads.note_fault(1, turn, 1)
        threads.begin(turn)
        assert 20 in threads.held
    threads.begin(HELD_TURNS + 1)
    assert 20 not in threads.held


@pytest.mark.live
@pytest.mark.parametrize(
    "policy",
    [p if p in QUICK else pytest.param(p, marks=pytest.mark.slow) for p in live_policies()],
)
def test_real_threads_get_on(policy: str) -> None:
    """Four threads go over twice as many regions as there are frames."""
    frames, size, wrong = 6, 3 * GEOMETRY.region, list[int]()
    with Arena(frames * GEOMETRY.region, geometry=GEOMETRY, span="64MiB", eviction=policy) as arena:
        a = arena.empty(4 * size, "u1")
        a[:] = np.arange(len(a)) % 251

        def work(own: np.ndarray) -> None:
            first = zlib.crc32(own)  # it does not hold Python's lock
            wrong.extend(r for r in range(60) if zlib.crc32(own) != first)

        parts = [a[at : at + size] for at in range(0, len(a), size)]
        threads = [threading.Thread(target=work, args=(p,), daemon=True) for p in parts]
        for thread in threads:
            thread.start()
        end = time.monotonic() + 200
        for thread in threads:
            thread.join(max(0, end - time.monotonic()))
        assert not any(thread.is_alive() for thread in threads)
        assert not wrong
        assert arena.stats()["evictions"] > 0
        assert not arena.stats()["replaced"]
