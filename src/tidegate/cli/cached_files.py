"""What the cache folder holds, by kind; and how it is removed.

    runs       stored runs            runs/ab/abcd….json
    recordings recordings of runs     recordings/ab/abcd….npz
    readings   runs of open readings  variants/parts/abcd….parquet
    compiled   compiled code          compiled/STATE/…
    traces     touches of traces      traces/abcd….columns

Only files with such names are counted and removed: the folder may hold others.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tidegate.errors import UnknownName
from tidegate.files import cache_folder

_HASH = "[0-9a-f]{32}"
KINDS = {
    "runs": ("runs", re.compile(rf"[0-9a-f]{{2}}/{_HASH}\.json")),
    "recordings": ("recordings", re.compile(rf"[0-9a-f]{{2}}/{_HASH}\.npz")),
    "readings": ("variants", re.compile(rf"(parts|failed)/{_HASH}\.parquet")),
    "compiled": ("compiled", re.compile(rf"{_HASH}/.+")),
    "traces": ("traces", re.compile(rf"{_HASH}\.columns|lock")),
}


@dataclass(frozen=True)
class Held:
    """The files of one kind."""

    kind: str
    folder: Path
    files: int
    bytes: int


def held(kinds: Iterable[str] = ()) -> list[Held]:
    """Return what there is of these kinds, or of all."""
    found = []
    for kind in _known(kinds):
        sizes = [size for _, size in _files(kind)]
        found.append(Held(kind, cache_folder() / KINDS[kind][0], len(sizes), sum(sizes)))
    return found


def clear(kinds: Iterable[str] = ()) -> list[Held]:
    """Remove the files of these kinds, or of all, and return what was removed."""
    removed = []
    for kind in _known(kinds):
        sizes = []
        for file, size in _files(kind):
            with suppress(OSError):
                file.unlink()
                sizes.append(size)
        folder = cache_folder() / KINDS[kind][0]
        _remove_empty(folder)
        removed.append(Held(kind, folder, len(sizes), sum(sizes)))
    return removed


def _known(kinds: Iterable[str]) -> list[str]:
    wanted = list(dict.fromkeys(kinds))
    for kind in wanted:
        if kind not in KINDS:
            raise UnknownName("kind of stored files", kind, KINDS)
    return wanted or list(KINDS)


def _files(kind: str) -> Iterator[tuple[Path, int]]:
    name, pattern = KINDS[kind]
    folder = cache_folder() / name
    for path in sorted(folder.rglob("*")):
        if pattern.fullmatch(path.relative_to(folder).as_posix()) and not path.is_dir():
            with suppress(OSError):  # another process removed it
                yield path, path.lstat().st_size


def _remove_empty(folder: Path) -> None:
    for place, _, _ in os.walk(folder, topdown=False):
        with suppress(OSError):  # it holds something else
            os.rmdir(place)
