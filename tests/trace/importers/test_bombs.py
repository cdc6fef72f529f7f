"""Small files that unpack to one line which no memory has room for."""

from __future__ import annotations

import gzip
import lzma
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard

from tidegate.errors import TidegateError
from tidegate.trace.importers import import_trace
from tidegate.trace.importers.importer import LONGEST_LINE, lines

PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "zstd": zstandard.compress,
    "xz": lambda data: lzma.compress(data, preset=0),
}
# how a file of each format begins, and what may go on for ever
BEGINNINGS = {
    "moe": (b'{"token": 0, "layer": 0, "experts": [', b"1"),
    "kv-cache": (b'{"hash_ids": [', b" "),
    "nvbit": (b"MEMTRACE: CTX 0x0", b"0"),
    "accel-sim": (b"-kernel name = ", b"a"),
    "lackey": (b" L 0,1\n", b"a"),
    "csv": (b"key,size\n", b"7"),
    "execution-trace": (b'{"schema": "1.1.1", "nodes": [', b'{"":'),
    "execution-trace of spaces": (b'{"schema": "1.1.1", "nodes": [', b" "),
}
# imports a file; prints why it cannot be, and the most memory that this took, in MiB
IMPORT = """
import sys
from pathlib import Path
from tidegate.errors import TidegateError
from tidegate.trace.importers import import_trace
try:
    list(import_trace(Path(sys.argv[1]), format=sys.argv[2]).launches())
except TidegateError as error:
    print(error)
# ru_maxrss would be that of the process which started this one, if it is larger
status = dict(line.split(":") for line in open("/proc/self/status"))
print(int(status["VmHWM"].split()[0]) >> 10)
"""


@pytest.mark.parametrize("packer", PACKERS)
def test_a_line_without_end_is_refused_early(tmp_path: Path, packer: str) -> None:
    path = tmp_path / "bomb"
    path.write_bytes(PACKERS[packer](b"1\n" + b"a" * (2 * LONGEST_LINE)))
    with pytest.raises(ValueError, match=f"longer than {LONGEST_LINE} bytes"):
        list(lines(path, lambda read: None))


def test_long_lines_are_read(tmp_path: Path) -> None:
    path = tmp_path / "long"
    path.write_bytes(b"a" * LONGEST_LINE + b"\nb\n" + b"c" * LONGEST_LINE)
    found = list(lines(path, lambda read: None))
    assert [len(line) for line in found] == [LONGEST_LINE, 1, LONGEST_LINE]


@pytest.mark.slow
@pytest.mark.parametrize("name", BEGINNINGS)
def test_a_bomb_of_one_line_takes_little_memory(tmp_path: Path, name: str) -> None:
    """512 MiB in half a megabyte."""
    begin, more = BEGINNINGS[name]
    path = tmp_path / "bomb"
    with gzip.open(path, "wb", compresslevel=1) as file:
        file.write(begin)
        for _ in range(512):
            file.write(more * ((1 << 20) // len(more)))
    done = subprocess.run(
        [sys.executable, "-c", IMPORT, str(path), name.split()[0]],
        capture_output=True,
        text=True,
        timeout=250,
    )
    assert done.returncode == 0, done.stderr
    said, megabytes = done.stdout.splitlines()
    assert str(path) in said
    assert int(megabytes) < 512


def test_a_first_line_without_end_is_no_csv(tmp_path: Path) -> None:
    path = tmp_path / "sparse.csv"
    with path.open("wb") as file:
        file.truncate(4 << 30)  # which takes no space
    with pytest.raises(TidegateError, match="line 1"):
        list(import_trace(path, format="csv").launches())
