"""Save every figure the program computes, and compare bit for bit after a change of the code.

    python -m benchmarks.answers save FILE      # compute all answers and write them
    python -m benchmarks.answers check FILE     # compute them again; exit code 1 if any differs
    python -m benchmarks.answers check FILE --only runs --like tournament

    runs        random runs on two tiers, compiled and in Python, and a few comparisons
    tiers       random runs on three tiers, compiled and in Python
    analyze     miss-ratio curves and LEU
    live        counts on real memory
    benchmarks  the runs that the modules of benchmarks/ time
    ledgers     every paper with --quick

FILE is JSON; a name that ends in .gz is compressed. ``save --only`` leaves the file's other
answers as they are. To try another checkout, put its ``src`` in PYTHONPATH.

Only the public surface is used, so that one script serves two states of the code: the command line
with ``--json``, ``tidegate.run`` with its keywords, ``tidegate.policy.EvictionPolicy`` and
``tidegate.Arena``. From a run it reads ``summary``, ``tables``, ``facts["policy_report"]`` and
``notes``.

Not compared: wall-clock times, keys of runs, digests, paths and prose, of which only the numbers
are kept. No run is read from the store.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import multiprocessing
import os
import queue
import random
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SEED = 20_240_611
RUNS, TIERED, COMPARED = 200, 40, 8
OWN = "a policy of the user's"
PAPERS = ("leu", "hybrid", "cppe", "gmt", "observuvm")  # the longest first
EVERY = 5.0  # seconds between lines of progress
CACHE = (
    Path(tempfile.gettempdir()) / f"tidegate-answers-{os.getuid()}"
)  # compiled code; no run is stored

Answers = dict[str, dict[str, Any]]  # by part, then by the case's name


@dataclass(frozen=True)
class Case:
    """One question: a verb and what it is asked with."""

    part: str
    name: str
    verb: str  # run, command or live
    asked: Any


# What is drawn from. Names, not registries: the same cases must be drawn whatever the code has.

Choices = dict[str, tuple[Any, ...]]  # an option and the values it may get

MACHINES = ("rtx3090-pcie4", "gh200", "v100-nvlink2", "gpgpusim-28sm", "a100-pcie3-ssd")
LEVELS = ("5%", "20%", "50%", "50%", "100%", "200%")
GEOMETRIES = (None, None, None, "4KiB/64KiB", "64KiB/64KiB", "64KiB/512KiB", "16KiB/2MiB")
_CPPE = (
    "2DC", "3DC", "B+T", "BFS", "BIC", "BKP", "DWT", "HOT", "HWL", "KMN", "MRQ", "MVT", "NW", "PAT",
    "SAD", "SGM", "SRD", "HYB",
)  # fmt: skip
_GMT = ("BFS", "Backprop", "Hotspot", "LavaMD", "MultiVectorAdd", "Pathfinder", "SSSP", "Srad")
_OPENMP = ("backprop", "bfs", "hotspot", "kmeans", "nn")
WORKLOADS: dict[str, Choices] = {
    "zipf": {"touches": (5000, 30000), "skew": (0.6, 0.9, 1.2), "seed": (1, 2, 3)},
    "uniform": {"touches": (5000, 30000), "seed": (1, 2, 3)},
    "chase": {"steps": (8, 32), "chains": (64, 512), "skew": (0.0, 0.8), "seed": (1, 2)},
    "cyclic": {"passes": (2, 5), "block": (1, 4, 16)},
    "stream": {"writes": (0.0, 0.5, 1.0)},
    "stencil": {"iterations": (2, 5), "lanes": (4, 8)},
    "matmul": {"wave": (64, 656), "lanes": (8, 16)},
    "blackscholes": {"iterations": (2, 6)},
    "2DC": {"iterations": (4,), "swap": (True, False)},
    "AN": {"buffers": ("own",)},
    "BFS": {"degree": (8.0, 30.0), "seed": (1, 2)},
    "BLK": {"iterations": (4,)},
    "BTR": {"fill": (0.6, 0.7), "seed": (1, 2)},
    "GMM": {"swizzle": (1, 4)},
    "GMV": {"iterations": (4,)},
    "HEL": {"tile": (32,)},
    "LU": {"pivot": (True, False), "nb": (256, 1024)},
    "MM": {"efficiency": (0.1, 0.5)},
    "SN": {},
    "SPM": {"density": (0.01, 0.05), "seed": (1, 2)},
    "SR2": {"uplo": ("lower", "upper")},
    "SRK": {"trans": ("N", "T")},
    **{f"cppe-{name}": {} for name in _CPPE},
    "cppe-HIS": {"iterations": (3,)},
    "cppe-HSD": {"iterations": (2,)},
    "cppe-LEU": {"rounds": (20,)},
    "cppe-SPV": {"iterations": (4,)},
    "cppe-STN": {"iterations": (2,)},
    **{f"gmt-{name}": {} for name in _GMT},
    "gmt-PageRank": {"iterations": (3,)},
    **{f"openmp-{name}": {"distances": ("launches",)} for name in _OPENMP},
    "openmp-cfd": {"iterations": (4,)},
    "openmp-louvain": {"rounds": (4,), "elsewhere": (0.1, 1.0)},
    "openmp-srad": {"iterations": (5,)},
}  # fmt: skip
EVICTIONS: dict[str, Choices] = {
    "belady": {}, "clock": {}, "fifo": {}, "lrm": {}, "lru": {}, "lru-ideal": {}, "mru": {},
    "cp": {"start_share": (0.25, 1.0), "floor": (0.01, 0.2), "observe_share": (0.1, 0.5, 1.0),
           "step": (1, 3)},
    "hpe": {"interval": (8, 64), "regular": (0.6, 0.9), "irregular": (0.2, 0.5),
            "limit": (0, 4), "buffer": (1, 8)},
    "leu": {"sample": (0.3, 1.0), "table": (4, 256), "batch": (1, 16, 100), "forget": (0, 50)},
    "leu-at-fault": {"table": (4, 256)},
    "leu-observed": {"table": (4, 256), "batch": (1, 16), "forget": (0, 50)},
    "lfu": {"bins": (2, 8, 64), "remember": (True, False), "fault_counts": (True, False)},
    "mhpe": {"interval": (8, 64), "counts": ("pages", "faults"), "t1": (5, 32), "t2": (4, 40),
             "t3": (0, 32), "nearest": (0, 2), "farthest": (2, 8), "skip": ("new", "nothing"),
             "sparse": (0, 3), "patterns": ("lru", "always")},
    "random": {"seed": (0, 1, 2, 3)},
    "reserved-lru": {"percent": (0, 10, 35, 99)},
    "sle": {"block": ("64KiB", "256KiB", "4MiB")},
    "tbne": {"span": ("512KiB", "2MiB", "8MiB")},
    "tournament": {"policies": ("lru+lfu+cp", "lrm+mru", "lru+mru+random", "lru-ideal+leu",
                                "cp+lfu(bins=4)"),
                   "patience": (3, 20, 100), "margin": (1.0, 1.2), "afresh": (True, False)},
}  # fmt: skip
PREFETCHES: dict[str, Choices] = {
    "none": {}, "region": {}, "fdp+rgp": {}, "tree+rgp(ahead=1)": {},
    "early-adaptor": {"window": (4, 32), "again": (0.1, 0.5)},
    "fdp": {"every": (1, 4), "enough": (2, 16), "share": (0.3, 0.8), "bold": (1, 20),
            "shy": (51, 90)},
    "pattern": {"scheme": (1, 2), "sparse": (0, 4)},
    "rgp": {"ahead": (1, 2, 5), "streak": (1, 2, 3)},
    "sequential-local": {"block": ("64KiB", "256KiB")},
    "stop-when-full": {"of": ("sequential-local", "region", "tree")},
    "tbnp": {"span": ("512KiB", "2MiB", "8MiB")},
    "tree": {"threshold": (1, 25, 51, 100)},
}  # fmt: skip
_OBJECTS: Choices = {
    "transfer": ("density", "explicit", "implicit"), "threshold": (0.1, 0.5, 2.0),
    "partial": ("no", "rest", "at once"),
}  # fmt: skip
PLACEMENTS: dict[str, Choices] = {
    "um": {}, "host": {}, "prefetch-all": {},
    "acbm": {"threshold": (1, 16, 256)},
    "glm": _OBJECTS, "object-lru": _OBJECTS, "rdm": _OBJECTS,
    "rlm": _OBJECTS | {"remember": (True, False)},
    "explicit": {"copies": ("program", "launch")},
}  # fmt: skip
SYSTEMS = (
    "uvm", "acbm", "ea", "lru", "lfu", "cp", "tm", "tm+", "tm++", "sl+lru", "cppe", "cppe-scheme1",
    "sl+mhpe", "sl+random", "sl+lru-10%", "sl+lru-20%", "sl-stop+lru", "sl+hpe", "tbn", "host",
    "um-pf", "explicit", "object-lru", "rlm", "glm", "rdm",
)  # fmt: skip
TIERINGS: dict[str, Choices] = {
    "bam": {}, "tier-belady": {}, "tier-order": {},
    "hmm": {"cached": ("inclusive", "exclusive"), "ahead": (1, 2, 5)},
    "tier-random": {"share": (0.0, 0.3, 1.0), "seed": (0, 1, 2)},
    "tier-reuse": {"batch": (50, 10000), "samples": (0, 1000, 200000), "every": (1, 3),
                   "window": (4, 64), "idle": (0.0, 0.5, 0.8), "full": ("discard", "fifo"),
                   "reach": ("middle", "both"), "unknown": ("middle", "far"),
                   "weights": ("page", "shared")},
}  # fmt: skip


# Cases


def cases() -> list[Case]:
    """Return every case, the longest parts first."""
    return [*_ledgers(), *_benchmarks(), *_runs(), *_tiers(), *_analyses(), *_live()]


def _spec(draw: random.Random, name: str, options: Choices, chance: float = 0.5) -> str:
    """Return a name with some of its options, each with one of its values."""
    given = [
        f"{key}={draw.choice(values)}" for key, values in options.items() if draw.random() < chance
    ]
    return f"{name}({', '.join(given)})" if given else name


def _workload(draw: random.Random, name: str) -> str:
    sized = {"bytes": (f"{draw.randrange(16, 64)}MiB",)} | WORKLOADS[name]
    return _spec(draw, name, sized, chance=1.0)


def _rounds(draw: random.Random, names: Iterable[str]) -> Iterator[str]:
    """Yield all names in a random order, again and again, so that each occurs equally often."""
    while True:
        yield from draw.sample(list(names), len(list(names)))


def _case(part: str, number: int, asked: dict[str, Any]) -> Case:
    said = " ".join(f"{key}={value}" for key, value in asked.items() if key != "workload")
    return Case(part, f"{number:03} {asked['workload']} {said}", "run", asked)


def _runs() -> Iterator[Case]:
    """Yield random runs on two tiers, each compiled and in Python, then commands that compare."""
    draw = random.Random(SEED)
    of = {key: _rounds(draw, names) for key, names in (
        ("workload", WORKLOADS), ("eviction", EVICTIONS), ("prefetch", PREFETCHES),
        ("placement", PLACEMENTS), ("system", SYSTEMS),
    )}  # fmt: skip
    for number in range(RUNS):
        asked: dict[str, Any] = {
            "workload": _workload(draw, next(of["workload"])),
            "machine": draw.choice(MACHINES),
        }
        if number % 4 == 3:
            asked["system"] = next(of["system"])
        if number % 4 != 3 or draw.random() < 0.3:
            name = next(of["eviction"])
            asked["eviction"] = _spec(draw, name, EVICTIONS[name])
        if number % 4 != 3:
            name = next(of["prefetch"])
            asked["prefetch"] = _spec(draw, name, PREFETCHES[name])
        if number % 4 == 1:
            name = next(of["placement"])
            asked["placement"] = _spec(draw, name, PLACEMENTS[name])
        asked |= _settings(draw)
        for compiled in (True, False):
            yield _case("runs", number, _legal(asked) | {"compiled": compiled})
    yield from _comparisons(draw)


def _legal(asked: dict[str, Any]) -> dict[str, Any]:
    """Replace what cannot be run: explicit copies must fit; leu fails with prefetch-all."""
    bundle = {asked.get("system"), asked.get("placement", "").partition("(")[0]}
    if "explicit" in bundle:
        others = {key: value for key, value in asked.items() if key != "oversubscribe"}
        return others | {"near": "128MiB"}
    if asked.get("eviction", "").startswith("leu") and bundle & {"prefetch-all", "um-pf"}:
        return asked | {"placement": "um"}
    return asked


def _settings(draw: random.Random) -> dict[str, Any]:
    """Draw the keywords that are no policies; most are left to their defaults."""
    rare = {
        "geometry": GEOMETRIES, "slots": (1, 7, 64), "dirty_only": (True,), "samples": (1, 4),
        "observed": (2, 16), "watched": (3, 50), "pipelined": (True, False),
        "scale": ("1/2", "3/4"),
    }  # fmt: skip
    if draw.random() < 0.8:
        drawn: dict[str, Any] = {"oversubscribe": draw.choice(LEVELS)}
    else:
        drawn = {"near": f"{draw.randrange(6, 24)}MiB"}
    drawn |= {key: draw.choice(values) for key, values in rare.items() if draw.random() < 0.25}
    return {key: value for key, value in drawn.items() if value is not None}


def _comparisons(draw: random.Random) -> Iterator[Case]:
    for number in range(COMPARED):
        workload = _workload(draw, draw.choice(list(WORKLOADS)))
        words = ["compare", workload, "--oversubscribe", "20%,100%"]
        if number % 4 == 0:
            words += ["--system", ",".join(draw.sample(SYSTEMS, 3))]
        elif number % 4 == 1:
            words += ["--tiering", ",".join(draw.sample(list(TIERINGS)[:4], 2))]
        elif number % 4 == 2:
            racers = ",".join(draw.sample(list(EVICTIONS), 4))
            words += ["--eviction", racers, "--prefetch", "none,tree"]
        yield _command("runs", *words, "--workers", "1", "--no-cache")


def _tiers() -> Iterator[Case]:
    """Yield random runs on three tiers, each compiled and in Python."""
    draw = random.Random(SEED + 1)
    single = [
        name for name in EVICTIONS if name not in ("sle", "tbne")
    ]  # which evict several pages
    tierings, evictions, workloads = (
        _rounds(draw, names) for names in (TIERINGS, single, WORKLOADS)
    )
    for number in range(TIERED):
        name = next(tierings)
        asked: dict[str, Any] = {
            "workload": _workload(draw, next(workloads)),
            "tiering": _spec(draw, name, TIERINGS[name]),
        }
        if name != "tier-belady" and draw.random() < 0.5:  # which chooses victims itself
            other = next(evictions)
            asked["eviction"] = _spec(draw, other, EVICTIONS[other])
        rare = {
            "near": ("2MiB", "5MiB"), "middle": ("0MiB", "4MiB", "16MiB"), "slots": (1, 64),
            "service": ("gpu", "cpu"), "shared": (False,), "read_ahead": (True,),
            "transfers": ("zero-copy",), "spare": (True,), "jitter": (16,),
            "most_stays": (0, 5), "flush": (False,), "traits": (True,),
        }  # fmt: skip
        asked |= {key: draw.choice(values) for key, values in rare.items() if draw.random() < 0.35}
        for compiled in (True, False):
            yield _case("tiers", number, asked | {"compiled": compiled})


def _analyses() -> Iterator[Case]:
    """Yield commands: miss-ratio curves, also sampled ones, and LEU."""
    draw = random.Random(SEED + 2)
    workloads = _rounds(draw, WORKLOADS)
    for number in range(20):
        words = ["analyze", _workload(draw, next(workloads))]
        words += ["--unit", draw.choice(("page", "region"))]
        words += ["--machine", draw.choice(MACHINES)] if draw.random() < 0.5 else []
        if number % 2:
            words += ["--leu"]
            words += ["--near", f"{draw.randrange(4, 16)}MiB"] if draw.random() < 0.5 else []
        elif draw.random() < 0.6:
            words += ["--shards", draw.choice(("10%", "50%"))]
        yield _command("analyze", *words)


def _ledgers() -> Iterator[Case]:
    for paper in PAPERS:
        yield _command("ledgers", "reproduce", paper, "--quick", "--workers", "1", "--no-cache")


def _command(part: str, *words: str) -> Case:
    return Case(part, " ".join(words), "command", words)


def _benchmarks() -> Iterator[Case]:
    """Yield what the modules of ``benchmarks/`` run, smaller where that would take long."""
    loop, long, matmul = (
        "cyclic(bytes=10GiB)",
        "cyclic(bytes=10GiB, passes=20)",
        "matmul(bytes=10GB)",
    )
    zipf, flat = (
        "zipf(bytes=10GiB, touches=10000000)",
        {"geometry": "64KiB/64KiB", "prefetch": "none"},
    )
    asked: dict[str, dict[str, Any]] = {
        "hit_path": {
            "workload": "cyclic(bytes=10GiB, passes=6)",
            "near": "10GiB",
            "prefetch": "region",
        },
        "flat_lru": {"workload": zipf, "eviction": "lru-ideal", "slots": 1, **flat},
        "python_policy": {
            "workload": loop,
            "eviction": "lrm",
            "prefetch": "region",
            "compiled": False,
        },
        "python_lru": {"workload": loop, "eviction": OWN, "prefetch": "region"},
        "start_up": {"workload": "cyclic(bytes=64MiB, passes=2)", "near": "48MiB"},
        "growth cyclic": {"workload": "cyclic(bytes=10GiB, passes=61)"},
        "growth zipf": {"workload": zipf},
        "growth pages": {"workload": "cyclic(bytes=64000000KiB, passes=2)"},
        "large_matmul lrm": {"workload": matmul, "eviction": "lrm"},
        "large_matmul belady": {"workload": matmul, "eviction": "belady"},
    }
    level = 1 / 0.95 - 1
    for name in ("lrm", "lru-ideal", "leu"):
        asked[f"leu {name}"] = {"workload": zipf, "eviction": name, "oversubscribe": level, **flat}
    for name in ("bam", "tier-order", "tier-reuse"):
        asked[f"tiers zipf {name}"] = {"workload": zipf, "tiering": name, "near": "1GiB"}
        asked[f"tiers loop {name}"] = {"workload": long, "tiering": name, "near": "1GiB"}
    yield from (Case("benchmarks", name, "run", given) for name, given in asked.items())
    exact = ["zipf(bytes=12800MiB, touches=1000000)", "--unit", "page", "--leu"]
    yield _command("benchmarks", "analyze", *exact)


def _live() -> Iterator[Case]:
    """Yield policies on real memory; those that see every touch cannot run there."""
    draw = random.Random(SEED + 3)
    for name in EVICTIONS:
        if name not in ("belady", "clock", "leu", "lru-ideal"):
            spec = name if name == "tournament" else _spec(draw, name, EVICTIONS[name])
            yield _live_case(spec, draw.choice(("none", "tree")))
    yield from (_live_case(draw.choice(("lrm", "lru", "tournament")), name) for name in PREFETCHES)


def _live_case(eviction: str, prefetch: str) -> Case:
    asked = {"eviction": eviction, "prefetch": prefetch}
    return Case("live", f"{eviction} {prefetch}", "live", asked)


# Answers


def answer(case: Case) -> Any:
    """Compute one case; a refusal is an answer, too."""
    import tidegate

    verbs: dict[str, Callable[[Any], Any]] = {
        "run": _run, "command": _run_command, "live": _run_live,
    }  # fmt: skip
    try:
        return verbs[case.verb](case.asked)
    except tidegate.TidegateError as error:
        print(f"refused: {case.name}: {error}", file=sys.stderr)
        return {"error": "TidegateError"}
    except Exception as error:
        print(f"FAILED: {case.name}: {type(error).__name__}: {error}", file=sys.stderr)
        return {"error": type(error).__name__}


def _run(asked: dict[str, Any]) -> dict[str, Any]:
    """Run in this process; tables are kept as a hash of each column."""
    import tidegate

    asked = dict(asked)
    if asked.get("eviction") == OWN:
        asked["eviction"] = _own_policy()
    run = tidegate.RunSpec.from_settings(asked.pop("workload"), asked).run(cache=False)
    # the options are in what was asked; files saved before runs repeated them stay valid
    name = run.summary["workload"].partition("(")[0]
    return _plain({
        "summary": run.summary | {"workload": name},
        "report": run.facts["policy_report"],
        "notes": list(map(_numbers, run.notes)),
        "tables": {
            name: {column: _digest(values) for column, values in columns.items()}
            for name, columns in run.tables.items()
        },
    })  # fmt: skip


def _own_policy() -> type[Any]:
    """Return a policy as a user writes one."""
    import tidegate

    class OwnLRU(tidegate.policy.EvictionPolicy):
        """Evict the region whose last known use is oldest."""

        def on_fault(self, region: int) -> None:
            self.order.move_to_tail(region)

        def on_eviction(self, region: int) -> None:
            self.order.remove(region)

        def victim(self) -> int:
            return self.order.head

        def finished(self) -> None:
            assert set(self.order) == self.resident

    return OwnLRU


def _run_live(asked: dict[str, Any]) -> dict[str, Any]:
    """Touch pages in a fixed order, each when the pager is idle, and return the arena's counts."""
    import tidegate

    draw, page, pages = random.Random(SEED), 4096, 96
    order = (
        [*range(pages)] * 2
        + draw.choices(range(pages), k=200)
        + [int(pages * draw.random() ** 3) for _ in range(200)]
    )
    with tidegate.Arena(
        "224KiB", geometry="4KiB/32KiB", span="64MiB", **{"prefetch": "none", **asked}
    ) as arena:
        arrays = [arena.empty(64 * page, "u1"), arena.empty(32 * page, "u1")]
        for touch, at in enumerate(order):
            array, offset = (arrays[0], at * page) if at < 64 else (arrays[1], (at - 64) * page)
            if touch % 3:
                assert array[offset] >= 0
            else:
                array[offset] = touch % 256
            arena.settle()
        stats = arena.stats()
    return _plain({key: value for key, value in stats.items() if not key.endswith("seconds")})


def _run_command(words: tuple[str, ...]) -> Any:
    """Run ``tidegate WORDS --json`` in a process of its own, with the package that this one has."""
    import tidegate

    source = str(Path(tidegate.__file__).parents[1])
    path = os.pathsep.join(filter(None, (source, os.environ.get("PYTHONPATH"))))
    command = [sys.executable, "-m", "tidegate", *words, "--json"]
    done = subprocess.run(
        command, env=os.environ | {"PYTHONPATH": path}, capture_output=True, text=True, check=False
    )
    if done.returncode:
        print(f"FAILED: {' '.join(words)}: {done.stderr.strip()[-300:]}", file=sys.stderr)
        return {"error": f"exit code {done.returncode}"}
    found = json.loads(done.stdout)
    if words[0] == "reproduce":
        return {r["paper"]: _ledger(r) for r in found}
    if words[0] == "compare":  # without the runs' keys
        return [{key: value for key, value in row.items() if key != "run"} for row in found]
    return found


def _ledger(reproduction: dict[str, Any]) -> dict[str, Any]:
    """Return the figures of one paper: claims by label, exhibits by name."""
    prose = ("where", "why")
    claims: dict[str, Any] = {}
    for finding in reproduction["ledger"]:
        assert finding["label"] not in claims, f"two findings are called {finding['label']}"
        claims[finding["label"]] = {
            key: _numbers(value) if key in prose else value for key, value in finding.items()
        }
    exhibits = {
        e["name"]: {"rows": e["rows"], "notes": list(map(_numbers, e["notes"]))}
        for e in reproduction["exhibits"]
    }
    return {
        "claims": claims,
        "exhibits": exhibits,
        "notes": list(map(_numbers, reproduction["notes"])),
    }


def _numbers(text: str) -> str:
    """Return the numbers in prose, whose words may change."""
    return " ".join(re.findall(r"\d[\d,.]*\d|\d", text or ""))


def _digest(values: list[Any]) -> str:
    return hashlib.sha256(json.dumps(_plain(values)).encode()).hexdigest()[:16]


def _plain(data: Any) -> Any:
    """Return data as JSON has it."""
    return json.loads(
        json.dumps(data, default=lambda v: v.item() if hasattr(v, "item") else str(v))
    )


# Comparing


def differences(before: Any, after: Any, at: str = "") -> Iterator[tuple[str, bool]]:
    """Yield a line for each difference, and whether something was only added."""
    if isinstance(before, dict) and isinstance(after, dict):
        for key in before:
            if key not in after:
                yield f"{at} › {key}: missing; was {_short(before[key])}", False
            else:
                yield from differences(before[key], after[key], f"{at} › {key}")
        yield from (
            (f"{at} › {key}: added, {_short(after[key])}", True)
            for key in after
            if key not in before
        )
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for i, (old, new) in enumerate(zip(before, after, strict=True)):
            yield from differences(old, new, f"{at}[{i}]")
    elif json.dumps(before) != json.dumps(after):
        yield f"{at}: was {_short(before)}, is {_short(after)}", False


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 100 else f"{text[:100]}…"


# Files and the command line


class Worker:
    """A process that answers one case at a time; one that crashed is replaced."""

    def __init__(self) -> None:
        self._pool = self._start()

    def _start(self) -> ProcessPoolExecutor:
        return ProcessPoolExecutor(1, multiprocessing.get_context("spawn"), _end_with_parent)

    def answer(self, case: Case) -> Any:
        """Return the answer, or say that the process crashed."""
        try:
            return self._pool.submit(answer, case).result()
        except BrokenProcessPool:
            print(f"CRASHED: {case.name}", file=sys.stderr)
            self._pool.shutdown()
            self._pool = self._start()
            return {"error": "crashed"}

    def stop(self) -> None:
        """End the process."""
        self._pool.shutdown()


def _end_with_parent() -> None:
    """End this process when the one that started it ends, even if that was killed."""

    def wait() -> None:
        parent = multiprocessing.parent_process()
        assert parent is not None
        parent.join()
        os._exit(1)

    threading.Thread(target=wait, daemon=True).start()


def compute(chosen: list[Case], workers: int) -> Iterator[tuple[Case, Any]]:
    """Yield each case with its answer as they become ready, and print progress now and then."""
    left, began, said = Counter(case.part for case in chosen), time.monotonic(), 0.0
    for done, (case, given) in enumerate(_answered(chosen, workers), 1):
        yield case, given
        left[case.part] -= 1
        now = time.monotonic() - began
        if not left[case.part] or now - said > EVERY:
            said, ready = now, "" if left[case.part] else f"; {case.part} complete"
            print(f"{now:4.0f} s  {done}/{len(chosen)}{ready}", flush=True)


def _answered(chosen: list[Case], workers: int) -> Iterator[tuple[Case, Any]]:
    """Answer cases in processes."""
    idle: queue.SimpleQueue[Worker] = queue.SimpleQueue()
    for _ in range(workers):
        idle.put(Worker())

    def ask(case: Case) -> tuple[Case, Any]:
        worker = idle.get()
        try:
            return case, worker.answer(case)
        finally:
            idle.put(worker)

    with ThreadPoolExecutor(workers) as threads:
        for future in as_completed([threads.submit(ask, case) for case in chosen]):
            yield future.result()
    for _ in range(workers):
        idle.get().stop()


def read(path: Path) -> Answers:
    """Return the answers in a file."""
    data = path.read_bytes()
    return json.loads(gzip.decompress(data) if path.suffix == ".gz" else data)


def write(path: Path, answers: Answers) -> None:
    """Write answers, whole or not at all."""
    data = json.dumps(answers, sort_keys=True, separators=(",", ":")).encode() + b"\n"
    part = path.with_name(f"{path.name}.part")
    part.write_bytes(gzip.compress(data, mtime=0) if path.suffix == ".gz" else data)
    part.replace(path)


def save(path: Path, chosen: list[Case], workers: int) -> int:
    """Compute and write; other answers in the file stay as they are."""
    kept = read(path) if path.exists() else {}
    for case, given in compute(chosen, workers):
        kept.setdefault(case.part, {})[case.name] = given
    write(path, kept)
    print(f"{sum(map(len, kept.values()))} answers in {path}")
    return 0


def check(path: Path, chosen: list[Case], workers: int, strict: bool) -> int:
    """Compute again what the file has, print each difference, and return the exit code."""
    before = read(path)
    chosen = [case for case in chosen if case.name in before.get(case.part, {})]
    if not chosen:
        print(f"{path} has none of these cases")
        return 1
    found = 0
    for case, given in compute(chosen, workers):
        at = f"{case.part}: {case.name}"
        for line, added in differences(before[case.part][case.name], given, at):
            if strict or not added:
                found += 1
                print(line, flush=True)
    print(f"{len(chosen)} answers compared, {found} differences")
    return 1 if found else 0


def main() -> int:
    """Read the command line and do what it says."""
    everything = cases()
    parts = list(dict.fromkeys(case.part for case in everything))
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.answers", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("verb", choices=("save", "check"))
    parser.add_argument("file", type=Path)
    parser.add_argument(
        "--only", action="append", choices=parts, help="a part; repeat it for several"
    )
    parser.add_argument("--like", default="", help="only cases whose name contains this text")
    parser.add_argument("--strict", action="store_true", help="report what was added, too")
    parser.add_argument("--workers", type=int, default=2, help="processes; 2 by default")
    asked = parser.parse_args()
    chosen = [c for c in everything if c.part in (asked.only or parts) and asked.like in c.name]
    os.environ.setdefault("TIDEGATE_CACHE", str(CACHE))
    import tidegate

    print(f"tidegate is {Path(tidegate.__file__).parent}", flush=True)
    if asked.verb == "save":
        return save(asked.file, chosen, asked.workers)
    return check(asked.file, chosen, asked.workers, asked.strict)


if __name__ == "__main__":
    sys.exit(main())
