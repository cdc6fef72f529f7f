"""``python -m benchmarks.live_decoder``: decode with weights larger than RAM, by every way to load
them.

    contenders   np.memmap · safetensors' own mmap, if it is installed · an arena with each policy
    limits       a memory cgroup of the same size for each: near memory and what a pager and a
                 supervisor take, also for those that have none; ``--throttle`` holds the disk

Prints tokens per second after the first token, bytes read for each, memory (PSS) of the program
with its pager and supervisor, and the most that the cgroup held beyond what it held before anything
was loaded, so that one sees that limits hold.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import importlib.util
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.live_patterns import children, in_cgroups, limit_memory
from tidegate.live import load_safetensors
from tidegate.live.weights.safetensors import read_safetensors

LAYERS, WIDTH = 16, 1024  # 806 MB
BESIDE = 96 << 20  # bytes beside near memory; docs/live-limits.md promises less
POLICIES = ("loop", "cp", "tide", "tournament", "lrm", "lru", "mru")


def _decoder() -> Any:
    """Return the example's module."""
    path = Path(__file__).parents[1] / "examples" / "decoder.py"
    spec = importlib.util.spec_from_file_location("decoder", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _by_memmap(path: Path) -> Mapping[str, Any]:
    raw = np.memmap(path, np.uint8, "r")
    places, _ = read_safetensors(path)
    return {
        p.name: raw[p.offset : p.offset + p.bytes].view(p.dtype).reshape(p.shape) for p in places
    }


def _by_safetensors(path: Path) -> Mapping[str, Any]:
    from safetensors.torch import load_file

    return {name: tensor.numpy() for name, tensor in load_file(path).items()}


def child(path: str, how: str, near: int, tokens: int) -> dict[str, Any]:
    """Return tokens per second, bytes per token and memory of one contender, in this process."""
    group, decoder = Path(os.environ["TIDEGATE_BENCH_MEMORY"]), _decoder()
    with contextlib.ExitStack() as stack:
        pids = [os.getpid()]
        if how == "safetensors":
            importlib.import_module("safetensors.torch")  # which takes memory of its own
        before = int((group / "memory.usage_in_bytes").read_text())
        limit_memory(group, near + BESIDE, before)
        if how in ("memmap", "safetensors"):
            weights = (_by_memmap if how == "memmap" else _by_safetensors)(Path(path))
        else:
            weights = stack.enter_context(load_safetensors(path, near=near, eviction=how))
            pids += children(weights.arena)
        (group / "memory.max_usage_in_bytes").write_text("0")
        one = decoder.Decoder(weights)
        token = one.next_token(1)
        begin, read = time.perf_counter(), _bytes_read(pids)
        for _ in range(tokens):
            token = one.next_token(token)
        return {
            "rate": tokens / (time.perf_counter() - begin),
            "read": (_bytes_read(pids) - read) / tokens,
            "memory": [_memory(pid) for pid in pids],
            "peak": int((group / "memory.max_usage_in_bytes").read_text()) - before,
            "token": token,
        }


def _bytes_read(pids: list[int]) -> int:
    """Return the bytes that these processes have had read from disk."""
    lines = (line for pid in pids for line in Path(f"/proc/{pid}/io").read_text().splitlines())
    return sum(int(line.split()[1]) for line in lines if line.startswith("read_bytes"))


def _memory(pid: int) -> int:
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith("Pss:"))


def main() -> None:
    if sys.argv[1:2] == ["child"]:
        print(json.dumps(child(*sys.argv[2:4], *map(int, sys.argv[4:6]))))
        return
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--ratio", type=float, default=1.5, help="of the weights, over near")
    parser.add_argument("--tokens", type=int, default=6)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--throttle", action="store_true", help="hold the disk to 300 MB/s")
    parser.add_argument("--systems", default="", help="contenders, by commas")
    parser.add_argument("--folder", help="where the file is made; its disk is what is measured")
    options = parser.parse_args()
    has_own = importlib.util.find_spec("safetensors") and importlib.util.find_spec("torch")
    every = ["memmap", *(["safetensors"] if has_own else []), *POLICIES]
    systems = options.systems.split(",") if options.systems else every
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        path = Path(folder) / "weights.safetensors"
        _decoder().make_weights(path, LAYERS, WIDTH)
        near = int(path.stat().st_size / options.ratio) >> 21 << 21
        print(f"{path.stat().st_size / 1e6:.0f} MB of weights, {near >> 20} MiB near\n")
        print("| | tokens/s: median (least to most) | MB a token | MiB: program, others | more |")
        print("|---|---|---|---|---|")
        found: dict[str, list[dict[str, Any]]] = {how: [] for how in systems}
        for _ in range(options.repeat):
            for how in systems:
                words = ["benchmarks.live_decoder", "child", str(path), how]
                words += [str(near), str(options.tokens)]
                found[how].append(in_cgroups(words, path, options.throttle, 600))
        assert len({one["token"] for all_ in found.values() for one in all_}) == 1
        for how, runs in found.items():
            print(_row(how, runs), flush=True)


def _row(how: str, runs: list[dict[str, Any]]) -> str:
    rates = sorted(one["rate"] for one in runs)
    read = statistics.median(one["read"] for one in runs) / 1e6
    memory = ", ".join(f"{max(m) >> 20}" for m in zip(*(r["memory"] for r in runs), strict=True))
    middle = statistics.median(rates)
    peak = max(one["peak"] for one in runs) >> 20
    spread = f"{middle:.2f} ({rates[0]:.2f}–{rates[-1]:.2f})"
    return f"| {how} | {spread} | {read:.0f} | {memory} | {peak} |"


if __name__ == "__main__":
    main()
