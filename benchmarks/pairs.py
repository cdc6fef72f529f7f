"""``python -m benchmarks.pairs FOLDER``: programs that exist in OpenMP and in CUDA (NAME-omp and
NAME-cuda) should have the same model: as many objects, launch places and kernels, and the same
distances. What differs between the forms themselves is counted as a difference, too.
"""

from __future__ import annotations

import argparse
import random
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.table import Table

from tidegate.compiler.model import ProgramModel
from tidegate.compiler.model_file import load

_SECONDS = 600  # by the clock


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.pairs", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--sample", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    names = sorted(
        p.name.removesuffix("-omp")
        for p in asked.folder.glob("*-omp")
        if p.with_name(f"{p.name.removesuffix('-omp')}-cuda").is_dir()
    )
    table = Table("program", "objects", "launches", "kernels", "distances", "agree")
    agreed = total = 0
    for name in random.Random(asked.seed).sample(names, len(names)):
        forms = [_model(asked.folder / f"{name}-{form}") for form in ("omp", "cuda")]
        found = [form for form in forms if form is not None]
        if len(found) < 2:
            continue
        row, same = compared(*found)
        agreed, total = agreed + same, total + 1
        table.add_row(name, *row, "yes" if same else "no")
        print(name, *row, same, flush=True)
        if total == asked.sample:
            break
    Console(width=110).print(table)
    print(f"{agreed} of {total} agree")


def _model(folder: Path) -> ProgramModel | None:
    with tempfile.TemporaryDirectory() as place:
        saved = Path(place, "model.json")
        command = [sys.executable, "-m", "tidegate", "compile", str(folder), "--out", str(saved)]
        subprocess.run(command, capture_output=True, check=False, timeout=_SECONDS)
        return load(saved) if saved.exists() else None


def compared(one: ProgramModel, other: ProgramModel) -> tuple[list[str], bool]:
    """Return the figures of both, and whether they agree."""
    row, same = [], True
    for figures in (_objects, lambda m: len(m.launches), lambda m: len(m.regions)):
        a, b = figures(one), figures(other)
        row.append(f"{a}" if a == b else f"{a} / {b}")
        same &= a == b
    far, farther = _distances(one), _distances(other)
    alike = len(far) == len(farther) and all(
        a == b or abs(a - b) <= 0.1 * max(a, b) for a, b in zip(far, farther, strict=True)
    )
    row.append("same" if alike else f"{_text(far)} / {_text(farther)}")
    return row, same and alike


def _objects(model: ProgramModel) -> int:
    used = {name for launch in model.launches for name in launch.objects}
    return sum(o.name in used for o in model.placeable())


def _distances(model: ProgramModel) -> list[float]:
    placeable = {o.name for o in model.placeable()}
    uses = (use for launch in model.launches for use in launch.uses)
    return sorted(use.distance for use in uses if use.object in placeable)


def _text(distances: list[float]) -> str:
    return " ".join(f"{d:.3g}" for d in distances[:6])


if __name__ == "__main__":
    main()
