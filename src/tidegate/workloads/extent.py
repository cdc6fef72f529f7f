"""How many bytes of an object lie in each of its pages: all of every page, except in the last."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tidegate.trace.geometry import Geometry
from tidegate.trace.trace import Object


def bytes_within(owner: Object, index: NDArray[Any], geometry: Geometry) -> NDArray[Any]:
    """Bytes of ``owner`` in its pages ``index``, counted from the object's first.

    >>> bytes_within(Object("a", 100_000, first_page=0, pages=2), np.array([0, 1]), Geometry())
    array([65536, 34464])
    """
    return np.minimum(geometry.page, owner.bytes - index.astype(np.int64) * geometry.page)
