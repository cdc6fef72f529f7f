"""Traces that runs share: made once per machine, mapped by all its processes.

    within ``shared_traces()``
    RunSpec.trace() ─▶ the trace of the run before  ·  a small one, in memory
                    ─▶ traces/HASH.columns in the cache folder, mapped; made if it is missing

A file is named by the trace's identity and by the code that makes it. Files that were not used for
longest are removed when all together are larger than the limit ($TIDEGATE_TRACES, 8 GiB by
default), or when they are old. A process that has such a file mapped can go on reading it.
"""

from __future__ import annotations

import ctypes
import fcntl
import gc
import hashlib
import json
import mmap
import os
import threading
import time
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager, suppress
from itertools import chain
from pathlib import Path
from typing import Any

from tidegate import units
from tidegate.compiled.source_digest import code_digest
from tidegate.errors import TidegateError
from tidegate.experiments.store import VERSIONS, keeps
from tidegate.files import cache_folder, write_atomically
from tidegate.trace.columns import BYTES_PER_TOUCH, ColumnTrace, columns_of
from tidegate.trace.trace import Trace
from tidegate.user_code.fingerprint import fingerprint
from tidegate.workloads.program import Program

LIMIT = "8GiB"  # of all files together, where $TIDEGATE_TRACES is not set
SMALL = 1 << 20  # bytes: a trace up to this size is made anew in each process
LARGE = 1 << 20  # touches or pages: below, a run leaves some megabytes behind
# rooms whose code makes traces
_ROOMS = (
    "compiled",
    "compiler",
    "record",
    "trace",
    "units.py",
    "workloads",
    "papers/*/applications/*",
)
OLD = 30 * 24 * 3600  # seconds without use
_HELD: dict[Hashable, Trace] = {}  # the trace of the run before, if traces are shared
_sharing = 0
_one_at_a_time = threading.RLock()  # within this process; files have locks of their own


class TooLarge(Exception):
    """A trace that would fill the cache; it is streamed instead."""


@contextmanager
def shared_traces() -> Iterator[None]:
    """Let runs within this block take their traces from the cache."""
    global _sharing
    _sharing += 1
    try:
        yield
    finally:
        _sharing -= 1


def forget_traces() -> None:
    """Free the trace that this process holds."""
    _HELD.clear()


def shared(key: Hashable, make: Callable[[], Trace]) -> Trace:
    """Return the trace that ``make`` returns, or an equal one from the cache.

    ``key``: equal for specifications whose traces are equal, in this process.
    """
    if not _sharing:
        return make()
    with _one_at_a_time:
        if key not in _HELD:
            large = any(map(_is_large, _HELD.values()))
            _HELD.clear()
            if large:
                _release_memory()
            _HELD[key] = _kept(make())
        return _HELD[key]


def limit() -> int:
    """Return how many bytes the files of traces may take together."""
    given = os.environ.get("TIDEGATE_TRACES", LIMIT)
    try:
        return units.size(given)
    except TidegateError as error:
        raise TidegateError(f"TIDEGATE_TRACES: {error}") from error


def _is_large(trace: Trace) -> bool:
    """Return whether a run of the trace leaves much behind; the collector's walk takes a second."""
    touches = getattr(trace, "about_touches", None)
    return touches is None or max(touches, trace.pages) > LARGE


def _release_memory() -> None:
    """Return free memory to the system: glibc keeps it, and the next trace is as large again.

    A run and its policies point at each other and at the trace, so only the collector frees them.
    """
    gc.collect()
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


def _kept(trace: Trace) -> Trace:
    """Return a trace with its touches in memory or mapped; as it is, if that cannot be."""
    code = fingerprint(*trace.code_dependencies())
    about = getattr(trace, "about_touches", None) or 0
    if code.unknown or not all(map(keeps, code.local)) or about * BYTES_PER_TOUCH > limit() // 2:
        return trace
    named = json.dumps([trace.identity(), code.digest, code_digest(*_ROOMS), VERSIONS], default=str)
    file = _folder() / f"{hashlib.sha256(named.encode()).hexdigest()[:32]}.columns"
    try:
        with _locked(file):
            return ColumnTrace(trace, _map(file) or _make(trace, file))
    except ValueError:  # a damaged file
        file.unlink(missing_ok=True)
    except (OSError, TidegateError, TooLarge):
        pass  # no room; what the trace itself raises, it raises again in the run
    return trace


def _folder() -> Path:
    return cache_folder() / "traces"


@contextmanager
def _locked(file: Path) -> Iterator[None]:
    """Wait while another process makes the same file; its end, however it comes, unlocks it.

    One file holds all locks: a byte of it for each trace.
    """
    file.parent.mkdir(parents=True, exist_ok=True)
    with (file.parent / "lock").open("ab") as locks:
        fcntl.lockf(locks, fcntl.LOCK_EX, 1, int(file.stem[:15], 16))
        yield


def _map(file: Path) -> mmap.mmap | None:
    """Return the content of a file, and note that it is in use."""
    try:
        with file.open("rb") as opened:
            os.utime(file)
            return mmap.mmap(opened.fileno(), 0, prot=mmap.PROT_READ)
    except FileNotFoundError:
        return None


def _make(trace: Trace, file: Path) -> Any:
    """Return a trace's columns: a small one's in memory, others in the file, mapped."""
    pieces, first, size = columns_of(trace), list[bytes](), 0
    for piece in pieces:
        first.append(piece)
        size += len(piece)
        if size > SMALL:
            break
    else:
        return b"".join(first)

    def write(partial: Path) -> None:
        with partial.open("wb") as out:
            for piece in chain(first, pieces):
                if out.tell() + len(piece) > limit() // 2:
                    raise TooLarge
                out.write(piece)

    write_atomically(file, write)
    if isinstance(trace, Program):
        trace.workload.release()
    _remove_old(file)
    return _map(file)


def _remove_old(newest: Path) -> None:
    """Remove files that are old, and those used longest ago while there is too much."""
    found = []
    for file in newest.parent.glob("*.columns"):
        with suppress(OSError):  # another process removed it
            status = file.stat()
            found.append((status.st_mtime, status.st_size, file))
    total, most, now = sum(size for _, size, _ in found), limit(), time.time()
    for used, size, file in sorted(found):
        if file != newest and (total > most or used < now - OLD):
            file.unlink(missing_ok=True)
            total -= size
