"""Requests of caches, as CSV and as libCacheSim's oracleGeneral.

CSV of requests: a key, and perhaps a size and an operation.

Columns are found by their names in the first line (key, id, obj_id, address …; size, bytes …; op,
type …) or given by number or name: ``--columns key=2,size=3``.

libCacheSim's oracleGeneral: 24 bytes a request: time, key, size, next access (-1: never).

The format has no signature. A file is taken for one when its length is a multiple of 24 and its
first requests are plausible: time does not go back, and the next access lies ahead or never comes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from tidegate.errors import TidegateError
from tidegate.options import Option
from tidegate.trace.importers.importer import (
    LONGEST_LINE,
    SEQUENCE,
    Importer,
    RawLaunch,
    is_packed,
    lines,
    open_packed,
    sequence,
)

_NAMES = {
    "key": ("key", "id", "obj_id", "objid", "obj", "object", "object_id", "address", "addr", "lbn"),
    "size": ("size", "bytes", "obj_size", "objsize", "length"),
    "op": ("op", "operation", "type", "rw"),
}
_WRITES = ("w", "write", "set", "put", "add", "replace", "update", "store", "s", "1")


class Csv(Importer):
    """Requests of a cache, one line each."""

    name = "csv"
    title = "CSV of requests"
    identifiers = True
    _texts = False  # keys are texts, not numbers
    columns = Option("", "columns by number (from 1) or name, e.g. key=2,size=3,op=4")

    @classmethod
    def recognises(cls, path: Path, head: bytes) -> bool:
        first = head.split(b"\n", 1)[0].decode("utf-8", "replace").strip().lower()
        fields = [f.strip().strip('"') for f in first.split(",")]
        return len(fields) > 1 and any(f in _NAMES["key"] for f in fields)

    def launches(self, progress: Callable[[int], None]) -> Iterator[RawLaunch]:
        if is_packed(self.path):  # which polars unpacks whole: first see that it has lines
            for _ in lines(self.path, lambda read: None):
                pass
        found = self._columns()
        number = 0
        frame = pl.scan_csv(self.path, has_header=self._has_header(), infer_schema=False)
        for batch in frame.collect_batches(chunk_size=SEQUENCE, maintain_order=True):
            for rows in batch.iter_slices(SEQUENCE):
                yield self._launch(number, rows, found)
                progress(int(rows.estimated_size()))
                number += 1

    def _launch(self, number: int, rows: pl.DataFrame, found: dict[str, str]) -> RawLaunch:
        keys = rows[found["key"]]
        if keys.null_count():
            raise self.wrong(f"rows from {number * SEQUENCE}", "a key is missing")
        as_number = keys.str.strip_chars().cast(pl.UInt64, strict=False)
        texts = as_number.null_count() > 0
        if number and texts != self._texts:  # one key would be two
            raise self.wrong(
                f"rows from {number * SEQUENCE}",
                "keys must all be whole numbers from 0 on, or some of the first must be texts",
            )
        self._texts = texts
        address = keys.hash() if texts else as_number
        size: Any = 1
        if "size" in found:
            sizes = rows[found["size"]].str.strip_chars().cast(pl.Int64, strict=False)
            if sizes.null_count() or (len(sizes) and sizes.min() < 0):  # type: ignore[operator]
                raise self.wrong(f"column {found['size']}", "sizes must be whole numbers from 0 on")
            size = sizes.to_numpy()
        write: Any = 0
        if "op" in found:
            if rows[found["op"]].null_count():
                raise self.wrong(f"column {found['op']}", "an operation is missing")
            write = rows[found["op"]].str.to_lowercase().is_in(_WRITES).to_numpy()
        return sequence(number, address.to_numpy(), size, write)

    def _has_header(self) -> bool:
        return any(name in _NAMES["key"] for name in self._first_line())

    def _first_line(self) -> list[str]:
        try:
            with open_packed(self.path) as file:
                first = file.readline(LONGEST_LINE)
        except OSError as error:
            raise TidegateError(f"{self.path} cannot be read: {error}") from error
        if len(first) == LONGEST_LINE:
            raise self.wrong("line 1", f"it has {LONGEST_LINE} bytes or more")
        return [f.strip().strip('"').lower() for f in first.decode("utf-8", "replace").split(",")]

    def _columns(self) -> dict[str, str]:
        """Return the polars name of each column that is used."""
        names = pl.read_csv(
            self.path, n_rows=1, has_header=self._has_header(), infer_schema=False
        ).columns
        lower = {n.strip().strip('"').lower(): n for n in names}
        if not self.columns:
            found = {
                kind: lower[alias]
                for kind, known in _NAMES.items()
                if (alias := next((a for a in known if a in lower), None))
            }
        else:
            found = dict(self._given(part, names, lower) for part in str(self.columns).split(","))
        if "key" not in found:
            raise TidegateError(
                f"{self.path} has columns {', '.join(names)}; say which holds the key: "
                "--columns key=2,size=3"
            )
        return found

    def _given(self, part: str, names: list[str], lower: dict[str, str]) -> tuple[str, str]:
        kind, _, value = (p.strip() for p in part.partition("="))
        if kind not in _NAMES or not value:
            raise TidegateError(
                f"columns must be written as key=2,size=3,op=4, got '{self.columns}'"
            )
        if value.isdecimal() and 1 <= int(value) <= len(names):
            return kind, names[int(value) - 1]
        if value.lower() in lower:
            return kind, lower[value.lower()]
        raise TidegateError(
            f"column {value} must be a number from 1 to {len(names)} or one of {', '.join(names)}"
        )


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
