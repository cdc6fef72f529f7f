"""NVBit's mem_trace: one line a memory instruction of a warp, with the addresses of its lanes.

    MEMTRACE: CTX 0x… - LAUNCH - Kernel pc … - Kernel name NAME - grid launch id N - …
    MEMTRACE: CTX 0x… - grid_launch_id N - CTA x,y,z - warp W - OPCODE - 0x… 0x… (32 addresses)

A lane that is off has the address 0. Lines of several launches and blocks may alternate; a launch
is taken as over when the next one has begun and, at the latest, at the end of the file.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from tidegate.trace.importers.importer import Importer, RawLaunch, coalesce, lines

_LAUNCH = re.compile(rb"LAUNCH - .*?[Kk]ernel name (.*?) - grid launch id (\d+)")
_ACCESS = re.compile(
    rb"grid_launch_id (\d+) - CTA (\d+),(\d+),(\d+) - warp (\d+) - (\S+) -\s*(.*)$"
)
_SIZE = re.compile(rb"\.[USF]?(8|16|32|64|128)\b")
_WRITES = (b"ST", b"RED", b"ATOM")
_KEEP = 1 << 14  # lines before touches are merged and put aside


class NvBit(Importer):
    """Every memory access of a CUDA program, by block."""

    name = "nvbit"
    title = "NVBit mem_trace"

    @classmethod
    def recognises(cls, path: Path, head: bytes) -> bool:
        return b"MEMTRACE: CTX" in head

    def launches(self, progress: Callable[[int], None]) -> Iterator[RawLaunch]:
        names: dict[int, str] = {}
        current: _Collected | None = None
        for number, line in enumerate(lines(self.path, progress), 1):
            if b"MEMTRACE" not in line:
                continue  # the program's own output
            if found := _LAUNCH.search(line):
                names[int(found[2])] = found[1].decode("utf-8", "replace")
            elif found := _ACCESS.search(line):
                launch = int(found[1])
                if current is None or launch != current.launch:
                    if current is not None:
                        yield current.done()
                    current = _Collected(launch, names.get(launch, f"launch {launch}"))
                try:
                    current.add(found)
                except ValueError:
                    raise self.wrong(f"line {number}", "an address cannot be read") from None
            elif b"grid_launch_id" in line:
                raise self.wrong(f"line {number}", "it ends within an access")
        if current is not None:
            yield current.done()


class _Collected:
    """The accesses of one launch so far."""

    def __init__(self, launch: int, name: str):
        self.launch, self._name = launch, name
        self._parts: list[RawLaunch] = []
        self._sites: dict[bytes, int] = {}
        self._rows: list[tuple[int, bytes, list[int]]] = []

    def add(self, found: re.Match[bytes]) -> None:
        x, y, z = int(found[2]), int(found[3]), int(found[4])
        block = (z << 42) | (y << 21) | x
        lanes = [a for text in found[7].split() if (a := int(text, 16))]
        self._rows.append((block, found[6], lanes))
        if len(self._rows) == _KEEP:
            self._put_aside()

    def done(self) -> RawLaunch:
        self._put_aside()
        columns = zip(*(part[1:] for part in self._parts), strict=True)
        return RawLaunch(self._name, *map(np.concatenate, columns))  # type: ignore[arg-type]

    def _put_aside(self) -> None:
        lanes = [len(row[2]) for row in self._rows]
        address = np.array([a for row in self._rows for a in row[2]], np.uint64)
        each = lambda values, kind: np.repeat(np.array(values, kind), lanes)  # noqa: E731
        opcodes = [row[1] for row in self._rows]
        raw = RawLaunch(
            self._name,
            each([row[0] for row in self._rows], np.int64),
            address,
            each(list(map(access_bytes, opcodes)), np.int64),
            each([o.startswith(_WRITES) for o in opcodes], np.uint8),
            each([self._site(o) for o in opcodes], np.int16),
        )
        self._parts.append(coalesce(raw))
        self._rows = []

    def _site(self, opcode: bytes) -> int:
        """Return a number for the opcode: the line does not say which instruction it is."""
        return self._sites.setdefault(opcode, min(len(self._sites), 32_767))


def access_bytes(opcode: bytes) -> int:
    """Return how many bytes one lane accesses, by the opcode's width; 4 if it has none.

    >>> access_bytes(b"LDG.E.128"), access_bytes(b"LDG.E"), access_bytes(b"STG.E.U8")
    (16, 4, 1)
    """
    found = _SIZE.search(opcode)
    return int(found[1]) // 8 if found else 4


FORMAT = NvBit
