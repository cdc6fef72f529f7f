"""The trace file: one Parquet table (zstd) with a row per touch, streamed when written and read.

Columns: launch, block, page, write, bytes, reference, and the launch's name, width, intensity and
details (JSON: its other fields that are not the default), which repeat on every row and take no
room once encoded. Objects, geometry and provenance are in the file's own metadata under the key
``tidegate``, so that a trace is one file that any Parquet tool can open. So is a checksum
(``checksum.py``); values are checked while they are read, for files of other programs have none.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import astuple, fields
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from polars.exceptions import PanicException, PolarsError
from polars.io.plugins import register_io_source

from tidegate.errors import TidegateError
from tidegate.files import write_atomically
from tidegate.trace.checksum import PLACEHOLDER, check_digest, write_digest
from tidegate.trace.geometry import Geometry
from tidegate.trace.trace import (
    Copy,
    Launch,
    Object,
    Provenance,
    Segment,
    Trace,
    check_launch,
    check_segment,
    check_trace,
)

FORMAT = 2
_OF_LAUNCH = {"name": pl.String, "width": pl.Int32, "intensity": pl.Float64, "details": pl.String}
_DETAILS = {
    f.name: f.default for f in fields(Launch) if f.name not in _OF_LAUNCH and f.name != "segments"
}
SCHEMA = {
    "launch": pl.Int32,
    "block": pl.Int64,
    "page": pl.Int32,
    "write": pl.UInt8,
    "bytes": pl.Int32,
    "reference": pl.Int16,
    **_OF_LAUNCH,
}
_HEAD = ("format", "name", "provenance", "geometry", "objects", "first_touch", "digest")
_MOST_PAGES = 2**31 - 1  # page numbers are 32 bits wide
_KINDS = {str: "text", int: "whole number", bool: "true or false"}
_ROWS = 1 << 20


def save_trace(
    trace: Trace, path: str | Path, progress: Callable[[int], None] = lambda touches: None
) -> Path:
    """Write ``trace`` to ``path``, which must end in .parquet: the whole file or nothing.

    >>> import tempfile, tidegate
    >>> trace = tidegate.RunSpec("cyclic(bytes=16MiB)").trace()
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     TraceFile(save_trace(trace, f"{folder}/loop.parquet")).footprint
    16777216
    """
    check_trace(trace)
    path = Path(path)
    if path.suffix != ".parquet":
        raise TidegateError(f"cannot write {path}: its name must end in .parquet")
    head = {
        "format": FORMAT,
        "name": trace.name,
        "provenance": trace.provenance.value,
        "geometry": [trace.geometry.page, trace.geometry.region],
        "objects": [list(astuple(o)) for o in trace.objects],
        "first_touch": trace.first_touch,
        "digest": PLACEHOLDER,
    }
    failed: list[BaseException] = []

    def frames(columns: Any, predicate: Any, rows: Any, size: Any) -> Iterator[pl.DataFrame]:
        try:
            for frame in _frames(trace):
                progress(len(frame))
                yield frame
        except BaseException as error:  # polars wraps it; the original is raised again below
            failed.append(error)
            raise

    def write(partial: Path) -> None:
        metadata = {"tidegate": json.dumps(head)}
        register_io_source(frames, schema=SCHEMA).sink_parquet(
            partial, compression="zstd", metadata=metadata, row_group_size=_ROWS
        )
        write_digest(partial)

    try:
        write_atomically(path, write)
    except (TidegateError, PolarsError) as error:
        if failed:
            raise failed[0] from None
        if isinstance(error, TidegateError):
            raise
        raise TidegateError(f"cannot write {path}: {error}") from error
    return path


def _frames(trace: Trace) -> Iterator[pl.DataFrame]:
    """Yield the trace as tables, a segment each. Blocks count from 0 within their launch."""
    for number, launch in enumerate(trace.launches()):
        check_launch(launch, trace)
        first, touches, common = 0, 0, _literals(launch)
        for s in launch.segments:
            check_segment(s, trace)
            touches += s.touches
            blocks = np.arange(first, first + s.blocks, dtype=np.int64)
            first += s.blocks
            columns = {
                "launch": np.full(s.touches, number, np.int32),
                "block": np.repeat(blocks, np.diff(s.starts)),
                **{name: getattr(s, name) for name in ("page", "write", "bytes", "reference")},
            }
            yield pl.DataFrame(columns).with_columns(common)
        if not touches:
            raise TidegateError(
                f"launch {number} ({launch.name}) touches nothing; "
                "a trace file holds only launches with touches"
            )


def _literals(launch: Launch) -> list[pl.Expr]:
    """Return the columns that are the same on every row of a launch."""
    details = {name: getattr(launch, name) for name in _DETAILS}
    details["copies"] = tuple(astuple(copy) for copy in launch.copies)
    details["place"] = "" if launch.place == launch.name else launch.place
    own = json.dumps({name: v for name, v in details.items() if v != _DETAILS[name]})
    told = (launch.name, launch.width, launch.intensity, own)
    return [
        pl.lit(value, kind).alias(name)
        for value, (name, kind) in zip(told, _OF_LAUNCH.items(), strict=True)
    ]


def _launch(told: tuple[Any, ...], segments: Iterator[Segment]) -> Launch:
    """Return the launch whose columns these are."""
    name, width, intensity, text = told
    details = json.loads(text)
    copies = tuple(Copy(*copy) for copy in details.pop("copies", ()))
    frees = tuple((int(first), int(end)) for first, end in details.pop("frees", ()))
    return Launch(name, segments, width, intensity, copies=copies, frees=frees, **details)


class TraceFile(Trace):
    """A trace read from its file, a million touches at a time."""

    def __init__(self, path: str | Path):
        self.path = Path(path)
        head = _read_head(self.path)
        try:
            self.name = _of_type(str, head["name"])
            page, region = (_of_type(int, size) for size in head["geometry"])
            self.geometry = Geometry(page, region)
            self.provenance = Provenance(head["provenance"])
            self.first_touch = _of_type(bool, head["first_touch"])
            self.objects = tuple(_object(*given) for given in head["objects"])
            _check_objects(self.objects, self.geometry)
        except (KeyError, TypeError, ValueError, TidegateError) as error:
            raise TidegateError(
                f"{self.path} is not a trace: its metadata is wrong ({error}); save it anew"
            ) from error

    def identity(self) -> dict[str, Any]:
        return {"file": check_digest(self.path)}

    def launches(self) -> Iterator[Launch]:
        for head, pieces in groupby(self._pieces(), key=lambda piece: piece[0]):
            yield self._launch(head, (segment for _, segment in pieces))

    def _launch(self, head: tuple[Any, ...], segments: Iterator[Segment]) -> Launch:
        try:
            launch = _launch(head[1:], segments)
        except (TypeError, ValueError) as error:
            raise TidegateError(
                f"{self.path} is not a trace: launch {head[0]} is wrong ({error}); save it anew"
            ) from error
        check_launch(launch, self)
        return launch

    def _pieces(self) -> Iterator[tuple[tuple[Any, ...], Segment]]:
        """Yield runs of whole blocks, of one launch each. The last block of a batch waits for the
        next batch.
        """
        held: pl.DataFrame | None = None
        for batch in self._batches():
            batch = batch if held is None else pl.concat([held, batch])
            if not len(batch):
                continue
            _check_rows(batch, self)
            first = _block_starts(batch)
            held = batch.slice(int(first[-1]))
            yield from self._split(batch.slice(0, int(first[-1])))
        if held is not None:
            yield from self._split(held)

    def _batches(self) -> Iterator[pl.DataFrame]:
        try:
            scan = pl.scan_parquet(self.path)
            for batch in scan.collect_batches(chunk_size=_ROWS, maintain_order=True):
                if sum(batch.null_count().row(0)):
                    raise TidegateError(f"{self.path} is not a trace: values are missing")
                yield batch
        except (PolarsError, PanicException, OSError) as error:
            raise TidegateError(
                f"{self.path} cannot be read to its end ({_one_line(error)}); save it anew"
            ) from error

    def _split(self, rows: pl.DataFrame) -> Iterator[tuple[tuple[Any, ...], Segment]]:
        for part in rows.partition_by("launch", maintain_order=True):
            head = part.select("launch", *_OF_LAUNCH).row(0)
            yield head, _segment(part)


def _block_starts(rows: pl.DataFrame) -> np.ndarray:
    """Return where each block begins: wherever the launch or the block changes."""
    launch, block = rows["launch"].to_numpy(), rows["block"].to_numpy()
    return np.append(0, np.flatnonzero((np.diff(launch) != 0) | (np.diff(block) != 0)) + 1)


def _segment(batch: pl.DataFrame) -> Segment:
    starts = np.append(_block_starts(batch), len(batch))
    columns = (batch[c].to_numpy() for c in ("page", "write", "bytes", "reference"))
    return Segment(starts, *columns)


def _check_rows(rows: pl.DataFrame, trace: TraceFile) -> None:
    """Raise an error if a value is impossible, or the rows are not in order."""
    bounds = {
        "launch": (0, None),
        "block": (0, None),
        "page": (0, trace.pages - 1),
        "write": (0, 1),
        "bytes": (0, trace.geometry.page),
    }
    for column, (least, most) in bounds.items():
        low: Any = rows[column].min()
        high: Any = rows[column].max()
        if low < least or (most is not None and high > most):
            within = f"at least {least}" if most is None else f"from {least} to {most}"
            wrong = low if low < least else high
            raise TidegateError(
                f"{trace.path} is not a trace: {column} must be {within}, got {wrong}; save it anew"
            )
    launch, block = rows["launch"].to_numpy(), rows["block"].to_numpy()
    step = np.diff(launch)
    if (step < 0).any() or (np.diff(block)[step == 0] < 0).any():
        raise TidegateError(
            f"{trace.path} is not a trace: rows must be sorted by launch and block; save it anew"
        )
    heads = rows.select("launch", *_OF_LAUNCH).unique(maintain_order=True).rows()
    for one, other in pairwise(heads):
        if one[0] == other[0]:
            raise TidegateError(
                f"{trace.path} is not a trace: launch {one[0]} is {one[1:]} and {other[1:]}; "
                "one launch has one name, width and intensity"
            )


def _read_head(path: Path) -> dict[str, Any]:
    """Return the metadata of a trace file. Raise an error if it is none."""
    if not path.is_file():
        raise TidegateError(f"there is no trace file {path}; make one with 'tidegate trace save'")
    make = "make one with 'tidegate trace save'"
    check_digest(path)  # first, for damaged files can do anything to what reads them
    try:
        text = pl.read_parquet_metadata(path).get("tidegate")
        schema = pl.read_parquet_schema(path)
    except (PolarsError, PanicException, OSError) as error:
        raise TidegateError(
            f"{path} is not a whole Parquet file ({_one_line(error)}); {make}"
        ) from error
    if text is None:
        raise TidegateError(f"{path} is Parquet, but not a Tidegate trace; {make}")
    try:
        head = json.loads(text)
        known = head["format"]
    except (ValueError, KeyError, TypeError) as error:
        raise TidegateError(f"{path} is not a trace: its metadata cannot be read") from error
    if unknown := [key for key in head if key not in _HEAD]:
        raise TidegateError(f"{path} is not a trace: its metadata has an unknown key {unknown[0]}")
    if known != FORMAT:
        raise TidegateError(f"{path} has trace format {known}; this Tidegate reads format {FORMAT}")
    if missing := [c for c, kind in SCHEMA.items() if schema.get(c) != kind]:
        raise TidegateError(
            f"{path} is not a trace: column {missing[0]} is missing or of another type"
        )
    return head


def _of_type(kind: type, value: Any) -> Any:
    """Return a value of the metadata; raise TypeError if it is of another type."""
    if type(value) is not kind:
        raise TypeError(f"{value!r} must be a {_KINDS[kind]}")
    return value


def _object(name: Any, *given: Any) -> Object:
    size, first_page, pages, host, read_mostly = given
    if host is not None:
        host = tuple((_of_type(int, first), _of_type(int, end)) for first, end in host)
    size, first_page, pages = (_of_type(int, number) for number in (size, first_page, pages))
    read_mostly = _of_type(bool, read_mostly)
    return Object(_of_type(str, name), size, first_page, pages, host, read_mostly)


def _check_objects(objects: tuple[Object, ...], geometry: Geometry) -> None:
    """Raise an error unless objects are in order and at region boundaries, as by ``lay_out``."""
    if not objects:
        raise ValueError("there are no objects")
    end = 0
    for o in objects:
        at_boundary = o.first_page % geometry.pages_per_region == 0
        if o.first_page < end or not at_boundary or o.pages < 1 or o.bytes < 1:
            raise ValueError(
                f"object {o.name} must have pages after those before it, from a region boundary on"
            )
        if o.pages != geometry.pages(o.bytes):
            raise ValueError(f"object {o.name} has {o.bytes} bytes on {o.pages} pages")
        end = o.first_page + o.pages
    if end > _MOST_PAGES:
        raise ValueError(f"there are {end} pages, more than {_MOST_PAGES}")


def _one_line(error: BaseException) -> str:
    return str(error).split("\n")[0]
