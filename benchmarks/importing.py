"""How fast are traces of other tools read, and in how much memory?

Files are generated as their specifications say. The rate is that of one reading of the whole file
into touches, in processor time; an import reads it twice.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks.child import peak
from benchmarks.row import Row

BINARY, TEXT = 5e6, 1e6  # touches a second, at least
MEMORY = 1.0  # GB, at most
REQUESTS, LINES = 8 << 20, 2 << 20


def importing() -> list[Row]:
    with tempfile.TemporaryDirectory() as folder:
        files = [_oracle_general(Path(folder)), _lackey(Path(folder))]
        found = [_in_child(path) for path in files]
    rows = []
    for path, target, (rate, memory) in zip(files, (BINARY, TEXT), found, strict=True):
        kind = path.suffix[1:]
        rows.append(
            Row(f"import of {kind}", rate / 1e6, "M touches/s", "one reading", target / 1e6, True)
        )
        rows.append(Row(f"memory of that import ({kind})", memory / 1e9, "GB", "peak", MEMORY))
    return rows


def _oracle_general(folder: Path) -> Path:
    """Requests of libCacheSim's binary format: 24 bytes each, 200 MB in all."""
    rows = np.zeros(REQUESTS, np.dtype("<u4,<u8,<u4,<i8"))
    rows["f0"] = np.arange(REQUESTS) // 1000
    rows["f1"] = np.random.default_rng(1).integers(0, 1 << 16, REQUESTS)
    rows["f2"], rows["f3"] = 4096, -1
    rows.tofile(path := folder / "requests.oracleGeneral")
    return path


def _lackey(folder: Path) -> Path:
    """Loads and stores as valgrind's lackey prints them."""
    address = np.random.default_rng(2).integers(0x1000_0000, 0x1400_0000, LINES).tolist()
    kinds = (" L", " S", " M", "I ")
    with (path := folder / "program.lackey").open("w") as file:
        file.writelines(f"{kinds[a & 3]} {a & ~3:08x},4\n" for a in address)
    return path


def _in_child(path: Path) -> tuple[float, float]:
    command = [sys.executable, "-m", "benchmarks.importing", str(path)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    rate, memory = json.loads(done.stdout)
    return rate, memory


def measure(path: Path) -> tuple[float, float]:
    """Return touches read in a second, and the peak of memory in bytes."""
    from tidegate.trace.geometry import Geometry
    from tidegate.trace.importers import find_importer

    trace = find_importer(path)(path).trace(Geometry(), lambda read: None)  # the first reading
    begin = time.process_time()  # other programs do not count
    read = sum(s.touches for launch in trace.launches() for s in launch.segments)
    lines = LINES if path.suffix == ".lackey" else read
    return lines / (time.process_time() - begin), float(peak())


if __name__ == "__main__":
    print(json.dumps(measure(Path(sys.argv[1]))))
