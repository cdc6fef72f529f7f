"""Pages of a region as the bits of one number."""

from __future__ import annotations

from collections.abc import Iterator


def bits(mask: int) -> Iterator[int]:
    """The numbers of the bits that are set, from the lowest.

    >>> list(bits(0b1101))
    [0, 2, 3]
    """
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


def runs(mask: int) -> Iterator[tuple[int, int]]:
    """Runs of set bits as (first, how many).

    >>> list(runs(0b1100110))
    [(1, 2), (5, 2)]
    """
    while mask:
        first = (mask & -mask).bit_length() - 1
        length = (~(mask >> first) & (mask >> first) + 1).bit_length() - 1
        yield first, length
        mask &= ~span(first, first + length)


def span(low: int, high: int) -> int:
    """Bits ``low`` to ``high - 1``."""
    return (1 << high) - (1 << low) if high > low else 0
