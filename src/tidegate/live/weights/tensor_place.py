"""Where a tensor lies in its file."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tidegate.errors import TidegateError


@dataclass(frozen=True)
class TensorPlace:
    """A tensor of a file: its type and shape for NumPy, and where its bytes begin.

    ``kind`` is the file's own name of the type, which may be one that NumPy does not have.
    """

    name: str
    kind: str
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    offset: int

    @property
    def bytes(self) -> int:
        return math.prod(self.shape) * self.dtype.itemsize


def check_places(path: Path, places: list[TensorPlace], size: int) -> None:
    """Refuse tensors beyond the end of a file of ``size`` bytes, and names that occur twice."""
    names = set()
    for place in places:
        if place.offset < 0 or place.offset + place.bytes > size:
            raise TidegateError(
                f"{path} is cut short or damaged: tensor '{place.name}' would end at byte "
                f"{place.offset + place.bytes}, and the file has {size}; fetch it anew"
            )
        if place.name in names:
            raise TidegateError(f"{path} has two tensors of the name '{place.name}'; make it anew")
        names.add(place.name)
