"""The B+ tree that Rodinia's b+tree builds: its shape, and the way from its root to a key."""

from __future__ import annotations

from math import ceil
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tidegate.compiled.jit import jit


class RodiniaTree(NamedTuple):
    """A B+ tree over the keys 0 to ``keys`` - 1; nodes are alike but the last of each level."""

    keys: int
    leaf: int  # keys of a leaf
    inner: int  # children of an inner node
    order: int
    node: int  # bytes: sizeof(knode)
    levels: NDArray[np.int64]  # nodes of each level, the root first


def grown_tree(keys: int, order: int = 256, fill: float = 0.5) -> RodiniaTree:
    """Return the tree that Rodinia's insertions leave when keys come in rising order.

    Of a node that is split, the left part keeps ``fill`` of the most items and stays as it is.
    """
    leaf, inner = ceil((order - 1) * fill), ceil(order * fill)
    levels = [_nodes(keys, leaf, order - 1)]
    while levels[0] > 1:
        levels.insert(0, _nodes(levels[0], inner, order))
    return RodiniaTree(keys, leaf, inner, order, 4 + 2 * 4 * (order + 1) + 4 + 4, np.array(levels))


def _nodes(items: int, each: int, most: int) -> int:
    """Return the nodes for so many items; one with more than ``most`` keeps ``each`` of them."""
    return 1 if items <= most else 1 - (most - items) // each


@jit
def find_path(path: Any, slot: Any, key: int, tree: Any) -> None:
    """Write the nodes on the way to a key, by level, and the slot of the way on in each."""
    # a leaf's keys begin at its second place: before them stands INT_MIN
    item, each, first = key, tree.leaf, 1
    for level in range(len(tree.levels) - 1, -1, -1):
        path[level] = min(item // each, tree.levels[level] - 1)
        slot[level] = item - path[level] * each + first
        item, each, first = path[level], tree.inner, 0
