"""libCacheSim's oracleGeneral: 24 bytes a request: time, key, size, next access (-1: never).

The format has no signature. A file is taken for one when its length is a multiple of 24 and its
first requests are plausible: time does not go back, and the next access lies ahead or never comes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from tidegate.trace.importers.importer import SEQUENCE, Importer, RawLaunch, open_packed, sequence

_RECORD = np.dtype([("time", "<u4"), ("key", "<u8"), ("size", "<u4"), ("next", "<i8")])


class OracleGeneral(Importer):
    """Requests of a cache, one key each."""

    name = "oracle-general"
    title = "libCacheSim oracleGeneral trace"
    identifiers = True

    @classmethod
    def recognises(cls, path: Path, head: bytes) -> bool:
        whole = len(head) // _RECORD.itemsize
        if not whole or (len(head) < 1 << 16 and len(head) % _RECORD.itemsize):
            return False
        rows = np.frombuffer(head, _RECORD, whole)
        ahead = (rows["next"] == -1) | (rows["next"] > np.arange(whole))
        sane = (rows["size"] < 1 << 31) & (rows["size"] > 0)
        return bool((np.diff(rows["time"].astype(np.int64)) >= 0).all() and (ahead & sane).all())

    def launches(self, progress: Callable[[int], None]) -> Iterator[RawLaunch]:
        number = 0
        with open_packed(self.path) as file:
            while data := _whole(file, SEQUENCE * _RECORD.itemsize):
                if len(data) % _RECORD.itemsize:
                    raise self.wrong(f"request {number * SEQUENCE}", "it ends within a request")
                rows = np.frombuffer(data, _RECORD)
                progress(len(data))
                yield sequence(number, rows["key"], rows["size"], 0)
                number += 1


def _whole(file: object, size: int) -> bytes:
    """Read ``size`` bytes, or what is left; a stream that unpacks may return less at a time."""
    parts: list[bytes] = []
    while size and (part := file.read(size)):  # type: ignore[attr-defined]
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


FORMAT = OracleGeneral
