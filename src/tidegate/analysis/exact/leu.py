"""Least expected use, exact: the misses of one sequence when the distributions of reuse intervals
are known.

LEU evicts the block with the lowest priority (Chen et al., MEMSYS'19). What it knows are
distributions, not the future: how often an interval occurs, never when. They are those of the whole
sequence, as OSL's are (Li et al.); for blocks, or for references, where the last to touch a block
decides. Every miss is brought in, so the block just touched is never the victim.

Mind the hindsight: the distributions are counted on the very sequence they are used on. A block
with few touches has a distribution that almost is its future, so LEU beats LRU here even where
touches are drawn at random and nothing can be learned. What a system can reach, which learns as it
goes, is for the policy ``leu`` to show.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tidegate.analysis.curves import MissRatioCurve
from tidegate.analysis.exact.intervals import NEVER, Touches
from tidegate.analysis.exact.lines import COLUMNS, OWNER, PHASE, TOUCHED, enter_phase, lower
from tidegate.analysis.exact.victims import (
    AHEAD,
    AT,
    PLACE,
    arrive,
    expect,
    leave,
    resident,
    residents_of,
    ring,
    touch,
)
from tidegate.analysis.sequence import checked
from tidegate.compiled.array_table import ArrayTable
from tidegate.compiled.jit import jit, jit_bare
from tidegate.errors import TidegateError
from tidegate.policies.eviction.leu.phases import phases_of


def leu_misses(ids: ArrayLike, capacity: int, references: ArrayLike | None = None) -> int:
    """How many of the touches ``ids`` miss, first touches among them, in ``capacity`` frames.

    >>> leu_misses([0, 1, 2, 0, 1, 2, 0, 1, 2], capacity=2)
    6
    """
    return _run(Touches.of(ids, references), capacity, np.zeros(0, np.int32))


def leu_stays(touches: Touches, capacity: int) -> NDArray[np.int32]:
    """For how long its block stays after each touch: to the next touch, to its eviction or to the
    end.

    >>> leu_stays(Touches.of([0, 1, 0, 2]), capacity=2).tolist()
    [2, 2, 2, 1]
    """
    stays = np.zeros(len(touches.ids), np.int32)
    _run(touches, capacity, stays)
    return stays


def _run(touches: Touches, capacity: int, stays: NDArray[np.int32]) -> int:
    checked([], capacity)
    phases = phases_of(touches.histograms())
    residents = residents_of(touches.blocks, min(int(capacity), touches.blocks), touches.bound)
    intervals = touches.intervals()
    return int(
        _misses(
            touches.ids, touches.owners, intervals, ArrayTable(residents), ArrayTable(phases), stays
        )
    )


def leu_curve(
    ids: ArrayLike, references: ArrayLike | None = None, unit_bytes: int = 1
) -> MissRatioCurve:
    """LEU's misses at every capacity, in one pass over its stack (Mattson et al., 1970).

    LEU is a stack algorithm, because a block's priority does not depend on the capacity. A pass
    takes time in proportion to the touches times the depth at which they hit, so for very many
    blocks a few calls of :func:`leu_misses` are quicker.
    """
    touches = Touches.of(ids, references)
    if not len(touches.ids):
        raise TidegateError("a sequence without touches has no curve")
    phases = phases_of(touches.histograms())
    lines, depth = (
        np.zeros((touches.blocks, COLUMNS), np.int64),
        np.zeros(touches.blocks + 1, np.int64),
    )
    stack = np.zeros(touches.blocks, np.int32)
    size = _depths(touches.ids, touches.owners, stack, lines, depth, ArrayTable(phases))
    hits = np.cumsum(depth[1 : size + 1])
    return MissRatioCurve(
        unit_bytes, np.arange(1, len(hits) + 1), len(touches.ids) - hits, len(touches.ids)
    )


@jit
def _misses(ids: Any, owners: Any, intervals: Any, residents: Any, phases: Any, stays: Any) -> int:
    """Count misses; in ``stays``, unless it is empty, write down how long each touch's block stays."""
    return _count_misses(ids, owners, intervals, residents, phases, stays)


@jit_bare
def _count_misses(
    ids: Any, owners: Any, intervals: Any, residents: Any, phases: Any, stays: Any
) -> int:
    blocks, misses, end = residents.blocks, 0, len(ids)
    for now in range(end):
        id = np.uint64(ids[now])
        later = min(now + AHEAD, end - 1)
        expect(residents, ids[later], owners[later])
        ring(residents, phases, now)
        if not resident(residents, id):
            place = misses
            if misses >= len(residents.held):
                victim = leave(residents, phases, now)
                place = int(blocks[victim, PLACE])
                if len(stays):
                    stays[blocks[victim, AT]] = now - blocks[victim, AT]
            arrive(residents, id, place)
            misses += 1
        elif len(stays):
            stays[blocks[id, AT]] = now - blocks[id, AT]
        touch(
            residents,
            phases,
            id,
            owners[now],
            now,
            now + intervals[now] if intervals[now] != NEVER else end,
        )
    if len(stays):
        for place in range(min(misses, len(residents.held))):
            at = blocks[residents.held[place], AT]
            stays[at] = end - at
    return misses


@jit
def _depths(ids: Any, owners: Any, stack: Any, lines: Any, depth: Any, phases: Any) -> int:
    """Count the depth of every hit, from 1; how deep the stack became."""
    return _count_depths(ids, owners, stack, lines, depth, phases)


@jit_bare
def _count_depths(ids: Any, owners: Any, stack: Any, lines: Any, depth: Any, phases: Any) -> int:
    """One walk over the stack for each touch.

    The block touched goes to the top. What it pushes out goes down, and at every place the one with
    the lower priority goes on: the victim of a cache of that size. It ends in the place that the
    touched block left.
    """
    size = 0
    for now in range(len(ids)):
        id = ids[now]
        if size == 0 or stack[0] == id:
            place = 0
            stack[0] = id
        else:
            carried, place = stack[0], 1
            stack[0] = id
            enter_phase(lines, carried, phases, now)
            while place < size and stack[place] != id:
                other = stack[place]
                enter_phase(lines, other, phases, now)
                if lower(lines, other, carried, now):
                    stack[place], carried = carried, other
                place += 1
            stack[place] = carried
        if place == size:
            size += 1
        else:
            depth[place + 1] += 1
        lines[id, TOUCHED], lines[id, OWNER], lines[id, PHASE] = now, owners[now], -1
    return size
