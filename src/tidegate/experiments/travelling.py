"""Travelling: parts of a grid on their way to worker processes, with the user's code they need.

A pickle holds the data of objects, but only the names of classes and functions. The worker imports
those itself, and may get another state of them: a module's variable that was changed in the parent,
or a file that was edited since. So both processes compare fingerprints, and a part that differs
stays in the parent.
"""

from __future__ import annotations

import io
import pickle
from types import FunctionType
from typing import Any

from tidegate.user_code.files import load_sources, sources
from tidegate.user_code.fingerprint import fingerprint
from tidegate.user_code.origins import is_local


class CannotTravel(Exception):
    """A part that a worker would not get as it is in the parent."""


class Travelling:
    """A part that is packed when it is sent, and unpacked by ``arrive``."""

    def __init__(self, part: Any):
        self._part = part

    def __reduce__(self) -> Any:
        try:
            return Arrived, _pack(self._part)
        except Exception:  # whatever its classes raise: it can still be done here
            return Arrived, (b"", b"", "")

    def arrive(self) -> Any:
        """Return the part: an executor of threads does not send it."""
        return self._part


class Arrived:
    """A part in a worker, not unpacked yet: an error outside a task would end the worker."""

    def __init__(self, files: bytes, packed: bytes, expected: str):
        self._files, self._packed, self._expected = files, packed, expected

    def arrive(self) -> Any:
        """Return the part. Raise CannotTravel if its code here is not that of the parent."""
        try:
            load_sources(pickle.loads(self._files))
            unpickler = _Unpickler(io.BytesIO(self._packed))
            part = unpickler.load()
        except Exception as error:
            raise CannotTravel from error
        if _print_of(unpickler.found) != self._expected:
            raise CannotTravel
        return part


def _pack(part: Any) -> tuple[bytes, bytes, str]:
    content = io.BytesIO()
    pickler = _Pickler(content, pickle.HIGHEST_PROTOCOL)
    pickler.dump(part)
    return pickle.dumps(sources()), content.getvalue(), _print_of(pickler.found)


def _print_of(found: dict[str, Any]) -> str:
    """Return the hash of local classes and functions; empty if there are none."""
    return fingerprint(*(found[name] for name in sorted(found))).digest if found else ""


class _Pickler(pickle.Pickler):
    def __init__(self, *how: Any):
        super().__init__(*how)
        self.found: dict[str, Any] = {}  # local classes and functions that are packed by name

    def reducer_override(self, thing: Any) -> Any:
        if isinstance(thing, type | FunctionType) and is_local(thing.__module__):
            self.found[f"{thing.__module__}:{thing.__qualname__}"] = thing
        return NotImplemented


class _Unpickler(pickle.Unpickler):
    def __init__(self, content: io.BytesIO):
        super().__init__(content)
        self.found: dict[str, Any] = {}

    def find_class(self, module: str, name: str) -> Any:
        thing = super().find_class(module, name)
        if isinstance(thing, type | FunctionType) and is_local(thing.__module__):
            self.found[f"{module}:{name}"] = thing
        return thing
