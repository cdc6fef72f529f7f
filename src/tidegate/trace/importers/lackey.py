"""valgrind --tool=lackey --trace-mem=yes: one line a memory access of a CPU program.

    I  04001000,3     an instruction, left out
     L 1ffeffe7e0,8   a load;  S  a store;  M  a load and a store

Lines of valgrind itself begin with ==. The compiled parser takes a chunk of whole lines at a time.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from tidegate.compiled.jit import jit
from tidegate.trace.importers.importer import (
    LONGEST_LINE,
    SEQUENCE,
    Importer,
    RawLaunch,
    coalesce,
    open_packed,
    sequence,
)

_CHUNK = 1 << 24
_ACCESS = re.compile(rb"^ [LSM] [0-9a-fA-F]{1,16},\d+\s*$")
_LINE = re.compile(rb"^( [LSM] |I  )[0-9a-fA-F]{1,16},\d+\s*$|^==\d+==|^\s*$")


class Lackey(Importer):
    """Loads and stores of a CPU program, in order."""

    name = "lackey"
    title = "valgrind lackey trace"

    @classmethod
    def recognises(cls, path: Path, head: bytes) -> bool:
        whole = head.split(b"\n")[:-1] or [head]
        return all(map(_LINE.match, whole)) and any(map(_ACCESS.match, whole))

    def launches(self, progress: Callable[[int], None]) -> Iterator[RawLaunch]:
        number = line = 0
        rest = b""
        with open_packed(self.path) as file:
            while True:
                chunk = file.read(_CHUNK)
                progress(len(chunk))
                whole, _, rest = (rest + chunk).rpartition(b"\n") if chunk else (rest, b"", b"")
                if len(rest) > LONGEST_LINE:
                    raise self.wrong(f"line {line + 1}", f"it is longer than {LONGEST_LINE} bytes")
                address, size, write, lines, wrong = parse(np.frombuffer(whole + b"\n", np.uint8))
                if wrong >= 0:
                    text = whole.split(b"\n")[wrong].decode("utf-8", "replace")[:60]
                    raise self.wrong(f"line {line + wrong + 1}", f"'{text}' is no access")
                line += lines
                for first in range(0, len(address), SEQUENCE):
                    part = slice(first, first + SEQUENCE)
                    yield coalesce(sequence(number, address[part], size[part], write[part]))
                    number += 1
                if not chunk:
                    return


@jit
def parse(text: Any) -> Any:
    """Return addresses, sizes and writes of whole lines, their number, and the first wrong line.

    The number of the wrong line is -1 if every line can be read.
    """
    n = len(text)
    most = n // 6 + 1  # the shortest access is " L 0,1"
    address, size = np.empty(most, np.uint64), np.empty(most, np.int64)
    write = np.empty(most, np.uint8)
    count, line, at = 0, 0, 0
    while at < n:
        end = at
        while text[end] != 10:
            end += 1
        kind = text[at + 1] if end - at > 5 and text[at] == 32 else 0
        if kind == 76 or kind == 83 or kind == 77:  # L, S, M
            where, place, digits = np.uint64(0), at + 3, 0
            while place < end and text[place] != 44:
                value = _hexadecimal(text[place])
                if value > 15:
                    return address[:0], size[:0], write[:0], line, line
                where = where << np.uint64(4) | np.uint64(value)
                place += 1
                digits += 1
            place += 1
            bytes = np.int64(0)
            first = place
            while place < end and 48 <= text[place] <= 57:
                bytes = bytes * 10 + (text[place] - 48)
                place += 1
            if not 1 <= digits <= 16 or place == first or place - first > 9:
                return address[:0], size[:0], write[:0], line, line
            address[count], size[count], write[count] = where, bytes, kind != 76
            count += 1
        elif end > at and text[at] != 73 and text[at] != 61 and not _blank(text, at, end):
            return address[:0], size[:0], write[:0], line, line
        line += 1
        at = end + 1
    return address[:count], size[:count], write[:count], line, -1


@jit
def _hexadecimal(letter: int) -> int:
    if 48 <= letter <= 57:
        return letter - 48
    lower = letter | 32
    return lower - 87 if 97 <= lower <= 102 else 16


@jit
def _blank(text: Any, at: int, end: int) -> bool:
    for i in range(at, end):
        if text[i] != 32 and text[i] != 13:
            return False
    return True
