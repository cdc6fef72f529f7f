"""Spans: the bytes of a storage that a tensor's elements are in, from its shape and strides."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple


class Span(NamedTuple):
    """The columns of an operand that say which bytes of its tensor are used; see ``ops``."""

    low: int
    high: int
    bytes: int
    row: int
    stride: int


def make_span(offset: int, shape: Sequence[int], strides: Sequence[int], size: int) -> Span | None:
    """Return the bytes that a tensor uses, None if it has no elements.

    Offset and strides are in elements of ``size`` bytes. Without strides elements are next to each
    other. Elements in rows at one distance are told apart; other gaps are not.

    >>> make_span(2, (4, 2), (8, 1), 4)
    Span(low=8, high=112, bytes=32, row=8, stride=32)
    """
    count, low = math.prod(shape), offset * size
    if not count:
        return None
    if len(strides) != len(shape):
        return Span(low, low + count * size, count * size, 0, 0)
    dims = sorted((st, n) for n, st in zip(shape, strides, strict=True) if st and n > 1)
    used = size * math.prod(n for _, n in dims)
    high = low + size * (1 + sum(st * (n - 1) for st, n in dims))
    run, stride, rows = 1, 0, 1
    for step, n in dims:
        if step == run and not stride:
            run *= n
        elif not stride:
            stride, rows = step, n
        elif step == stride * rows:
            rows *= n
        else:
            return Span(low, high, min(used, high - low), 0, 0)
    if stride < run or not stride:
        return Span(low, high, min(used, high - low), 0, 0)
    return Span(low, high, used, run * size, stride * size)
