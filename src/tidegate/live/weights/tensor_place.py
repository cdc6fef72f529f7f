"""Where a tensor lies in its file."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tidegate.display.tables import printable
from tidegate.errors import TidegateError
from tidegate.live.arena.files import MOST_DIMENSIONS, is_possible

_LONGEST_NAME = 80  # characters, in an error


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


def check_places(path: Path, places: list[TensorPlace], data: int, size: int) -> None:
    """Refuse tensors outside of the data, which are bytes ``data`` to ``size`` of the file, those
    that NumPy cannot have, and names that occur twice.
    """
    names = set()
    for place in places:
        if place.offset < data or place.offset + place.bytes > size:
            raise TidegateError(
                f"{path} is cut short or damaged: tensor {quoted(place.name)} would be bytes "
                f"{place.offset} to {place.offset + place.bytes}, and the file has data from "
                f"{data} to {size}; fetch it anew"
            )
        if not is_possible(place.shape, place.dtype.itemsize):
            raise TidegateError(
                f"{path} is damaged: tensor {quoted(place.name)} has {len(place.shape)} dimensions "
                f"or a length that no array can have (at most {MOST_DIMENSIONS} dimensions); "
                "fetch it anew"
            )
        if place.name in names:
            raise TidegateError(
                f"{path} has two tensors of the name {quoted(place.name)}; make it anew"
            )
        names.add(place.name)


def quoted(name: str) -> str:
    """Return a name as a file has it for an error: short, and on one line."""
    return f"'{printable(name[:_LONGEST_NAME])}'"
