"""The store: runs kept on disk by the hash of what they were made from, so that none is computed
twice.

It is a folder of JSON files, ``$TIDEGATE_CACHE`` or ``~/.cache/tidegate``. A file appears whole or
not at all, and one that cannot be read counts as absent.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from tidegate.compiled.jit import cache_folder, code_digest
from tidegate.experiments.runs import Run


def key_of(inputs: dict[str, Any]) -> str:
    """The name of a run: a hash of everything that can change its outcome, this package's own code
    included.
    """
    text = json.dumps({"inputs": inputs, "code": code_digest()}, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def load(key: str) -> Run | None:
    """The run of that name, if it is there."""
    with suppress(OSError, ValueError, TypeError):
        return Run.from_json(json.loads(_path(key).read_text()))
    return None


def keep(run: Run) -> None:
    """Keep a run.

    A store that cannot be written to is no reason to lose the result, so that is passed over.
    """
    path = _path(run.key)
    text = json.dumps(run.to_json(), default=str)
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(
            "w", dir=path.parent, suffix=".part", delete=False
        ) as file:
            try:
                file.write(text)
                file.flush()
                os.replace(file.name, path)
            except BaseException:
                os.unlink(file.name)
                raise


def answer(inputs: dict[str, Any], cache: bool, make: Callable[[str, dict[str, Any]], Run]) -> Run:
    """The run made from these inputs: the one that is kept, or made now (from its key and inputs)
    and kept from now on.
    """
    inputs = json.loads(json.dumps(inputs, default=str))
    key = key_of(inputs)
    cache = cache and "unrepeatable" not in str(inputs)
    if cache and (kept := load(key)) is not None:
        return kept
    made = make(key, inputs)
    if cache:
        keep(made)
    return made


def _path(key: str) -> Path:
    return cache_folder() / "runs" / key[:2] / f"{key}.json"
