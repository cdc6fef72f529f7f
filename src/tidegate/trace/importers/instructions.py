"""Traces of a GPU's memory instructions, by NVBit and by Accel-Sim's tracer.

NVBit's mem_trace: one line a memory instruction of a warp, with the addresses of its lanes.

    MEMTRACE: CTX 0x… - LAUNCH - Kernel pc … - Kernel name NAME - grid launch id N - …
    MEMTRACE: CTX 0x… - grid_launch_id N - CTA x,y,z - warp W - OPCODE - 0x… 0x… (32 addresses)

A lane that is off has the address 0. Lines of several launches and blocks may alternate; a launch
is taken as over when the next one has begun and, at the latest, at the end of the file.

Accel-Sim's traces: a .traceg file (or .xz) for each kernel, or the kernelslist that names them.

    -kernel name = …
    #BEGIN_TB
    thread block = x,y,z
    warp = n
    insts = n
    [line] PC mask ndst [R…] OPCODE nsrc [R…] width [mode addresses]
    #END_TB

Width 0 is no memory access. Mode 0 lists an address for each active lane, 1 has a base and a
stride, 2 a base and the differences from lane to lane. A memcpy in a kernelslist names an
allocation.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from tidegate.errors import TidegateError
from tidegate.trace.importers.importer import Allocation, Importer, RawLaunch, coalesce, lines

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


_OPCODE = re.compile(r"^(LD|ST|ATOM|RED)[A-Z]*(\.|$)")
_NO_GLOBAL = ("LDS", "STS", "LDL", "STL", "LDC", "LDSM")
_WRITING = ("ST", "RED", "ATOM")
_KEEP_LANES = 1 << 18  # lanes before touches are merged


class AccelSim(Importer):
    """The memory accesses of one or several kernels, by thread block."""

    name = "accel-sim"
    title = "Accel-Sim trace"

    @classmethod
    def recognises(cls, path: Path, head: bytes) -> bool:
        return head.startswith(b"-kernel name =") or _is_list(path)

    def launches(self, progress: Callable[[int], None]) -> Iterator[RawLaunch]:
        for path in self._files():
            yield _Kernel(self, path).read(progress)

    def allocations(self) -> list[Allocation]:
        found: dict[int, int] = {}
        if _is_list(self.path):
            for line in self.path.read_text(errors="replace").splitlines():
                if line.startswith("Memcpy"):
                    _, address, size = [*line.split(","), "", ""][:3]
                    try:
                        at = int(address, 16)
                        found[at] = max(found.get(at, 0), int(size))
                    except ValueError:
                        raise self.wrong(f"'{line[:60]}'", "an address or size is wrong") from None
        return _apart([Allocation(f"{at:#x}", at, size) for at, size in sorted(found.items())])

    def _files(self) -> list[Path]:
        if not _is_list(self.path):
            return [self.path]
        names = [
            line.strip()
            for line in self.path.read_text(errors="replace").splitlines()
            if line.strip().startswith("kernel-")
        ]
        files = []
        for name in names:
            packed = [self.path.parent / n for n in (name, f"{name}.xz", f"{name}.gz")]
            there = next((p for p in packed if p.is_file()), None)
            if there is None:
                raise TidegateError(f"{self.path} names {name}, which is not beside it")
            files.append(there)
        return files


def _is_list(path: Path) -> bool:
    return path.name.startswith("kernelslist")


def _apart(found: list[Allocation]) -> list[Allocation]:
    """Return allocations without those that begin within another."""
    kept: list[Allocation] = []
    for a in found:
        if a.bytes > 0 and (not kept or a.address >= kept[-1].address + kept[-1].bytes):
            kept.append(a)
    return kept


class _Access(NamedTuple):
    lanes: list[int]
    bytes: int
    write: bool
    site: int


class _Kernel:
    """One kernel's file."""

    def __init__(self, importer: AccelSim, path: Path):
        self._importer, self._path = importer, path
        self._name = path.name
        self._has_line_numbers = False
        self._sites: dict[str, int] = {}
        self._parts: list[RawLaunch] = []
        self._rows: list[tuple[int, _Access]] = []
        self._lanes = 0

    def read(self, progress: Callable[[int], None]) -> RawLaunch:
        block, inside = -1, False
        for number, data in enumerate(lines(self._path, progress), 1):
            line = data.decode("utf-8", "replace").strip()
            if not line:
                continue
            if line.startswith("-"):
                self._header(line)
            elif line.startswith("#"):
                inside = line.startswith("#BEGIN_TB")
            elif " = " in line:
                if line.startswith("thread block"):
                    block = self._block(line, number)
            elif inside and block >= 0:
                self._instruction(block, line, number)
        if inside:
            raise self._importer.wrong(self._path.name, "it ends within a thread block")
        self._merge()
        if not self._parts:
            return RawLaunch(self._name, *(np.zeros(0, k) for k in ("i8", "u8", "i8", "u1", "i2")))
        columns = zip(*(part[1:] for part in self._parts), strict=True)
        return RawLaunch(self._name, *map(np.concatenate, columns))  # type: ignore[arg-type]

    def _header(self, line: str) -> None:
        key, _, value = (p.strip() for p in line[1:].partition("="))
        if key == "kernel name":
            self._name = value
        elif key == "enable lineinfo":
            self._has_line_numbers = value == "1"

    def _block(self, line: str, number: int) -> int:
        try:
            x, y, z = (int(n) for n in line.partition("=")[2].split(","))
        except ValueError:
            raise self._wrong(number, "the thread block has no three numbers") from None
        return (z << 42) | (y << 21) | x

    def _instruction(self, block: int, line: str, number: int) -> None:
        try:
            access = self._access(line.split())
        except (ValueError, IndexError):
            raise self._wrong(number, f"'{line[:60]}' is no whole instruction") from None
        if access is not None:
            self._rows.append((block, access))
            self._lanes += len(access.lanes)
            if self._lanes >= _KEEP_LANES:
                self._merge()

    def _access(self, fields: list[str]) -> _Access | None:
        """Return an instruction's access to global memory, None if it has none."""
        if self._has_line_numbers:
            fields = fields[1:]
        pc, mask = fields[0], int(fields[1], 16)
        at = 3 + int(fields[2])  # behind the destination registers
        opcode = fields[at]
        at += 2 + int(fields[at + 1])  # behind the source registers
        width = int(fields[at]) if at < len(fields) else 0
        if not width or not _OPCODE.match(opcode) or opcode.startswith(_NO_GLOBAL):
            return None
        active = mask.bit_count()
        lanes = _addresses(int(fields[at + 1]), fields[at + 2 :], active)
        site = self._sites.setdefault(pc, min(len(self._sites), 32_767))
        return _Access(lanes, width, opcode.startswith(_WRITING), site)

    def _merge(self) -> None:
        if not self._rows:
            return
        lanes = [len(access.lanes) for _, access in self._rows]
        accesses = [access for _, access in self._rows]
        raw = RawLaunch(
            self._name,
            np.repeat(np.array([block for block, _ in self._rows], np.int64), lanes),
            np.array([a for access in accesses for a in access.lanes], np.uint64),
            np.repeat(np.array([a.bytes for a in accesses], np.int64), lanes),
            np.repeat(np.array([a.write for a in accesses], np.uint8), lanes),
            np.repeat(np.array([a.site for a in accesses], np.int16), lanes),
        )
        self._parts.append(coalesce(raw))
        self._rows, self._lanes = [], 0

    def _wrong(self, number: int, what: str) -> TidegateError:
        return self._importer.wrong(f"{self._path.name}, line {number}", what)


def _addresses(mode: int, fields: list[str], active: int) -> list[int]:
    """Return the addresses of the active lanes.

    >>> _addresses(1, ["0x100", "4"], 3), _addresses(2, ["0x100", "4", "-8"], 3)
    ([256, 260, 264], [256, 260, 252])
    """
    if mode == 0:
        found = [int(f, 16) for f in fields[:active]]
    elif mode == 1:
        base, stride = int(fields[0], 16), int(fields[1])
        found = [base + i * stride for i in range(active)]
    elif mode == 2:
        found = [int(fields[0], 16)]
        for difference in fields[1:active]:
            found.append(found[-1] + int(difference))
    else:
        raise ValueError(mode)
    if len(found) != active or min(found, default=0) < 0:
        raise ValueError(fields)
    return found
