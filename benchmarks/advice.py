"""Advice on programs of people's own: the tables of docs/advice.md.

    python -m benchmarks.advice FOLDER                 the recordings in a folder
    python -m benchmarks.advice FOLDER --record        records them first (needs torch)
    python -m benchmarks.advice FOLDER --only gpt      one program
    python -m benchmarks.advice FOLDER --exhaustive    also every option of every plan

Near memory is the program's peak divided by 1.5. Every row is printed when it is done: the plain
driver, the advice, the bound, and how long the advice took.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import tidegate
from tidegate.advice import Advice, Simulator, Subject, advise_on, find_subject
from tidegate.advice.candidates import Candidate
from tidegate.advice.simulate import Trial
from tidegate.machine.machine import load_machine
from tidegate.trace.ops import save_ops

MODELS = {
    "resnet": ("resnet50", {"steps": 2}),
    "gpt": ("gpt-1.3b", {"steps": 2}),
    "llama": ("llama-7b", {"context": 2048, "decode": 32}),
    "mixtral": ("mixtral-8x7b", {"layers": 4, "context": 128, "decode": 16}),
}
SOURCES = Path(__file__).parents[1] / "examples" / "openmp"
OVERSUBSCRIBED = 1.5
NEAR_OF_SOURCES = 256 << 20
GRID = (  # options beside those that the advice tries
    *(f"look-ahead(ahead={size})" for size in ("0", "64MiB", "1GiB", "8GiB")),
    *(f"pin-and-stream(buffer={size})" for size in ("0", "1GiB")),
    *(f"offload(idle={times})" for times in (1, 4, 16)),
    "greedy(by=managed)",
    "offload(by=managed)",
    "pin-and-stream(by=managed)",
)
MACHINE = load_machine("rtx3090-pcie4")


def record_all(folder: Path) -> None:
    """Record every model that is not there."""
    for name, (model, options) in MODELS.items():
        path = folder / f"{name}.parquet"
        if not path.exists():
            save_ops(tidegate.record.model(model, **options), path)
            print(f"recorded {path.name}", flush=True)


def subjects(folder: Path, only: str) -> list[tuple[Subject, int]]:
    """Return the programs with their near memory: recordings, and the OpenMP examples."""
    found = []
    for name in MODELS:
        if only in name and (folder / f"{name}.parquet").exists():
            subject = Subject(name, str(folder / f"{name}.parquet"))
            near = int(subject.trace(MACHINE).footprint / OVERSUBSCRIBED)
            found.append((subject, near))
    for path in sorted(SOURCES.glob("*.c")):
        if only in path.name:
            found.append((find_subject(str(path), NEAR_OF_SOURCES, MACHINE, {}), NEAR_OF_SOURCES))
    return found


def show(advice: Advice, took: float) -> None:
    """Print a program's row."""
    if advice.baseline is None or advice.best is None or advice.bound is None:
        print(f"{advice.subject.name}: {advice.outcomes[0].failed}", flush=True)
        return
    said = advice.recommended.name if advice.recommended else "nothing"
    print(
        f"| {advice.subject.name} | {advice.fit.peak / 2**30:.2f} | {advice.near / 2**30:.2f} "
        f"| {advice.baseline.time / 1e6:,.0f} | {said} | {advice.best.time / 1e6:,.0f} "
        f"| {advice.speed_up:.2f} | {advice.bound.time / 1e6:,.0f} "
        f"({advice.bound.limit}) | {took:.0f} s |",
        flush=True,
    )


def exhaust(advice: Advice) -> None:
    """Print the fastest of everything, with more options than the advice tries."""
    grid = [Candidate(spec, "plan", "", {"placement": spec}) for spec in GRID]
    more = Simulator().simulate(advice.subject, [Trial(c, MACHINE, advice.near) for c in grid])
    fastest = min([*advice.ranked, *(o for o in more if o.run)], key=lambda o: o.time)
    assert advice.best is not None
    print(
        f"    fastest of {len(advice.outcomes) + len(more)}: {fastest.name}, "
        f"{fastest.time / 1e6:,.0f} ms; the advice takes {advice.best.time / fastest.time:.2f} × "
        "as long",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--only", default="")
    parser.add_argument("--exhaustive", action="store_true")
    asked = parser.parse_args()
    if asked.record:
        record_all(asked.folder)
    print("| program | peak GiB | near GiB | uvm ms | advice | ms | × | bound ms | took |")
    for subject, near in subjects(asked.folder, asked.only):
        begin = time.perf_counter()
        advice = advise_on(subject, MACHINE, near, Simulator(cache=False))
        show(advice, time.perf_counter() - begin)
        if asked.exhaustive:
            exhaust(advice)


if __name__ == "__main__":
    main()
