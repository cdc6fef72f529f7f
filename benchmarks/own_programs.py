"""Programs of your own under published systems: the table of docs/programs.md.

    python -m benchmarks.own_programs FOLDER            plays the recordings in a folder
    python -m benchmarks.own_programs FOLDER --record   records them first (needs torch)

Near memory is the program's peak divided by 1.5. Every run is printed when it is done. The last
table is of a log of requests in Mooncake's form, drawn here, with a KV cache over three tiers.
"""

from __future__ import annotations

import argparse
import json
import random
import time
from pathlib import Path

import tidegate
from tidegate.trace.geometry import Geometry
from tidegate.trace.ops import OpTrace, load_ops, save_ops

PROGRAMS = {
    "training of ResNet-50": ("resnet50", {"batch": 64, "steps": 3}),
    "training of GPT": ("gpt-350m", {"batch": 4, "steps": 3}),
    "decode of Llama": ("llama-7b", {"layers": 8, "context": 1024, "decode": 8}),
    "decode of Mixtral": ("mixtral-8x7b", {"layers": 4, "context": 128, "decode": 16}),
    "diffusion": ("unet-sd1", {"steps": 4}),
}
SYSTEMS = {
    "uvm": {"system": "uvm"},
    "tm++": {"system": "tm++"},
    "cppe": {"system": "cppe"},
    "leu-observed": {"eviction": "leu-observed"},
    "rdm": {"system": "rdm"},
    "glm": {"system": "glm"},
    "belady": {"eviction": "belady"},
}
OVERSUBSCRIBED = 1.5
TIERINGS = ("bam", "tier-order", "tier-random", "tier-reuse", "tier-belady")
CONVERSATIONS, REQUESTS, SYSTEM_PROMPT = 64, 600, 4  # the prompt's blocks are shared by all


def record_all(folder: Path) -> None:
    """Record every program into a folder."""
    for title, (model, options) in PROGRAMS.items():
        begin = time.perf_counter()
        ops = tidegate.record.model(model, **options)
        save_ops(ops, folder / f"{title.replace(' ', '-')}.parquet")
        print(f"recorded {title}: {len(ops.launches)} launches, {ops.peak / 2**30:.2f} GiB peak, ")
        print(f"    {time.perf_counter() - begin:.1f} s", flush=True)


def play(folder: Path) -> None:
    """Play every program under every system, and where everything fits."""
    for title in PROGRAMS:
        path = folder / f"{title.replace(' ', '-')}.parquet"
        trace = OpTrace(load_ops(path), Geometry())
        near = int(trace.footprint / OVERSUBSCRIBED)
        print(f"{title}: peak {trace.footprint / 2**30:.2f} GiB in {near / 2**30:.2f} GiB")
        _show("fits", path, near=4 * trace.footprint)
        for name, settings in SYSTEMS.items():
            _show(name, path, near=near, **settings)


def write_requests(path: Path, seed: int = 1) -> None:
    """Write requests of conversations, popular ones more often; each has all blocks before it."""
    draw = random.Random(seed)
    blocks = {c: list(range(SYSTEM_PROMPT)) for c in range(CONVERSATIONS)}
    following, lines = SYSTEM_PROMPT, []
    popular = [1 / (c + 1) for c in range(CONVERSATIONS)]
    for number in range(REQUESTS):
        own = blocks[draw.choices(range(CONVERSATIONS), popular)[0]]
        new = draw.randint(1, 4)
        own += range(following, following + new)
        following += new
        request = {"timestamp": number, "input_length": 512 * len(own), "output_length": 256}
        lines.append(json.dumps({**request, "hash_ids": own}))
    path.write_text("\n".join(lines))


def play_requests(path: Path) -> None:
    """Play a KV cache over three tiers, blocks of 8 MiB."""
    write_requests(path)
    trace = tidegate.RunSpec(f"{path}(token_bytes=16KiB)").trace()
    near, middle = trace.footprint // 8, trace.footprint // 4
    print(
        f"KV cache: {trace.footprint / 2**30:.2f} GiB, near {near / 2**30:.2f}, middle twice that"
    )
    for name in TIERINGS:
        _show(name, f"{path}(token_bytes=16KiB)", near=near, middle=middle, tiering=name)


def _show(name: str, path: Path | str, **settings: object) -> None:
    begin = time.perf_counter()
    try:
        run = tidegate.run(path, **settings)
    except tidegate.TidegateError as error:
        print(f"    {name:14} {error}", flush=True)
        return
    figures = run.summary
    print(
        f"    {name:14} {run.time / 1e6:10.1f} ms   in {figures['bytes_in'] / 2**30:6.2f} GiB   "
        f"out {figures['bytes_out'] / 2**30:6.2f} GiB   {time.perf_counter() - begin:5.1f} s",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--record", action="store_true", help="record the programs first")
    asked = parser.parse_args()
    if asked.record:
        record_all(asked.folder)
    play(asked.folder)
    play_requests(asked.folder / "requests.jsonl")


if __name__ == "__main__":
    main()
