"""Names of runs before they are made: hashes of their settings, of the code, and of users' files.

A run's key, by which ``tidegate run`` stores it, needs its trace and policies to be set up: a
millisecond. A sweep of a million runs names them in a few microseconds each: by the fields of the
specification, each value being looked up once.

A value that names a file counts by the file's content and not by its place, so that the same sweep
has the same names on another machine.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from tidegate.compiled.source_digest import code_digest
from tidegate.errors import TidegateError
from tidegate.experiments.settings import all_settings
from tidegate.experiments.specification import RunSpec
from tidegate.experiments.store import NOT_HASHED, VERSIONS, contents, depends
from tidegate.machine.machine import Machine, load_machine
from tidegate.options import Configurable
from tidegate.trace.trace import Trace
from tidegate.user_code.files import load_file, texts_of
from tidegate.user_code.fingerprint import fingerprint

_DEFAULTS = {"workload": dataclasses.MISSING} | {f.name: f.default for f, _ in all_settings()}
_PYTHON = re.compile(r"[^\s(),=+|:]+\.py\b")  # users' files in a text such as mine.py:Mine(lag=2)


class Names:
    """Names runs; what a value stands for is looked up once, so make one for each sweep."""

    def __init__(self) -> None:
        self._known: dict[Any, str] = {}
        self._code = json.dumps([code_digest(without=NOT_HASHED), VERSIONS])

    def name(self, spec: RunSpec) -> str:
        """Return the name of a run: 32 hexadecimal digits."""
        machine = spec.default_machine if spec.machine is None else spec.machine
        given = [
            f"{field}={self._value(field, value)}"
            for field, value in _given(spec).items()
            if field != "machine"
        ]
        text = "\n".join([self._code, self._machine(machine), *given])
        return hashlib.sha256(text.encode()).hexdigest()[:32]

    def _value(self, field: str, value: Any) -> str:
        plain = isinstance(value, str | Path | int | float)
        key = (field, str(value)) if plain else (field, id(value))
        if key not in self._known:
            self._known[key] = _text(str(value)) if plain else _object(value)
        return self._known[key]

    def _machine(self, machine: str | Machine) -> str:
        key = machine if isinstance(machine, str) else id(machine)
        if key not in self._known:
            self._known[key] = json.dumps(load_machine(machine).constants(), default=str)
        return self._known[key]


def settings_of(spec: RunSpec) -> str:
    """Return the fields that were given, as JSON: what a reader of the results wants to see."""
    return json.dumps(_given(spec), default=_shown)


def _given(spec: RunSpec) -> dict[str, Any]:
    """Return the settings that differ from their defaults, the workload first."""
    settings = {"workload": spec.workload, **spec.flat()}
    return {name: value for name, value in settings.items() if value != _DEFAULTS[name]}


def _shown(value: Any) -> str:
    return str(getattr(value, "name", "") or value)


def _text(text: str) -> str:
    """Return a text with the contents of the files that it names."""
    files = {Path(found) for found in _PYTHON.findall(text)}
    for file in files:
        text = text.replace(str(file), file.name)
    facts = [_user_code(file) for file in sorted(files)]
    file = Path(text.partition("(")[0])
    if not files and file.suffix and file.is_file():  # a trace
        text = text.replace(str(file), file.name)
        facts.append(_digest([file.read_bytes()]))
    return json.dumps([text, *facts])


def _user_code(file: Path) -> str:
    module = load_file(file)
    classes = [v for v in vars(module).values() if isinstance(v, type)]
    own = [cls for cls in classes if cls.__module__ == module.__name__]
    read = contents(depends(own))
    return _digest([*texts_of(file), *(read[path].encode() for path in sorted(read))])


def _object(value: Any) -> str:
    """Return what names an object or class: its code, its options and its attributes."""
    if isinstance(value, Trace):
        code = fingerprint(*value.code_dependencies())
        named: Any = value.identity()
    else:
        code = fingerprint(value)
        named = value.settings() if isinstance(value, Configurable) else str(value)
    if code.unknown:
        raise TidegateError(
            f"a run of this sweep cannot be named: {code.unknown[0]}; give its class by file, "
            "such as mine.py:Mine"
        )
    return json.dumps([code.digest, named], default=str)


def _digest(texts: Iterable[bytes]) -> str:
    digest = hashlib.sha256()
    for text in texts:
        digest.update(len(text).to_bytes(8, "little") + text)
    return digest.hexdigest()


def anchored(spec: RunSpec, known: dict[Any, Any]) -> RunSpec:
    """Return a specification that means the same in another folder: files by their whole paths, and
    a user's machine as it is now.
    """
    changed = {}
    for field, change in _ANCHORED.items():
        value = getattr(spec, field)
        if isinstance(value, str | Path):
            if (field, value) not in known:
                known[field, value] = change(str(value))
            if known[field, value] != value:
                changed[field] = known[field, value]
    return dataclasses.replace(spec, **changed) if changed else spec


def _anchor(text: str) -> str:
    text = _PYTHON.sub(lambda found: str(Path(found[0]).resolve()), text)
    file = Path(text.partition("(")[0])
    if file.suffix and not file.is_absolute() and file.is_file():
        return text.replace(str(file), str(file.resolve()), 1)
    return text


def _anchor_machine(text: str) -> Any:
    return load_machine(text) if ".toml" in text else text


_ANCHORED: dict[str, Callable[[str], Any]] = {
    "workload": _anchor,
    "machine": _anchor_machine,
    **dict.fromkeys(("eviction", "prefetch", "placement", "tiering"), _anchor),
}
