"""The store: runs on disk by the hash of what they were made from, so that none is computed twice.

It is a folder of JSON files in the cache folder, each with a checksum. A file that cannot be read,
or that is damaged, counts as absent.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from tidegate.compiled.jit import code_digest
from tidegate.errors import TidegateError
from tidegate.experiments.runs import Run
from tidegate.files import cache_folder, write_atomically

_STORED = re.compile(r'\{"sha256": "(\w{64})", "data": (.*)\}', re.DOTALL)


def key_of(inputs: dict[str, Any]) -> str:
    """Return the name of a run: a hash of everything that can change its outcome, the package's own
    code included.
    """
    text = json.dumps({"inputs": inputs, "code": code_digest()}, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def load(key: str) -> Run | None:
    """Return the run of that name, if it is there."""
    with suppress(OSError, ValueError, TypeError):
        run = Run.from_json(load_json(_path(key)))
        return run if run.key == key else None
    return None


def save(run: Run) -> None:
    """Store a run, if the store can be written to: a full disk must not lose the result."""
    save_json(_path(run.key), run.to_json())


def save_json(path: Path, data: Any) -> None:
    """Write data to a file of the store, with a checksum, if it can be written to."""
    text = json.dumps(data, default=str)
    with suppress(OSError, TidegateError):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, f'{{"sha256": "{_checksum(text)}", "data": {text}}}')


def load_json(path: Path) -> Any:
    """Return the data of a file of the store. Raise ValueError if it is not what was written."""
    found = _STORED.fullmatch(path.read_text())
    if found is None or found[1] != _checksum(found[2]):
        raise ValueError(f"{path} is damaged")
    return json.loads(found[2])


def _checksum(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


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
