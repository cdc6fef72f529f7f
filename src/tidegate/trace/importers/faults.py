"""GPU page faults of managed memory, from Nsight Systems and from the UVM driver's tools interface.

Nsight Systems' SQLite export: GPU page faults of managed memory, by kernel.

Faults are seen, hits are not: a page that stays near after its fault is not in the trace again.
Each fault belongs to the kernel that was running when it began. Tables without rows are missing:

    CUDA_UM_GPU_PAGE_FAULT_EVENTS    start, address, numberOfPageFaults, faultAccessType
    CUPTI_ACTIVITY_KIND_KERNEL       start, end, shortName → StringIds
    CUDA_GPU_MEMORY_USAGE_EVENTS     address, bytes, memKind, memoryOperationType (0: allocation)

Events of the UVM driver's tools interface: entries of 64 bytes, of which GPU faults are used.

An entry's first byte is its type. A GPU fault (3) has the access type in byte 2, the address in
bytes 8 to 15 and its batch in bytes 32 to 35 (uvm_types.h of NVIDIA's open kernel
modules). Faults of one batch become one launch. Hits on resident pages are not recorded.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tidegate.trace.importers.importer import Allocation, Importer, RawLaunch, open_packed

_FAULTS, _KERNELS = "CUDA_UM_GPU_PAGE_FAULT_EVENTS", "CUPTI_ACTIVITY_KIND_KERNEL"
_MEMORY = "CUDA_GPU_MEMORY_USAGE_EVENTS"
_MANAGED = 4  # memKind
_PAGE = 4096  # bytes: the driver counts faults of small pages
_WRITES = (2, 3)  # faultAccessType: write, atomic


class Nsight(Importer):
    """GPU page faults, in order, by the kernel that was running."""

    name = "nsight"
    title = "Nsight Systems SQLite export"
    notes = ("faults are recorded, hits on resident pages are not",)

    @classmethod
    def recognises(cls, path: Path, head: bytes) -> bool:
        return head.startswith(b"SQLite format 3\x00")

    def launches(self, progress: Callable[[int], None]) -> Iterator[RawLaunch]:
        with closing(self._open()) as database:
            yield from self._by_kernel(database)
            progress(self.path.stat().st_size)

    def allocations(self) -> list[Allocation]:
        """Return managed allocations; of those at one address the largest."""
        try:
            with closing(self._open()) as database:
                if not _has(database, _MEMORY):
                    return []
                rows = database.execute(
                    f"SELECT address, MAX(bytes) FROM {_MEMORY} WHERE memKind = {_MANAGED} "
                    "AND memoryOperationType = 0 AND bytes > 0 GROUP BY address ORDER BY address"
                ).fetchall()
        except sqlite3.Error as error:
            raise self.wrong("SQLite", str(error)) from error
        kept: list[Allocation] = []
        for address, size in rows:
            if not kept or address >= kept[-1].address + kept[-1].bytes:
                kept.append(Allocation(f"{address:#x}", address, size))
        return kept

    def _open(self) -> sqlite3.Connection:
        return sqlite3.connect(f"file:{self.path}?mode=ro", uri=True)

    def _by_kernel(self, database: sqlite3.Connection) -> Iterator[RawLaunch]:
        if not _has(database, _FAULTS):
            raise self.wrong(
                "tables",
                f"there is no {_FAULTS}; "
                "profile with 'nsys profile --cuda-um-gpu-page-faults=true'",
            )
        kernels = _kernels(database) if _has(database, _KERNELS) else []
        begins = np.array([k[0] for k in kernels], np.int64)
        rows = np.array(
            database.execute(
                "SELECT start, address, COALESCE(numberOfPageFaults, 1), "
                f"COALESCE(faultAccessType, 1) FROM {_FAULTS} ORDER BY start"
            ).fetchall(),
            np.int64,
        ).reshape(-1, 4)
        if (rows[:, 2] < 0).any():
            raise self.wrong(_FAULTS, "a number of faults is negative")
        owner = np.searchsorted(begins, rows[:, 0], side="right") - 1
        for number in np.unique(owner).tolist():
            mine = rows[owner == number]
            n = len(mine)
            yield RawLaunch(
                kernels[number][1] if number >= 0 else "before the first kernel",
                np.arange(n, dtype=np.int64),  # faults of many blocks; each stands alone
                mine[:, 1].astype(np.uint64) // np.uint64(_PAGE) * np.uint64(_PAGE),
                np.maximum(mine[:, 2], 1) * _PAGE,
                np.isin(mine[:, 3], _WRITES).astype(np.uint8),
                np.zeros(n, np.int16),
            )


def _has(database: sqlite3.Connection, table: str) -> bool:
    found = database.execute("SELECT 1 FROM sqlite_master WHERE name = ?", (table,)).fetchone()
    return found is not None


def _kernels(database: sqlite3.Connection) -> list[tuple[int, str]]:
    """Return when each kernel began, and its name."""
    if _has(database, "StringIds"):
        return database.execute(
            f"SELECT k.start, COALESCE(s.value, 'kernel') FROM {_KERNELS} k "
            "LEFT JOIN StringIds s ON s.id = k.shortName ORDER BY k.start"
        ).fetchall()
    return database.execute(f"SELECT start, 'kernel' FROM {_KERNELS} ORDER BY start").fetchall()


_ENTRY = np.dtype(
    {
        "names": ["type", "fault", "access", "gpu", "address", "batch"],
        "formats": ["u1", "u1", "u1", "u1", "<u8", "<u4"],
        "offsets": [0, 1, 2, 3, 8, 32],
        "itemsize": 64,
    }
)
_GPU_FAULT = 3
_LAST_TYPE = 64  # tests add their own types above the driver's sixteen
_WRITE_ACCESSES = (3, 4, 5)  # write, and the two kinds of atomic access
_ENTRIES = 1 << 18


class UvmTools(Importer):
    """GPU faults by batch, as the driver served them."""

    name = "uvm-tools"
    title = "UVM tools event queue"
    notes = ("faults are recorded, hits on resident pages are not",)

    @classmethod
    def recognises(cls, path: Path, head: bytes) -> bool:
        whole = len(head) // _ENTRY.itemsize
        if not whole or (len(head) < 1 << 16 and len(head) % _ENTRY.itemsize):
            return False
        rows = np.frombuffer(head, _ENTRY, whole)
        types, faults = rows["type"], rows[rows["type"] == _GPU_FAULT]
        sane = (faults["address"] > 0) & (faults["address"] < 1 << 57) & (faults["fault"] < 16)
        return bool(len(faults) and ((types > 0) & (types < _LAST_TYPE)).all() and sane.all())

    def launches(self, progress: Callable[[int], None]) -> Iterator[RawLaunch]:
        waiting = np.zeros(0, _ENTRY)
        with open_packed(self.path) as file:
            while data := file.read(_ENTRIES * _ENTRY.itemsize):
                progress(len(data))
                if len(data) % _ENTRY.itemsize:
                    raise self.wrong("the last entry", "it is not whole")
                rows = np.frombuffer(data, _ENTRY)
                rows = np.concatenate([waiting, rows[rows["type"] == _GPU_FAULT]])
                if len(rows):
                    last = rows["batch"] == rows["batch"][-1]
                    cut = len(rows) - int(np.argmin(last[::-1])) if not last.all() else 0
                    yield from _batches(rows[:cut])
                    waiting = rows[cut:]
        yield from _batches(waiting)


def _batches(rows: NDArray[np.void]) -> Iterator[RawLaunch]:
    cuts = np.flatnonzero(np.diff(rows["batch"].astype(np.int64))) + 1
    for part in np.split(rows, cuts):
        if len(part):
            n = len(part)
            yield RawLaunch(
                f"batch {int(part['batch'][0])}",
                np.arange(n, dtype=np.int64),
                part["address"] // np.uint64(_PAGE) * np.uint64(_PAGE),
                np.full(n, _PAGE, np.int64),
                np.isin(part["access"], _WRITE_ACCESSES).astype(np.uint8),
                np.zeros(n, np.int16),
            )
