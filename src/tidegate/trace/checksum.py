"""A trace file's checksum: SHA-256 of the whole file, kept within it.

A Parquet file ends with its metadata, so the digest can only be written when all else is: a
placeholder of the same length is written first and replaced at the end. The digest is that of the
file with the placeholder.
"""

from __future__ import annotations

import functools
import hashlib
import re
from pathlib import Path

from tidegate.errors import TidegateError

PLACEHOLDER = "0" * 64
_KEPT = re.compile(rb'"digest": "([^"]{64})"')
_CHUNK = 1 << 20
_MAGIC = b"PAR1"


def write_digest(path: Path) -> None:
    """Replace the placeholder in a file that was written just now."""
    kept = _find_digest(path)
    if kept is None or kept[1] != PLACEHOLDER.encode():
        raise AssertionError(f"{path} must hold the placeholder of its digest")
    digest = _hash(path, kept[0])
    with path.open("r+b") as file:
        file.seek(kept[0])
        file.write(digest.encode())


def check_digest(path: Path) -> str:
    """Return a digest of the file. Raise an error if it is not the one that the file holds.

    A file of another program holds none. One that did not change since is not read again.
    """
    found = path.stat()
    return _checked(path, found.st_mtime_ns, found.st_size, found.st_ino)


@functools.lru_cache(maxsize=64)
def _checked(path: Path, changed: int, size: int, number: int) -> str:
    kept = _find_digest(path)
    digest = _hash(path, None if kept is None else kept[0])
    if kept is not None and kept[1] != digest.encode():
        raise TidegateError(
            f"{path} is damaged: its checksum does not fit its content; save it anew"
        )
    return digest


def _find_digest(path: Path) -> tuple[int, bytes] | None:
    """Return where the digest is in the file and what it is; None if there is none."""
    with path.open("rb") as file:
        size = file.seek(0, 2)
        file.seek(max(0, size - 8))
        end = file.read()
        length = int.from_bytes(end[:4], "little") + 8  # of the metadata, and what follows it
        if end[4:] != _MAGIC or length > size:
            return None  # not a whole Parquet file
        file.seek(size - length)
        found = _KEPT.search(file.read())
    return (size - length + found.start(1), found[1]) if found else None


def _hash(path: Path, placeholder: int | None) -> str:
    """Return the digest of a file, as if the placeholder were at this place."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        if placeholder is not None:
            while file.tell() < placeholder:
                digest.update(file.read(min(_CHUNK, placeholder - file.tell())))
            digest.update(PLACEHOLDER.encode())
            file.seek(len(PLACEHOLDER), 1)
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()
