"""Marks: a set of regions."""

from __future__ import annotations


class Marks(set[int]):
    """A set of regions. ``clear`` takes constant time in compiled code.

    >>> seen = Marks()
    >>> seen.add(4)
    >>> 4 in seen, 5 in seen, len(seen)
    (True, False, 1)
    """
