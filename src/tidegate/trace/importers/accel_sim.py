"""Accel-Sim's traces: a .traceg file (or .xz) for each kernel, or the kernelslist that names them.

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

_OPCODE = re.compile(r"^(LD|ST|ATOM|RED)[A-Z]*(\.|$)")
_NO_GLOBAL = ("LDS", "STS", "LDL", "STL", "LDC", "LDSM")
_WRITES = ("ST", "RED", "ATOM")
_KEEP = 1 << 18  # lanes before touches are merged


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
            if self._lanes >= _KEEP:
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
        return _Access(lanes, width, opcode.startswith(_WRITES), site)

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


FORMAT = AccelSim
