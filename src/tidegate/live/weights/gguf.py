"""The GGUF format of llama.cpp: metadata, a table of tensors, then their bytes, aligned.

    "GGUF" │ u32 version │ u64 tensors │ u64 metadata
           │ metadata: key, type, value · tensors: name, dimensions, type, offset
           │ data, from the next multiple of general.alignment on; offsets count from there

Quantised tensors are rows of blocks; they come as bytes, one row of blocks for each row.
"""

from __future__ import annotations

import struct
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from tidegate.errors import TidegateError
from tidegate.live.weights.tensor_place import TensorPlace, check_places, quoted

MOST = 1 << 24  # tensors, entries or elements of metadata; a damaged count is larger
_ALIGNMENT = 32

# types of tensors that NumPy has, by number; bfloat16's bits are unsigned integers
_PLAIN = {
    **{0: ("F32", "f4"), 1: ("F16", "f2"), 24: ("I8", "i1"), 25: ("I16", "i2"), 26: ("I32", "i4")},
    **{27: ("I64", "i8"), 28: ("F64", "f8"), 30: ("BF16", "u2")},
}
# the others: elements and bytes of a block (ggml's block_q4_0 and so on)
_BLOCKS = {
    **{2: ("Q4_0", 32, 18), 3: ("Q4_1", 32, 20), 6: ("Q5_0", 32, 22), 7: ("Q5_1", 32, 24)},
    **{8: ("Q8_0", 32, 34), 9: ("Q8_1", 32, 36), 10: ("Q2_K", 256, 84), 11: ("Q3_K", 256, 110)},
    **{12: ("Q4_K", 256, 144), 13: ("Q5_K", 256, 176), 14: ("Q6_K", 256, 210)},
    **{15: ("Q8_K", 256, 292)},
}
_NUMBERS = {
    0: "B",
    1: "b",
    2: "H",
    3: "h",
    4: "I",
    5: "i",
    6: "f",
    7: "?",
    10: "Q",
    11: "q",
    12: "d",
}
_STRING, _ARRAY = 8, 9


def read_gguf(path: Path) -> tuple[list[TensorPlace], dict[str, Any]]:
    """Return the tensors of a GGUF file, by their places, and its metadata."""
    size = path.stat().st_size
    with path.open("rb") as file:
        read = _Reader(path, file)
        magic, version = file.read(4), read.number("I")
        if magic != b"GGUF" or version not in (2, 3):
            raise TidegateError(f"{path} is not a GGUF file of version 2 or 3; give another")
        tensors, entries = read.count("Q"), read.count("Q")
        metadata = {read.text(): read.value(read.number("I")) for _ in range(entries)}
        described = [_describe(path, read) for _ in range(tensors)]
        alignment = metadata.get("general.alignment", _ALIGNMENT)
        if not isinstance(alignment, int) or not 0 < alignment <= 1 << 20:
            raise TidegateError(f"{path} has the alignment {alignment!r}; fetch it anew")
        data = file.tell() + -file.tell() % alignment
    places = [replace(place, offset=data + place.offset) for place in described]
    check_places(path, places, data, size)
    return places, metadata


def _describe(path: Path, read: _Reader) -> TensorPlace:
    """Return the next tensor of the table; its offset counts from the data's beginning."""
    name, dimensions = read.text(), read.number("I")
    if dimensions > 8:
        raise TidegateError(f"{path} is damaged: {quoted(name)} has {dimensions} dimensions")
    shape = tuple(read.number("Q") for _ in range(dimensions))[::-1]  # the last is contiguous
    number, offset = read.number("I"), read.number("Q")
    if number in _PLAIN:
        kind, dtype = _PLAIN[number]
        return TensorPlace(name, kind, np.dtype(dtype), shape, offset)
    if number not in _BLOCKS:
        raise TidegateError(f"{path} has a tensor {quoted(name)} of the unknown type {number}")
    kind, elements, size = _BLOCKS[number]
    if not shape or shape[-1] % elements:
        raise TidegateError(
            f"{path} is damaged: rows of {quoted(name)} are not whole {kind} blocks"
        )
    rows = (*shape[:-1], shape[-1] // elements * size)
    return TensorPlace(name, kind, np.dtype("u1"), rows, offset)


class _Reader:
    """Reads numbers, texts and values of metadata."""

    def __init__(self, path: Path, file: BinaryIO):
        self._path, self._file = path, file

    def bytes(self, n: int) -> bytes:
        data = self._file.read(n) if n <= MOST else b""
        if len(data) != n:
            raise TidegateError(f"{self._path} is cut short or damaged; fetch it anew")
        return data

    def number(self, kind: str) -> Any:
        return struct.unpack(f"<{kind}", self.bytes(struct.calcsize(f"<{kind}")))[0]

    def count(self, kind: str) -> int:
        n: int = self.number(kind)
        if n > MOST:
            raise TidegateError(f"{self._path} is damaged: it names {n} entries; fetch it anew")
        return n

    def text(self) -> str:
        return self.bytes(self.number("Q")).decode("utf-8", "replace")

    def value(self, kind: int) -> Any:
        if kind == _STRING:
            return self.text()
        if kind == _ARRAY:
            of, n = self.number("I"), self.count("Q")
            if of == _ARRAY:
                raise TidegateError(
                    f"{self._path} has arrays of arrays as metadata, which is damage"
                )
            return [self.value(of) for _ in range(n)]
        if kind not in _NUMBERS:
            raise TidegateError(f"{self._path} is damaged: metadata of the unknown type {kind}")
        return self.number(_NUMBERS[kind])
