"""The store: runs on disk by the hash of what they were made from, so that none is computed twice.

It is a folder of JSON files in the cache folder. A file that cannot be read counts as absent.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from tidegate.compiled.jit import code_digest
from tidegate.errors import TidegateError
from tidegate.experiments.runs import Run
from tidegate.files import cache_folder, write_atomically


def key_of(inputs: dict[str, Any]) -> str:
    """Return the name of a run: a hash of everything that can change its outcome, the package's own
    code included.
    """
    text = json.dumps({"inputs": inputs, "code": code_digest()}, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def load(key: str) -> Run | None:
    """Return the run of that name, if it is there."""
    with suppress(OSError, ValueError, TypeError):
        return Run.from_json(json.loads(_path(key).read_text()))
    return None


def save(run: Run) -> None:
    """Store a run, if the store can be written to: a full disk must not lose the result."""
    save_json(_path(run.key), run.to_json())


def save_json(path: Path, data: Any) -> None:
    """Write data to a file of the store, if it can be written to."""
    with suppress(OSError, TidegateError):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, json.dumps(data, default=str))


def answer(inputs: dict[str, Any], cache: bool, make: Callable[[str, dict[str, Any]], Run]) -> Run:
    """Return the run made from these inputs: from the store, or made now and stored.

    ``make`` is called with the run's key and inputs.
    """
    inputs = json.loads(json.dumps(inputs, default=str))
    key = key_of(inputs)
    cache = cache and "unrepeatable" not in str(inputs)
    if cache and (stored := load(key)) is not None:
        return stored
    made = make(key, inputs)
    if cache:
        save(made)
    return made


def _path(key: str) -> Path:
    return cache_folder() / "runs" / key[:2] / f"{key}.json"
