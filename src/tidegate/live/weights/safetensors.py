"""The safetensors format: a length, a JSON header, then the tensors' bytes.

u64 N │ N bytes of JSON: {"name": {"dtype": "F16", "shape": [2, 3], "data_offsets": [0, 12]}, …}
      │ data; offsets count from here
"""

from __future__ import annotations

import json
import math
import struct
from pathlib import Path
from typing import Any

import numpy as np

from tidegate.display.tables import printable
from tidegate.errors import TidegateError
from tidegate.live.arena.files import MOST_DIMENSIONS
from tidegate.live.weights.tensor_place import TensorPlace, check_places, quoted

LONGEST_HEADER = 100 << 20  # bytes: the format's own limit
# NumPy has neither bfloat16 nor 8-bit floats: their bits are unsigned integers
DTYPES = {
    **{"F64": "f8", "F32": "f4", "F16": "f2", "BF16": "u2", "F8_E4M3": "u1", "F8_E5M2": "u1"},
    **{"I64": "i8", "I32": "i4", "I16": "i2", "I8": "i1"},
    **{"U64": "u8", "U32": "u4", "U16": "u2", "U8": "u1", "BOOL": "?"},
}
_METADATA = "__metadata__"
_LONGEST_REASON = 200  # characters of an error


def read_safetensors(path: Path) -> tuple[list[TensorPlace], dict[str, Any]]:
    """Return the tensors of a safetensors file, by their places, and its metadata."""
    with path.open("rb") as file:
        size = path.stat().st_size
        head = file.read(8)
        length = struct.unpack("<Q", head)[0] if len(head) == 8 else 0
        if not 2 <= length <= min(LONGEST_HEADER, size - 8):
            raise TidegateError(
                f"{path} is not a whole safetensors file; give another, or fetch it anew"
            )
        try:
            header = json.loads(file.read(length), object_pairs_hook=_without_repeats)
            metadata = header.pop(_METADATA, {})
            if not isinstance(metadata, dict):
                raise ValueError(f"{_METADATA} is not a table")
            places = [_place(name, said, 8 + length) for name, said in header.items()]
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            said = printable(str(error)[:_LONGEST_REASON])
            raise TidegateError(
                f"{path} has a damaged safetensors header ({said}); fetch it anew"
            ) from error
    check_places(path, places, 8 + length, size)
    return places, metadata


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name occurs twice")
    return found


def _place(name: str, said: dict[str, Any], data: int) -> TensorPlace:
    kind, shape, offsets = said["dtype"], said["shape"], said["data_offsets"]
    if not isinstance(kind, str) or kind not in DTYPES:
        raise ValueError(f"tensor {quoted(name)} has the unknown type {kind}")
    dtype = np.dtype(DTYPES[kind])
    if not (_are_counts(shape) and _are_counts(offsets) and len(offsets) == 2):
        raise ValueError(
            f"tensor {quoted(name)} must have a shape and two offsets of whole numbers from 0 on"
        )
    if len(shape) > MOST_DIMENSIONS:
        raise ValueError(
            f"tensor {quoted(name)} has {len(shape)} dimensions; at most {MOST_DIMENSIONS} can be"
        )
    begin, end = offsets
    if end - begin != math.prod(shape) * dtype.itemsize:
        raise ValueError(f"tensor {quoted(name)} does not have the bytes of its shape")
    return TensorPlace(name, kind, dtype, tuple(shape), data + begin)


def _are_counts(numbers: Any) -> bool:
    """Return whether this is a list of whole numbers from 0 on; JSON also has 1.5 and Infinity."""
    return isinstance(numbers, list) and all(type(n) is int and 0 <= n < 1 << 63 for n in numbers)


def shards(index: Path) -> list[Path]:
    """Return the files that an index (``model.safetensors.index.json``) names."""
    try:
        names = sorted(set(json.loads(index.read_text())["weight_map"].values()))
        return [index.parent / Path(name).name for name in names]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise TidegateError(
            f"{index} is not an index of safetensors files: it has no weight_map; give one that has"
        ) from error
