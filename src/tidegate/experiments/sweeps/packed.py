"""Batches, packed for worker processes with the user's code that they need.

A pickle holds the data of objects, but only the names of classes and functions. The worker imports
those itself, and may get another state of them: a module's variable that was changed in the parent,
or a file that was edited since. So both processes compare fingerprints, and a batch that differs
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


class CannotUnpack(Exception):
    """The batch in a worker would not be what it is in the parent."""


class Packed:
    """A batch that is pickled when it is sent, and unpacked by ``unpack``."""

    def __init__(self, batch: Any):
        self._batch = batch

    def __reduce__(self) -> Any:
        try:
            return Unpacked, _pack(self._batch)
        except Exception:  # whatever its classes raise: it can still be done here
            return Unpacked, (b"", b"", "")

    def unpack(self) -> Any:
        """Return the batch: an executor of threads does not send it."""
        return self._batch


class Unpacked:
    """A batch in a worker, before it is unpacked: an error outside a task would end the worker."""

    def __init__(self, files: bytes, packed: bytes, expected: str):
        self._files, self._packed, self._expected = files, packed, expected

    def unpack(self) -> Any:
        """Return the batch. Raise CannotUnpack if its code here is not that of the parent."""
        try:
            load_sources(pickle.loads(self._files))
            unpickler = _Unpickler(io.BytesIO(self._packed))
            batch = unpickler.load()
        except Exception as error:
            raise CannotUnpack from error
        if _print_of(unpickler.found) != self._expected:
            raise CannotUnpack
        return batch


def _pack(batch: Any) -> tuple[bytes, bytes, str]:
    content = io.BytesIO()
    pickler = _Pickler(content, pickle.HIGHEST_PROTOCOL)
    pickler.dump(batch)
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
