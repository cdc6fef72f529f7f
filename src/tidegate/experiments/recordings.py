"""Recordings of whole runs on disk, by the key of their run."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from tidegate.errors import TidegateError
from tidegate.files import cache_folder
from tidegate.simulation.recorded import Recording


def load(key: str) -> Recording | None:
    """Return the recording of that run; one that is absent or damaged is None."""
    with suppress(TidegateError):
        return Recording.load(_path(key))
    return None


def save(key: str, recording: Recording) -> None:
    """Store a recording, if the store can be written to."""
    with suppress(OSError, TidegateError):
        recording.save(_path(key))


def _path(key: str) -> Path:
    return cache_folder() / "recordings" / key[:2] / f"{key}.npz"
