"""Weights: the tensors of a model's files as read-only arrays in an arena.

Nothing is copied: pages come from the files themselves when they are used, and leave without being
written. All files share the arena's near memory.
"""

from __future__ import annotations

import difflib
import inspect
import os
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tidegate.errors import TidegateError, UnknownName
from tidegate.live.arena.arena import SPAN, Arena
from tidegate.live.arena.files import check_regular
from tidegate.live.arena.sharing import SharedArray
from tidegate.live.weights.gguf import read_gguf
from tidegate.live.weights.safetensors import read_safetensors, shards
from tidegate.live.weights.tensor_place import TensorPlace

AnyPath = str | os.PathLike[str]
_Read = Callable[[Path], tuple[list[TensorPlace], dict[str, Any]]]
# PyTorch's names of types that NumPy has none for
_TORCH_ONLY = {"BF16": "bfloat16", "F8_E4M3": "float8_e4m3fn", "F8_E5M2": "float8_e5m2"}


class Tensors(Mapping[str, NDArray[Any]]):
    """Tensors by name: ``tensors["wte.weight"]`` is a NumPy array, ``tensors.tensor(…)`` a PyTorch
    tensor; neither is a copy. ``metadata`` is what the files say besides.

    Pickled, they are handles: in a process of the same user they are the same memory.
    """

    def __init__(
        self, arrays: dict[str, NDArray[Any]], kinds: dict[str, str], metadata: dict[str, Any]
    ):
        self._arrays, self._kinds, self.metadata = arrays, kinds, metadata

    def __getitem__(self, name: str) -> NDArray[Any]:
        if name not in self._arrays:
            raise self._no_tensor(name)
        return self._arrays[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._arrays)

    def __len__(self) -> int:
        return len(self._arrays)

    def __repr__(self) -> str:
        size = sum(a.nbytes for a in self._arrays.values())
        return f"<{type(self).__name__}: {len(self)} tensors, {size:,} bytes>"

    def kind(self, name: str) -> str:
        """Return the file's own name of a tensor's type, such as BF16 or Q4_K."""
        if name not in self._kinds:
            raise self._no_tensor(name)
        return self._kinds[name]

    def _no_tensor(self, name: str) -> KeyError:
        """Return the error for a name that is no tensor's, with one that looks like it."""
        alike = difflib.get_close_matches(str(name), self._arrays, 1)
        hint = f"; did you mean '{alike[0]}'?" if alike else ""
        closed = "" if self._arrays else ": these weights are closed, or their files have none"
        return KeyError(f"there is no tensor '{name}'{hint}{closed}")

    def tensor(self, name: str) -> Any:
        """Return a PyTorch tensor over the same memory. It must not be written to."""
        import torch

        with warnings.catch_warnings():  # that the array is read-only, which is meant
            warnings.simplefilter("ignore", UserWarning)
            found = torch.from_numpy(self[name])
        only = _TORCH_ONLY.get(self._kinds[name])
        return found.view(getattr(torch, only)) if only else found


class Weights(Tensors):
    """The tensors of a model's files, in an arena of their own."""

    def __init__(
        self, files: Mapping[Path, tuple[list[TensorPlace], dict[str, Any]]], arena: Arena
    ):
        super().__init__({}, {}, {})
        self.arena = arena
        for path, (places, metadata) in files.items():
            self.metadata |= metadata
            content = arena.open(path, np.uint8)
            for place in places:
                if place.name in self._arrays:
                    raise TidegateError(f"two files have a tensor '{place.name}'; give one of them")
                raw = content[place.offset : place.offset + place.bytes]
                self._arrays[place.name] = _shaped(raw, place)
                self._kinds[place.name] = place.kind

    def __repr__(self) -> str:
        return f"{super().__repr__()[:-1]}, in {self.arena.near:,} bytes>"

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle handles of the tensors, and those tensors that had to be copied."""
        arrays = {
            name: self.arena.share(array) if self.arena.holds(array) else array
            for name, array in self._arrays.items()
        }
        return _attach, (arrays, self._kinds, self.metadata)

    def close(self) -> None:
        """End the arena. Using a tensor afterwards is a SIGSEGV."""
        self._arrays.clear()
        self.arena.close()

    def __enter__(self) -> Weights:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()


def _attach(
    arrays: dict[str, SharedArray | NDArray[Any]], kinds: dict[str, str], metadata: dict[str, Any]
) -> Tensors:
    """Return the tensors of another process, over its memory."""
    opened = {n: a.open() if isinstance(a, SharedArray) else a for n, a in arrays.items()}
    return Tensors(opened, kinds, metadata)


def _shaped(raw: NDArray[np.uint8], place: TensorPlace) -> NDArray[Any]:
    """Return the bytes of a tensor in its type and shape; bytes that are not aligned are copied."""
    if raw.ctypes.data % place.dtype.alignment:
        raw = raw.copy()
    return raw.view(place.dtype).reshape(place.shape)


def load_safetensors(path: AnyPath | Iterable[AnyPath], near: str | int, **options: Any) -> Weights:
    """Open safetensors files, or an index of them (``….index.json``), in ``near`` bytes of RAM.

    ``options`` are those of ``Arena``.
    """
    _check_options(options)
    paths = [Path(p) for p in _listed(path)]
    for file in paths:
        check_regular(str(file))
    found = [q for p in paths for q in (shards(p) if p.suffix == ".json" else [p])]
    return _open(found, read_safetensors, near, options)


def load_gguf(path: AnyPath | Iterable[AnyPath], near: str | int, **options: Any) -> Weights:
    """Open GGUF files, as ``load_safetensors`` does. Quantised tensors are rows of bytes."""
    _check_options(options)
    return _open([Path(p) for p in _listed(path)], read_gguf, near, options)


def _check_options(options: dict[str, Any]) -> None:
    """Refuse what is no keyword of Arena, before any file is opened."""
    known = list(inspect.signature(Arena).parameters)[1:]
    for name in options:
        if name not in known:
            raise UnknownName("keyword of Arena", name, known)


def _listed(path: AnyPath | Iterable[AnyPath]) -> list[AnyPath]:
    return [path] if isinstance(path, str | os.PathLike) else list(path)


def _open(paths: list[Path], read: _Read, near: str | int, options: dict[str, Any]) -> Weights:
    if not paths:
        raise TidegateError("path must name at least one file, got none")
    for path in paths:
        check_regular(str(path))
    files = {path: read(path) for path in paths}
    size = sum(path.stat().st_size for path in paths)
    arena = Arena(near, **{"span": max(SPAN, 2 * size)} | options)
    try:
        return Weights(files, arena)
    except BaseException:
        arena.close()
        raise
