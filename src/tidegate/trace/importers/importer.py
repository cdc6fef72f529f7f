"""Importer: what a format's module provides, and what the formats share.

A RawLaunch holds the touches of one launch in order, with addresses as the file has them.
Neighbouring touches of one block are merged (``coalesce``) before they are kept, so that a launch
of many lanes fits in memory.
"""

from __future__ import annotations

import gzip
import lzma
import sqlite3
import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, ClassVar, NamedTuple, cast

import numpy as np
import zstandard
from numpy.typing import NDArray
from polars.exceptions import PolarsError

from tidegate.errors import TidegateError
from tidegate.options import Configurable
from tidegate.trace.geometry import Geometry
from tidegate.trace.trace import Provenance, Trace

GRAIN = 4096  # bytes: no geometry has smaller pages, so touches within one may be merged
SEQUENCE = 1 << 18  # touches of one launch, where a file knows no launches: it keeps their order
_HEAD = 1 << 16
LONGEST_LINE = 1 << 24  # bytes; a small packed file can hold one line that no memory has room for
# what libraries raise for damaged files
_DAMAGE = (
    *(OSError, EOFError, ValueError, TypeError, OverflowError, KeyError, IndexError),
    *(RecursionError, lzma.LZMAError, zlib.error, sqlite3.Error, PolarsError, zstandard.ZstdError),
)


class RawLaunch(NamedTuple):
    """The touches of one launch. Blocks may alternate; a block's own touches are in order."""

    name: str
    block: NDArray[np.int64]
    address: NDArray[np.uint64]
    bytes: NDArray[np.int64]
    write: NDArray[np.uint8]
    site: NDArray[np.int16]

    def take(self, which: NDArray[np.int64]) -> RawLaunch:
        """Return some of the touches, by number."""
        block, address, size = self.block[which], self.address[which], self.bytes[which]
        return RawLaunch(self.name, block, address, size, self.write[which], self.site[which])


class Allocation(NamedTuple):
    """An object that the file itself names."""

    name: str
    address: int
    bytes: int


class Importer(Configurable, ABC):
    """One file of one format."""

    title: ClassVar[str]
    provenance: ClassVar[Provenance] = Provenance.RECORDED
    # True: an address is an identifier, and each identifier gets a region of one page
    identifiers: ClassVar[bool] = False
    notes: tuple[str, ...] = ()

    def __init__(self, path: Path, **options: Any):
        super().__init__(**options)
        self.path = path

    @classmethod
    @abstractmethod
    def recognises(cls, path: Path, head: bytes) -> bool:
        """Return whether a file that begins with ``head`` has this format."""

    @abstractmethod
    def launches(self, progress: Callable[[int], None]) -> Iterator[RawLaunch]:
        """Read the file once. ``progress`` takes the bytes read since the last call."""

    def read(self, progress: Callable[[int], None]) -> Iterator[RawLaunch]:
        """Yield ``launches``; whatever is wrong with the file is one line that names it."""
        with self.damage_named():
            yield from self.launches(progress)

    @contextmanager
    def damage_named(self) -> Iterator[None]:
        """Turn what libraries raise for damaged files into one line that names the file."""
        try:
            yield
        except _DAMAGE as error:
            raise self.wrong("data", str(error).split("\n")[0] or type(error).__name__) from error

    def trace(self, geometry: Geometry, progress: Callable[[int], None]) -> Trace:
        """Return the file's trace, laid out for a geometry."""
        from tidegate.trace.importers.imported import ImportedTrace

        return ImportedTrace(self, geometry, progress)

    def allocations(self) -> list[Allocation]:
        """Return the objects that the file names; the others are found by their addresses."""
        return []

    def wrong(self, where: str, what: str) -> TidegateError:
        """Return the error for a file that does not follow its format."""
        return TidegateError(f"{self.path} is not a whole {self.title}: {where}: {what}")


def read_head(path: Path) -> bytes:
    """Return the first bytes of a file, unpacked."""
    try:
        with open_packed(path) as file:
            return file.read(_HEAD)
    except _DAMAGE as error:
        raise TidegateError(f"{path} cannot be read: {error}") from error


def is_packed(path: Path) -> bool:
    """Return whether ``open_packed`` unpacks this file."""
    with path.open("rb") as plain, open_packed(path) as file:
        return type(file) is not type(plain)


def open_packed(path: Path) -> IO[bytes]:
    """Open a file for reading, unpacking .xz, .gz and .zst by their signatures."""
    file = path.open("rb")
    signature = file.read(6)
    file.seek(0)
    if signature == b"\xfd7zXZ\x00":
        return cast(IO[bytes], lzma.LZMAFile(file))
    if signature[:2] == b"\x1f\x8b":
        return cast(IO[bytes], gzip.GzipFile(fileobj=file))
    if signature[:4] == b"\x28\xb5\x2f\xfd":
        return cast(IO[bytes], zstandard.ZstdDecompressor().stream_reader(file, closefd=True))
    return file


def lines(path: Path, progress: Callable[[int], None]) -> Iterator[bytes]:
    """Yield the lines of a text file, without their ends."""
    pending = 0
    with open_packed(path) as file:
        rest = b""
        while chunk := file.read(1 << 20):
            parts = (rest + chunk).split(b"\n")
            rest = parts.pop()
            yield from parts
            if len(rest) > LONGEST_LINE:
                raise ValueError(f"a line is longer than {LONGEST_LINE} bytes")
            pending += len(chunk)
            if pending >= 1 << 22:
                progress(pending)
                pending = 0
        if rest:
            yield rest
    progress(pending)


def coalesce(launch: RawLaunch, grain: int = GRAIN) -> RawLaunch:
    """Merge neighbouring touches of one block, site and ``grain`` of addresses.

    >>> several = RawLaunch("k", *(np.array(c) for c in ([0, 0, 0, 1], [0, 64, 9000, 9000],
    ...     [64, 64, 4, 4], [0, 0, 1, 1], [0, 0, 0, 0])))
    >>> coalesce(several).bytes.tolist()
    [128, 4, 4]
    """
    if not len(launch.address):
        return launch
    place = launch.address // np.uint64(grain)
    new = np.zeros(len(place), bool)
    new[0] = True
    for column in (place, launch.block, launch.write, launch.site):
        new[1:] |= column[1:] != column[:-1]
    starts = np.flatnonzero(new)
    return launch.take(starts)._replace(bytes=np.add.reduceat(launch.bytes, starts))


def sequence(number: int, address: Any, bytes: Any, write: Any, site: Any = 0) -> RawLaunch:
    """Return touches without launches as one launch of one block, which keeps their order."""
    n = len(address)
    return RawLaunch(
        f"part {number}",
        np.zeros(n, np.int64),
        np.asarray(address, np.uint64),
        np.broadcast_to(np.asarray(bytes, np.int64), n),
        np.broadcast_to(np.asarray(write, np.uint8), n),
        np.broadcast_to(np.asarray(site, np.int16), n),
    )
