"""Least expected use, exact: the misses of one sequence whose distributions of reuse intervals are
known.

LEU evicts the block with the lowest priority (Chen et al., MEMSYS'19). It knows distributions, not
the future: how often an interval occurs, never when. They are those of the whole sequence, as OSL's
are (Li et al.): one per block, or one per access site, where the site that touched a block last
decides. Every miss is brought in, so that the block just touched is never the victim.

Beware of hindsight: the distributions are counted on the very sequence they are used on. For a
block with few touches, the distribution is almost its future. So LEU beats LRU here even where
touches are random and nothing can be learned. The policy ``leu`` shows what a system can reach that
learns as it runs.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tidegate.analysis.curves import MissRatioCurve
from tidegate.analysis.exact.intervals import NEVER, TouchSequence
from tidegate.analysis.exact.leu.priorities import (
    BLOCK_COLUMNS,
    OWNER,
    PHASE,
    TOUCHED,
    enter_phase,
    is_lower,
)
from tidegate.analysis.exact.leu.victim_search import (
    ABSENT,
    AHEAD,
    FRAME,
    evict,
    fetch_touch,
    no_residents,
    ring_alarms,
    touch,
)
from tidegate.analysis.sequence import checked
from tidegate.compiled.array_table import ArrayTable
from tidegate.compiled.jit import jit, jit_bare
from tidegate.errors import TidegateError
from tidegate.policies.eviction.leu.phases import phases_of


def leu_misses(ids: ArrayLike, capacity: int, references: ArrayLike | None = None) -> int:
    """Return how many of the touches ``ids`` miss in ``capacity`` frames, first touches included.

    >>> leu_misses([0, 1, 2, 0, 1, 2, 0, 1, 2], capacity=2)
    6
    """
    return _run(TouchSequence.from_ids(ids, references), capacity, np.zeros(0, np.int32))


def leu_stays(touches: TouchSequence, capacity: int) -> NDArray[np.int32]:
    """Return how long the block stays after each touch: until its next touch, its eviction or the
    end.

    >>> leu_stays(TouchSequence.from_ids([0, 1, 0, 2]), capacity=2).tolist()
    [2, 2, 2, 1]
    """
    stays = np.zeros(len(touches.ids), np.int32)
    _run(touches, capacity, stays)
    return stays


def _run(touches: TouchSequence, capacity: int, stays: NDArray[np.int32]) -> int:
    checked([], capacity)
    phases = phases_of(touches.histograms())
    residents = no_residents(touches.blocks, min(int(capacity), touches.blocks), touches.bound)
    known = touches.ids, touches.owners, touches.intervals()
    return int(_misses(*known, ArrayTable(residents), ArrayTable(phases), stays))


def leu_curve(
    ids: ArrayLike, references: ArrayLike | None = None, unit_bytes: int = 1
) -> MissRatioCurve:
    """Return LEU's misses at every capacity, in one pass over its stack (Mattson et al., 1970).

    LEU is a stack algorithm, because a block's priority does not depend on the capacity. The time
    of a pass is proportional to the touches times the depth at which they hit: for very many
    blocks, a few calls of :func:`leu_misses` are quicker.
    """
    touches = TouchSequence.from_ids(ids, references)
    n = len(touches.ids)
    if not n:
        raise TidegateError("ids must have at least one touch, got none")
    phases = phases_of(touches.histograms())
    blocks = np.zeros((touches.blocks, BLOCK_COLUMNS), np.int32)
    depth, stack = np.zeros(touches.blocks + 1, np.int64), np.zeros(touches.blocks, np.int32)
    size = _depths(touches.ids, touches.owners, stack, blocks, depth, ArrayTable(phases))
    hits = np.cumsum(depth[1 : size + 1])
    return MissRatioCurve(unit_bytes, np.arange(1, len(hits) + 1), n - hits, n)


@jit
def _misses(ids: Any, owners: Any, intervals: Any, residents: Any, phases: Any, stays: Any) -> int:
    """Count misses. Write to ``stays``, unless it is empty, how long each touch's block stays."""
    return _count_misses(ids, owners, intervals, residents, phases, stays)


@jit_bare
def _count_misses(
    ids: Any, owners: Any, intervals: Any, residents: Any, phases: Any, stays: Any
) -> int:
    blocks, held, misses, end = residents.blocks, residents.held, 0, len(ids)
    for now in range(end):
        id = np.uint64(ids[now])
        later = min(now + AHEAD, end - 1)
        fetch_touch(residents, ids[later], owners[later])
        ring_alarms(residents, phases.rows, now)
        if blocks[id, FRAME] == ABSENT:
            frame = misses
            if misses >= len(held):
                frame = evict(residents, phases, now)
                _end_stay(blocks, held[frame], now, stays)
            blocks[id, FRAME], held[frame] = frame, ids[now]
            misses += 1
        else:
            _end_stay(blocks, id, now, stays)
        again = now + intervals[now] if intervals[now] != NEVER else end
        touch(residents, phases, id, owners[now], now, again)
    for frame in range(min(misses, len(held))):
        _end_stay(blocks, held[frame], end, stays)
    return misses


@jit_bare
def _end_stay(blocks: Any, block: int, now: int, stays: Any) -> None:
    if len(stays):
        stays[blocks[block, TOUCHED]] = now - blocks[block, TOUCHED]


@jit
def _depths(ids: Any, owners: Any, stack: Any, blocks: Any, depth: Any, phases: Any) -> int:
    """Count the depth of every hit, from 1. Return how deep the stack became."""
    return _count_depths(ids, owners, stack, blocks, depth, phases)


@jit_bare
def _count_depths(ids: Any, owners: Any, stack: Any, blocks: Any, depth: Any, phases: Any) -> int:
    """Walk over the stack once for each touch.

    The touched block goes to the top. The block it displaces moves down, and at every place the one
    with the lower priority moves on: the victim of a cache of that size. The walk ends in the place
    that the touched block left.
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
            enter_phase(blocks, carried, phases, now)
            while place < size and stack[place] != id:
                other = stack[place]
                enter_phase(blocks, other, phases, now)
                if is_lower(blocks, other, carried, phases.rows, now):
                    stack[place], carried = carried, other
                place += 1
            stack[place] = carried
        if place == size:
            size += 1
        else:
            depth[place + 1] += 1
        blocks[id, TOUCHED], blocks[id, OWNER], blocks[id, PHASE] = now, owners[now], -1
    return size
