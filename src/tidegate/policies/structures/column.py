"""Column: a number for every region; Marks: a set of regions."""

from __future__ import annotations

from collections.abc import ItemsView, Iterator
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

N = TypeVar("N", int, float)


class Column(dict[int, N], Generic[N]):
    """A number for every region: ``default`` until another is assigned.

    Iteration yields the regions whose number is not the default. After a compiled run the numbers
    stay in the array that ``replace`` was given: there may be millions.

    >>> uses = Column(0)
    >>> uses[5] += 1
    >>> uses[5], uses[6], dict(uses.items())
    (1, 0, {5: 1})
    """

    def __init__(self, default: N):
        super().__init__()
        self.default: N = default
        self._numbers: NDArray[Any] = np.zeros(0)

    def __missing__(self, region: int) -> N:
        if 0 <= region < len(self._numbers):
            return self._numbers[region].item()  # type: ignore[no-any-return]
        return self.default

    def __iter__(self) -> Iterator[int]:
        yield from (r for r in super().__iter__() if self[r] != self.default)
        for region in np.flatnonzero(self._numbers != self.default).tolist():
            if not super().__contains__(region):
                yield region

    def items(self) -> ItemsView[int, N]:  # type: ignore[override]
        return {region: self[region] for region in self}.items()

    def replace(self, numbers: NDArray[Any]) -> None:
        """Hold these numbers instead, region by region.

        >>> uses = Column(0)
        >>> uses.replace(np.array([0, 3, 4]))
        >>> uses[1] = 0
        >>> dict(uses.items()), uses[7]
        ({2: 4}, 0)
        """
        self.clear()
        self._numbers = numbers


class Marks(set[int]):
    """A set of regions. ``clear`` takes constant time in compiled code.

    >>> seen = Marks()
    >>> seen.add(4)
    >>> 4 in seen, 5 in seen, len(seen)
    (True, False, 1)
    """
