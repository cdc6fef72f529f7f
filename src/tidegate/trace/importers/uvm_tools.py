"""Events of the UVM driver's tools interface: entries of 64 bytes, of which GPU faults are used.

An entry's first byte is its type. A GPU fault (3) has the access type in byte 2, the address in
bytes 8 to 15 and its batch in bytes 32 to 35 (uvm_types.h of NVIDIA's open kernel
modules). Faults of one batch become one launch. Hits on resident pages are not recorded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tidegate.trace.importers.importer import Importer, RawLaunch, open_packed

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
_WRITES = (3, 4, 5)  # write, and the two kinds of atomic access
_PAGE = 4096
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
                np.isin(part["access"], _WRITES).astype(np.uint8),
                np.zeros(n, np.int16),
            )


FORMAT = UvmTools
