"""Large grids: which programs run, and the touches of the others.

Addresses of most kernels are affine in the program's place: each step along an axis of the grid
moves them by the same amount. So the programs at the grid's beginning and end run, and some in
between, which check that the others' touches can be computed:

    x = 0   1   2 … n-2   n-1        the last one along an axis may be masked, so it runs itself
        run run check     run
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any

import numpy as np

CHECKS = 32  # programs that run only to be compared with what is computed for them
_CHUNK = 1 << 22  # touches computed at a time

Place = tuple[int, ...]  # x, y, z
Touches = tuple[Any, ...]  # address, bytes, write, site: arrays
Programs = Mapping[Place, list[Touches]]


def places_to_run(grid: Place) -> set[Place]:
    """Return the programs from which those of a large grid are computed, and some to check it.

    >>> sorted(x for x, _, _ in places_to_run((5, 1, 1)))[:2]
    [0, 1]
    """
    ends = product(*({0, min(1, n - 1), n - 1} for n in grid))
    draw = random.Random(0)
    return {*ends, *checked_places(grid, draw)}


def checked_places(grid: Place, draw: random.Random) -> set[Place]:
    """Return some programs of the grid, drawn at random."""
    return {
        (draw.randrange(grid[0]), draw.randrange(grid[1]), draw.randrange(grid[2]))
        for _ in range(CHECKS)
    }


def is_affine(grid: Place, ran: Programs) -> bool:
    """Return whether the touches of all programs that ran are what is computed for them."""
    for place, touches in ran.items():
        base, steps = _family(grid, place)
        if not _alike(touches, ran[base]) or any(not _alike(touches, ran[s]) for s in steps):
            return False
        computed = _addresses(ran, base, steps, np.array([place]))[0]
        if not np.array_equal(computed, _column(touches, 0).astype(np.int64)):
            return False
    return True


def computed_programs(grid: Place, ran: Programs) -> Iterator[tuple[Any, Touches]]:
    """Yield the touches of the programs that did not run: their numbers, and columns of touches."""
    families: dict[Place, tuple[list[Place], list[Place]]] = {}
    for place in product(*map(range, grid)):
        if place not in ran:
            base, steps = _family(grid, place)
            families.setdefault(base, (steps, []))[1].append(place)
    for base, (steps, places) in families.items():
        own = ran[base]
        each = sum(len(touch[0]) for touch in own)
        at_a_time = max(1, _CHUNK // max(1, each))
        for first in range(0, len(places) if each else 0, at_a_time):
            some = np.array(places[first : first + at_a_time])
            addresses = _addresses(ran, base, steps, some).astype(np.uint64).ravel()
            others = (np.tile(_column(own, i), len(some)) for i in (1, 2, 3))
            yield np.repeat(number_in(grid, some), each), (addresses, *others)


def number_in(grid: Place, places: Any) -> Any:
    """Return the numbers of programs, x fastest."""
    x, y, z = np.asarray(places).T
    return (z * grid[1] + y) * grid[0] + x


def _family(grid: Place, place: Place) -> tuple[Place, list[Place]]:
    """Return the first program that is at the same ends of the grid, and its neighbours."""
    inside = [p < n - 1 for p, n in zip(place, grid, strict=True)]
    base = [0 if i else p for i, p in zip(inside, place, strict=True)]
    steps = []
    for axis, n in enumerate(grid):
        if inside[axis] and n > 2:
            steps.append((*base[:axis], 1, *base[axis + 1 :]))
    return tuple(base), steps


def _addresses(ran: Programs, base: Place, steps: list[Place], places: Any) -> Any:
    """Return the addresses of programs of one family, a row each."""
    own = _column(ran[base], 0).astype(np.int64)
    rows = np.repeat(own[None], len(places), axis=0)
    for step in steps:
        axis = next(i for i in range(3) if step[i] != base[i])
        moved = _column(ran[step], 0).astype(np.int64) - own
        rows += np.outer(places[:, axis], moved)
    return rows


def _alike(some: list[Touches], others: list[Touches]) -> bool:
    """Return whether two programs differ in nothing but their addresses."""
    return all(np.array_equal(_column(some, i), _column(others, i)) for i in (1, 2, 3))


def _column(touches: list[Touches], which: int) -> Any:
    if not touches:
        return np.zeros(0, np.int64)
    return np.concatenate([touch[which] for touch in touches])
