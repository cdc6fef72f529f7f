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

from tidegate.errors import TidegateError
from tidegate.live.weights.tensor_place import TensorPlace, check_places

LONGEST_HEADER = 100 << 20  # bytes: the format's own limit
# NumPy has neither bfloat16 nor 8-bit floats: their bits are unsigned integers
DTYPES = {
    **{"F64": "f8", "F32": "f4", "F16": "f2", "BF16": "u2", "F8_E4M3": "u1", "F8_E5M2": "u1"},
    **{"I64": "i8", "I32": "i4", "I16": "i2", "I8": "i1"},
    **{"U64": "u8", "U32": "u4", "U16": "u2", "U8": "u1", "BOOL": "?"},
}
_METADATA = "__metadata__"


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
            header = json.loads(file.read(length))
            metadata = header.pop(_METADATA, {})
            places = [_place(name, said, 8 + length) for name, said in header.items()]
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise TidegateError(
                f"{path} has a damaged safetensors header ({error}); fetch it anew"
            ) from error
    check_places(path, places, size)
    return places, metadata


def _place(name: str, said: dict[str, Any], data: int) -> TensorPlace:
    kind, shape, (begin, end) = said["dtype"], tuple(map(int, said["shape"])), said["data_offsets"]
    if kind not in DTYPES:
        raise ValueError(f"tensor '{name}' has the unknown type {kind}")
    dtype = np.dtype(DTYPES[kind])
    if min(shape, default=0) < 0 or end - begin != math.prod(shape) * dtype.itemsize:
        raise ValueError(f"tensor '{name}' does not have the bytes of its shape")
    return TensorPlace(name, kind, dtype, shape, data + begin)


def shards(index: Path) -> list[Path]:
    """Return the files that an index (``model.safetensors.index.json``) names."""
    try:
        names = sorted(set(json.loads(index.read_text())["weight_map"].values()))
        return [index.parent / Path(name).name for name in names]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise TidegateError(
            f"{index} is not an index of safetensors files: it has no weight_map; give one that has"
        ) from error
