"""How fast are the policy ``leu`` in whole runs, its search for a victim, and exact LEU?

Whole runs: the zipf workload, in segments made beforehand. Faults take most of the time there
whatever the policy, so ``lrm`` and ``lru-ideal`` are run beside it. The search: the compiled policy
alone, called as the mechanism does, with a given number of resident regions; after each victim
another region arrives and is touched. Exact LEU: several kinds of sequence over twice as many
blocks as fit.
"""

from __future__ import annotations

import ctypes
import time

import numpy as np

from benchmarks.in_memory import InMemory
from benchmarks.row import Row
from benchmarks.timing import best_of
from tidegate import RunSpec
from tidegate.analysis.exact import leu_misses
from tidegate.policies.eviction.leu.policy import LEU
from tidegate.policies.interface.events import EVENT_BITS, EVICTION, FAULT, VICTIM
from tidegate.policies.interface.page_flags import BITS
from tidegate.workload import Geometry, blocks_of
from tidegate.workloads.random_pages import Zipf, generator

PAGES, TOUCHES, SEGMENT, PAGE = 163_840, 20_000_000, 1 << 20, 64 * 1024
RATE = 20.0  # M touches/s, whole runs
EXACT = 1.0  # M touches/s
RESIDENT = (1_000, 10_000, 100_000, 1_000_000)
FLAT = 2.0  # at most: the search among 1e6 over that among 1e3
VICTIMS = 20_000
BLOCKS, EXACT_TOUCHES = 200_000, 4_000_000
REPETITIONS = 3


def leu() -> list[Row]:
    return [*_whole_runs(), *_searches(), *_exact()]


def _whole_runs() -> list[Row]:
    numbers = Zipf(PAGES, 0.9, seed=1).draw(generator(1, 1), TOUCHES)
    segments = [
        blocks_of(16, numbers[first : first + SEGMENT], bytes=PAGE)
        for first in range(0, TOUCHES, SEGMENT)
    ]
    trace = InMemory(PAGES, [segments], Geometry(PAGE, PAGE))
    rows = []
    for share, target in ((2 / 3, None), (0.95, RATE)):
        seconds, faults = {}, 0
        for policy in ("lrm", "lru-ideal", "leu"):
            spec = RunSpec(
                trace, eviction=policy, prefetch="none", near=round(share * trace.footprint)
            )
            timing = best_of(
                REPETITIONS, lambda s: s.run() or int(s.books["faults"][0]), spec.prepare
            )
            seconds[policy], faults = timing.cpu, timing.result
        beside = ", ".join(f"{p} {TOUCHES / s / 1e6:.1f}" for p, s in seconds.items() if p != "leu")
        ratio = seconds["leu"] / seconds["lru-ideal"]
        against = f"{beside}; {faults / TOUCHES:.1%} of touches fault; {ratio:.2f} × lru-ideal"
        rate = TOUCHES / seconds["leu"] / 1e6
        rows.append(
            Row(f"leu: zipf, {share:.0%} near", rate, "M touches/s", against, target, at_least=True)
        )
    return rows


def _searches() -> list[Row]:
    spent = {resident: min(_search(resident) for _ in range(REPETITIONS)) for resident in RESIDENT}
    told = (
        " → ".join(f"{s:.2f}" for s in spent.values())
        + " µs for 1e3 to 1e6 resident, the calls' own cost among them"
    )
    return [
        Row(
            "leu: a victim among 1e6, over 1e3",
            spent[RESIDENT[-1]] / spent[RESIDENT[0]],
            "×",
            told,
            FLAT,
        )
    ]


def _search(resident: int) -> float:
    """Return µs for a victim, its eviction, and the arrival and first touch of another region."""
    pages = resident + VICTIMS + 1
    rng = np.random.default_rng(1)
    warm = np.concatenate([np.arange(resident), rng.integers(0, resident, resident)])
    trace = InMemory(pages, [[blocks_of(16, warm, bytes=PAGE)]], Geometry(PAGE, PAGE))
    simulation = RunSpec(trace, eviction=LEU(), near=resident * PAGE, prefetch="none").prepare()
    simulation.run()
    caller = simulation._choices[0].caller
    twin = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)(caller.address)
    own, memory = caller.own, simulation.memory
    touches, turn = memory.books["touches"], memory.books["turn"]
    begin = time.process_time()
    for region in range(resident, resident + VICTIMS):
        victim = twin(own, VICTIM)
        twin(own, EVICTION | victim << EVENT_BITS)
        twin(own, FAULT | region << EVENT_BITS)
        memory.latest[region] = touches[0] << BITS
        memory.region_touches[region] = 1
        touches[0] += 1
        turn[0] += 1
    return (time.process_time() - begin) / VICTIMS * 1e6


def _exact() -> list[Row]:
    rng = np.random.default_rng(2)
    n = EXACT_TOUCHES
    kinds = {
        "zipf": Zipf(BLOCKS, 0.9, seed=1).draw(generator(1, 1), n),
        "uniform": rng.integers(0, BLOCKS, n),
        "loop": np.arange(n) % BLOCKS,
        "runs of 10": np.repeat(rng.integers(0, BLOCKS, n // 10), 10),
        "loop and hot blocks": np.where(
            rng.random(n) < 0.5, rng.integers(0, BLOCKS // 20, n), np.arange(n) % BLOCKS
        ),
    }
    rows = []
    leu_misses([0, 1, 2, 0], 2)  # compiled here, not in the time of the first kind
    for name, ids in kinds.items():
        timing = best_of(
            1, lambda ids: leu_misses(ids, BLOCKS // 2), lambda ids=ids: np.asarray(ids, np.int32)
        )
        against = (
            f"{timing.result / n:.1%} miss; {n:.0e} touches, distributions counted among the time"
        )
        rate = n / timing.cpu / 1e6
        rows.append(
            Row(
                f"exact LEU, 1e5 resident: {name}",
                rate,
                "M touches/s",
                against,
                EXACT,
                at_least=True,
            )
        )
    return rows
