"""Column: a number for every region."""

from __future__ import annotations

from collections.abc import ItemsView, Iterator
from typing import Generic, TypeVar

N = TypeVar("N", int, float)


class Column(dict[int, N], Generic[N]):
    """A number for every region: ``default`` until another is assigned.

    Iteration yields the regions whose number is not the default.

    >>> uses = Column(0)
    >>> uses[5] += 1
    >>> uses[5], uses[6], dict(uses.items())
    (1, 0, {5: 1})
    """

    def __init__(self, default: N):
        super().__init__()
        self.default: N = default

    def __missing__(self, region: int) -> N:
        return self.default

    def __iter__(self) -> Iterator[int]:
        return (region for region in super().__iter__() if self[region] != self.default)

    def items(self) -> ItemsView[int, N]:  # type: ignore[override]
        return {region: self[region] for region in self}.items()
