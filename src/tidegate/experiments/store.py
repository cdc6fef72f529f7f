"""The store: runs on disk by the hash of what they were made from, so that none is computed twice.

It is a folder of JSON files in the cache folder, each with a checksum. A file that cannot be read,
or that is damaged, counts as absent.

Runs of shipped code are always stored. A user's class can depend on what no hash shows (files, the
clock, the environment), so its runs are stored only if it declares ``keep = True``.
"""

from __future__ import annotations

import hashlib
import json
import platform
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numba
import numpy as np

from tidegate.compiled.source_digest import code_digest
from tidegate.errors import TidegateError
from tidegate.experiments.runs import Run
from tidegate.files import cache_folder, write_atomically
from tidegate.simulation.recorded import Recording
from tidegate.user_code.fingerprint import Fingerprint, fingerprint

# rooms and files whose code cannot change a run
NOT_HASHED = (
    "advice",
    "cli",
    "live",
    "papers/*.py",
    "papers/*/*.py",  # but not their applications
    "studio",
    "experiments/sweeps",
    "experiments/comparison.py",
    "experiments/comparison_spec.py",
    "experiments/display.py",
    "experiments/grid.py",
    "experiments/labels.py",
    "experiments/plots.py",
    "plugins.py",
    "policy.py",
    "workload.py",
    "__init__.py",
    "__main__.py",
    "display",
    "interrupts.py",
)
VERSIONS = (platform.python_version(), np.__version__, numba.__version__)

_STORED = re.compile(r'\{"sha256": "(\w{64})", "data": (.*)\}', re.DOTALL)


def key_of(inputs: dict[str, Any], without: tuple[str, ...] = NOT_HASHED) -> str:
    """Return the name of a run: a hash of everything that can change its outcome, the package's own
    code included, but for the rooms ``without``.
    """
    named = {"inputs": inputs, "code": code_digest(without=without), "versions": VERSIONS}
    text = json.dumps(named, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def load(key: str) -> Run | None:
    """Return the run of that name, if it is there."""
    with suppress(OSError, ValueError, TypeError):
        run = Run.from_json(load_json(_path(key)) | {"from_store": True})
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


def load_or_run(
    inputs: dict[str, Any],
    code_dependencies: Iterable[object],
    cache: bool,
    make: Callable[[str, dict[str, Any]], Run],
) -> Run:
    """Return the run made from these inputs: from the store, or made now and stored.

    ``code_dependencies``: the objects and classes whose code takes part. ``make`` is called
    with the run's key and inputs.
    """
    named = name_run(inputs, code_dependencies)
    cache = cache and named.keeps
    if cache and (stored := load(named.key)) is not None:
        return stored
    made = make(named.key, named.inputs)
    if named.kept and named.found.unknown:
        made = replace(made, notes=[*made.notes, _why_not_kept(named.found)])
    if cache and named.is_current():  # else a file was written meanwhile
        save(made)
    return made


@dataclass(frozen=True)
class NamedRun:
    """A run's key, its inputs, and whether it may be stored."""

    key: str
    inputs: dict[str, Any]
    found: Fingerprint
    kept: bool  # all users' classes that take part say so
    files: list[Path]  # which they read

    @property
    def keeps(self) -> bool:
        return self.kept and not self.found.unknown

    def is_current(self) -> bool:
        """Return whether the files that users' classes read are as they were."""
        return bool(contents(self.files) == self.inputs["depends"])


def name_run(inputs: dict[str, Any], code_dependencies: Iterable[object]) -> NamedRun:
    """Name the run that these inputs and this code make."""
    found = fingerprint(*code_dependencies)
    kept = all(keeps(cls) for cls in found.local)
    files = depends(found.local) if kept else []
    inputs = json.loads(json.dumps(inputs, default=str))
    inputs |= {"made_by": found.digest, "depends": contents(files)}
    return NamedRun(key_of(inputs), inputs, found, kept, files)


def keeps(cls: type) -> bool:
    """Return whether a class says itself, not by a base, that its runs may be stored."""
    keep = vars(cls).get("keep", False)
    if not isinstance(keep, bool):
        raise TidegateError(f"{cls.__name__}: keep must be True or False, got {keep!r}")
    return keep


def depends(classes: Iterable[type]) -> list[Path]:
    """Return the files that classes and their bases declare to read."""
    files: set[Path] = set()
    for base in {base for cls in classes for base in cls.__mro__}:
        declared = vars(base).get("depends", ())
        if not isinstance(declared, tuple | list) or not all(
            isinstance(name, str | Path) for name in declared
        ):
            raise TidegateError(
                f'{base.__name__}: depends must be file names, such as ("data.csv",), '
                f"got {declared!r}"
            )
        files |= {Path(name).absolute() for name in declared}
    return sorted(files)


def contents(files: Iterable[Path]) -> dict[str, str]:
    """Return a hash of each file's content."""
    found = {}
    for path in files:
        try:
            with path.open("rb") as file:
                found[str(path)] = hashlib.file_digest(file, "sha256").hexdigest()
        except OSError as error:
            raise TidegateError(
                f"depends names {path}, which cannot be read: {error.strerror}; correct the name"
            ) from error
    return found


def _why_not_kept(found: Fingerprint) -> str:
    names = " and ".join(sorted(cls.__name__ for cls in found.local))
    return f"the run is not stored, although {names} says keep = True: {found.unknown[0]}"


def stored_keys() -> Iterator[str]:
    """Yield the keys of all stored runs, the newest first."""
    found = []
    for file in (cache_folder() / "runs").glob("??/*.json"):
        with suppress(OSError):  # another process may remove it
            found.append((file.stat().st_mtime, file.stem))
    for _, key in sorted(found, reverse=True):
        yield key


def _path(key: str) -> Path:
    return cache_folder() / "runs" / key[:2] / f"{key}.json"


def load_recording(key: str) -> Recording | None:
    """Return the recording of that run; one that is absent or damaged is None."""
    with suppress(TidegateError):
        return Recording.load(_recording_path(key))
    return None


def save_recording(key: str, recording: Recording) -> None:
    """Store a recording, if the store can be written to."""
    with suppress(OSError, TidegateError):
        recording.save(_recording_path(key))


def _recording_path(key: str) -> Path:
    return cache_folder() / "recordings" / key[:2] / f"{key}.npz"
