"""The tree of Rodinia's b+tree, against its insertions done one by one."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate.workloads.rodinia_tree import find_path, grown_tree


@dataclass
class Node:
    leaf: bool
    keys: list[int] = field(default_factory=list)
    below: list[Any] = field(default_factory=list)  # children, or a leaf's records


def cut(length: int) -> int:
    return length // 2 if length % 2 == 0 else length // 2 + 1


def inserted(root: Node, key: int, order: int) -> Node:
    """Insert as b+tree.c does; the record of a key is its value, here the key itself."""
    way = [root]
    while not way[-1].leaf:
        node = way[-1]
        way.append(node.below[sum(key >= k for k in node.keys)])
    leaf = way.pop()
    at = sum(k < key for k in leaf.keys)
    leaf.keys.insert(at, key)
    leaf.below.insert(at, key)
    if len(leaf.keys) < order:
        return root
    split = cut(order - 1)
    right = Node(True, leaf.keys[split:], leaf.below[split:])
    leaf.keys, leaf.below = leaf.keys[:split], leaf.below[:split]
    left, up = leaf, right.keys[0]
    while way:
        parent = way.pop()
        at = next(i for i, child in enumerate(parent.below) if child is left)
        parent.keys.insert(at, up)
        parent.below.insert(at + 1, right)
        if len(parent.keys) < order:
            return root
        split = cut(order)
        up = parent.keys[split - 1]
        right = Node(False, parent.keys[split:], parent.below[split:])
        parent.keys, parent.below = parent.keys[: split - 1], parent.below[:split]
        left = parent
    return Node(False, [up], [left, right])


def by_level(root: Node) -> list[list[Node]]:
    levels = [[root]]
    while not levels[-1][0].leaf:
        levels.append([child for node in levels[-1] for child in node.below])
    return levels


def check(keys: int, order: int) -> None:
    root = Node(True)
    for key in range(keys):
        root = inserted(root, key, order)
    levels, tree = by_level(root), grown_tree(keys, order)
    assert tree.levels.tolist() == [len(level) for level in levels]
    path, slot = np.empty(len(levels), np.int64), np.empty(len(levels), np.int64)
    for key in range(keys):
        find_path(path, slot, key, tree)
        for level, nodes in enumerate(levels):
            node = nodes[path[level]]
            if node.leaf:  # its keys begin at the second place
                assert node.keys[slot[level] - 1] == key
            else:
                assert node.below[slot[level]] is levels[level + 1][path[level + 1]]


@pytest.mark.parametrize("keys", [1, 3, 4, 5, 9, 100, 257])
def test_the_tree_is_the_one_that_rodinia_builds(keys: int) -> None:
    check(keys, order=4)


@settings(max_examples=20, deadline=None)
@given(keys=st.integers(1, 300), order=st.integers(3, 12))
def test_any_tree(keys: int, order: int) -> None:
    check(keys, order)


@settings(max_examples=100, deadline=None)
@given(keys=st.integers(1, 10**9), order=st.integers(3, 300), fill=st.floats(0.5, 1))
def test_no_node_has_too_much_or_too_little(keys: int, order: int, fill: float) -> None:
    tree = grown_tree(keys, order, fill)
    assert tree.levels[0] == 1
    items = [*tree.levels[1:], keys]
    for level, (nodes, held) in enumerate(zip(tree.levels, items, strict=True)):
        each, most = (tree.leaf, order - 1) if level == len(items) - 1 else (tree.inner, order)
        last = held - (nodes - 1) * each
        assert each <= most
        assert 1 <= last <= most
        assert nodes == 1 or last > most - each
