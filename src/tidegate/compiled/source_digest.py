"""A hash of Tidegate's own source: what names stored runs, traces and compiled code."""

from __future__ import annotations

import functools
import hashlib
import os
from pathlib import PurePath

_SOURCE = (".py", ".json")  # programs' models are JSON


@functools.cache
def _sources() -> list[tuple[str, str]]:
    """Return each source file of the package: its place there, and its path.

    Every command needs them, so this is done without the convenience of pathlib.
    """
    package = os.path.dirname(os.path.dirname(__file__))
    files = (
        os.path.join(folder, name)
        for folder, _, names in os.walk(package)
        for name in names
        if name.endswith(_SOURCE)
    )
    return sorted((file[len(package) + 1 :].replace(os.sep, "/"), file) for file in files)


@functools.cache
def code_digest(*rooms: str, without: tuple[str, ...] = ()) -> str:
    """Return a hash of the source of these rooms, or of the whole package, ``without`` some.

    A room is a folder or a file of the package, or a pattern such as ``papers/*/*.py``.

    >>> code_digest("simulation") == code_digest("policies")
    False
    """
    digest = hashlib.sha256()
    for place, file in _sources():
        if not _is_in(place, without) and (_is_in(place, rooms) or not rooms):
            with open(file, "rb") as opened:
                digest.update(opened.read())
    return digest.hexdigest()[:32]


def _is_in(place: str, rooms: tuple[str, ...]) -> bool:
    path = PurePath(place)
    return any(place.startswith(f"{room}/") or path.match(room) for room in rooms)
