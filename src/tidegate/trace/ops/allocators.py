"""Allocators: where the tensors of ops are in memory.

    tensors   each tensor of a megabyte or more is an object; smaller ones share segments of 2 MiB
    caching   a model of PyTorch's caching allocator: tensors are in segments, which are the objects

The caching model follows c10/cuda/CUDACachingAllocator.cpp with default settings: sizes are rounded
to 512 bytes; up to 1 MiB come from segments of 2 MiB, others from segments of 20 MiB or, from 10
MiB on, of their own size rounded to 2 MiB; the smallest free block that fits is taken and split;
free neighbours are merged; segments are never given back. It was never held against a card.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tidegate.errors import UnknownName
from tidegate.trace.ops.ops import Ops

_MIB = 1 << 20
SMALLEST = 512  # bytes: sizes are multiples of it
SMALL = _MIB  # the largest size that small segments serve
SMALL_SEGMENT = 2 * _MIB
LARGE_SEGMENT = 20 * _MIB
OWN_SEGMENT = 10 * _MIB  # from this size on a tensor without a free block gets its own segment
ROUND_SEGMENT = 2 * _MIB  # to a multiple of this
_EVERYTHING = 1 << 62


@dataclass(frozen=True)
class Places:
    """Objects by name with their bytes, and for each life of a tensor its object and offset.

    ``dead``: the free bytes around a life, from and to, when it has just ended; a page may hold
    several tensors and is free only when all of them are. ``own``: the object is the life's own.
    """

    objects: dict[str, int]
    object: NDArray[np.int64]
    offset: NDArray[np.int64]
    dead: NDArray[np.int64]
    own: NDArray[np.bool_]


def place_tensors(ops: Ops) -> Places:
    """Give each tensor of a megabyte or more an object of its own; the others share segments."""
    lives = ops.instances
    size = ops.tensors["bytes"].to_numpy()
    large = size > SMALL
    unique = _unique_names(ops.tensors["name"].to_list())
    objects = {unique[t]: int(size[t]) for t in np.flatnonzero(large)}
    number = np.cumsum(large) - 1  # of the object of a large tensor
    own = large[lives.tensor]
    object_, offset = number[lives.tensor], np.zeros(len(lives.tensor), np.int64)
    dead = np.stack([np.zeros(len(own), np.int64), np.full(len(own), _EVERYTHING)], axis=1)
    shared = _Segments()
    at = _replay(ops, shared, ~own)
    object_[~own] = len(objects) + at[:, 0]
    offset[~own], dead[~own] = at[:, 1], at[:, 2:]
    objects |= shared.objects("small tensors")
    return Places(objects, object_, offset, dead, own)


def place_in_segments(ops: Ops) -> Places:
    """Put the tensors into segments, as PyTorch's caching allocator would."""
    segments = _Segments()
    everything = np.ones(len(ops.instances.tensor), bool)
    at = _replay(ops, segments, everything)
    return Places(segments.objects("segment"), at[:, 0], at[:, 1], at[:, 2:], ~everything)


ALLOCATORS = {"tensors": place_tensors, "caching": place_in_segments}


def place(ops: Ops, allocator: str) -> Places:
    """Return where the tensors of ``ops`` are, by the name of an allocator."""
    if allocator not in ALLOCATORS:
        raise UnknownName("allocator", allocator, ALLOCATORS)
    return ALLOCATORS[allocator](ops)


class _Block:
    __slots__ = ("at", "following", "free", "preceding", "segment", "size")

    def __init__(self, segment: int, at: int, size: int):
        self.segment, self.at, self.size, self.free = segment, at, size, False
        self.preceding: _Block | None = None
        self.following: _Block | None = None


class _Segments:
    """The caching allocator: blocks in segments, and free blocks by size, in two pools."""

    def __init__(self) -> None:
        self.sizes: list[int] = []
        self.small: list[bool] = []
        self._free: dict[bool, list[tuple[int, int, int]]] = {True: [], False: []}
        self._blocks: dict[tuple[int, int], _Block] = {}

    def objects(self, name: str) -> dict[str, int]:
        return {f"{name} {n}": size for n, size in enumerate(self.sizes)}

    def allocate(self, asked: int) -> _Block:
        """Return a block of at least ``asked`` bytes."""
        size = max(SMALLEST, -(-asked // SMALLEST) * SMALLEST)
        small = size <= SMALL
        free = self._free[small]
        at = bisect_left(free, (size, -1, -1))
        if at < len(free):
            block = self._blocks[free.pop(at)[1:]]
        else:
            block = self._new_segment(size, small)
        self._split(block, size, small)
        block.free = False
        return block

    def release(self, block: _Block) -> _Block:
        """Free a block, merge it with its free neighbours and return the merged one."""
        small = self.small[block.segment]
        block.free = True
        after, before = block.following, block.preceding
        if after is not None and after.free:
            self._forget(after, small)
            self._join(block, after)
        if before is not None and before.free:
            self._forget(before, small)
            self._join(before, block)
            block = before
        insort(self._free[small], (block.size, block.segment, block.at))
        return block

    def _new_segment(self, size: int, small: bool) -> _Block:
        rounded = -(-size // ROUND_SEGMENT) * ROUND_SEGMENT
        whole = SMALL_SEGMENT if small else LARGE_SEGMENT if size < OWN_SEGMENT else rounded
        self.sizes.append(whole)
        self.small.append(small)
        block = _Block(len(self.sizes) - 1, 0, whole)
        self._blocks[block.segment, 0] = block
        return block

    def _split(self, block: _Block, size: int, small: bool) -> None:
        rest = block.size - size
        if rest < SMALLEST or (not small and rest <= SMALL):
            return
        other = _Block(block.segment, block.at + size, rest)
        other.free, other.preceding, other.following = True, block, block.following
        if block.following is not None:
            block.following.preceding = other
        block.following, block.size = other, size
        self._blocks[other.segment, other.at] = other
        insort(self._free[small], (rest, other.segment, other.at))

    def _forget(self, block: _Block, small: bool) -> None:
        free = self._free[small]
        free.pop(bisect_left(free, (block.size, block.segment, block.at)))

    def _join(self, block: _Block, after: _Block) -> None:
        del self._blocks[after.segment, after.at]
        block.size += after.size
        block.following = after.following
        if block.following is not None:
            block.following.preceding = block


def _replay(ops: Ops, segments: _Segments, which: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Allocate and free the chosen lives in order; return segment, offset and dead bytes."""
    lives = ops.instances
    size = ops.tensors["bytes"].to_numpy()
    begin = np.full(len(ops.events), -1, np.int64)
    end = np.full(len(ops.events), -1, np.int64)
    chosen = np.flatnonzero(which)
    begin[lives.birth[chosen]] = chosen
    mortal = chosen[lives.death[chosen] >= 0]
    end[lives.death[mortal]] = mortal
    held: dict[int, _Block] = {}
    places = np.zeros((len(lives.tensor), 4), np.int64)
    tensor = lives.tensor.tolist()
    for born, dead in zip(begin.tolist(), end.tolist(), strict=True):
        if born >= 0:
            block = segments.allocate(int(size[tensor[born]]))
            held[born] = block
            places[born, :2] = block.segment, block.at
        elif dead >= 0:
            free = segments.release(held.pop(dead))
            places[dead, 2:] = free.at, free.at + free.size
    return places[which]


def _unique_names(names: list[str]) -> list[str]:
    """Return the names, numbered where they are not unique.

    >>> _unique_names(["relu", "relu", "relu #2"])
    ['relu', 'relu #2', 'relu #2 #2']
    """
    times: dict[str, int] = {}
    taken: set[str] = set()
    unique = []
    for name in names:
        given = name
        while given in taken:
            times[name] = times.get(name, 1) + 1
            given = f"{name} #{times[name]}"
        taken.add(given)
        unique.append(given)
    return unique
