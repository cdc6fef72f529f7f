"""Draws: random numbers that are the same in every run."""

from __future__ import annotations

import random


class Draws(random.Random):
    """A sequence of random numbers, by its seed.

    >>> draws = Draws(7)
    >>> [draws.below(10) for _ in range(5)]
    [5, 2, 6, 0, 1]
    """

    def below(self, limit: int) -> int:
        """Return a whole number from 0 to ``limit`` - 1, each as likely as the other."""
        return self.randrange(limit)
