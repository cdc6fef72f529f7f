"""B+T: keys, and ranges of keys, looked up in a B+ tree; nodes near the root are hot."""

from __future__ import annotations

from typing import Any

import numpy as np

from tidegate import units
from tidegate.compiled.jit import jit
from tidegate.options import Option
from tidegate.workloads.program import Derived, Launches, Space, largest_fit, workload
from tidegate.workloads.random_pages import generator
from tidegate.workloads.rodinia_tree import find_path, grown_tree
from tidegate.workloads.suites import published_footprint
from tidegate.workloads.thread_blocks import FLOAT, blocks, launch_of, use, use_sector

LONG = 8  # bytes
_SHARES = (0.006, 0.01)  # 6,000 ranges and 10,000 keys, of 1,000,000
_WIDE, _NARROW = (
    ("currKnode_j", "offset_j", "lastKnode", "offset_2"),
    ("start", "end", "recstart", "reclength"),
)
(_NODES_J, _CURR_J, _OFFSET_J, _LAST, _OFFSET_2, _START, _END, _RECSTART, _LENGTH) = range(9)
(_RECORDS, _NODES_K, _CURR_K, _OFFSET_K, _KEYS, _ANS) = range(9, 15)


@workload("cppe-B+T")
class BPlusTree(Derived):
    """Look-ups in a B+ tree: b+tree of Rodinia, commands "j 6000 3000" and "k 10000", executed.

        struct knode { int location; int indices[257]; int keys[257]; bool is_leaf; int num_keys; }

        a thread block per query (bid), a thread per key of a node (thid), from the root to a leaf:
            if knodes[curr[bid]].keys[thid] <= keys[bid] < knodes[curr[bid]].keys[thid + 1]:
                offset[bid] = knodes[curr[bid]].indices[thid];   thid 0:  curr[bid] = offset[bid]
        findK        at the leaf:  ans[bid] = records[knodes[curr[bid]].indices[thid]]
        findRangeK   walks for the first and the last key at once;  recstart[bid],
                     reclength[bid] from both leaves' indices

    Each command copies the tree for itself, so there are two of it, and records only for findK. The
    tree is the one that Rodinia's insertions leave when keys come in rising order: all nodes half
    full but the last of each level, level by level from the root. All keys of a node count as they
    are, every other place 32 bytes. Grid order: from the first query to the last. Access sites: the
    arrays as they are allocated. Table II: b+tree, 34.7 MB, Type VI; Rodinia's 1,000,000 keys make
    35.4 MiB, of which these queries touch 34.7.
    """

    bytes = published_footprint("cppe-B+T", "size of both trees, records and queries")
    span = Option(
        0.003,
        "keys of a range, as a share of all (a choice: 3,000 of 1,000,000)",
        parse=units.fraction,
        least=0,
    )
    seed = Option(1, "seed of the queries (a choice)", least=0)

    @property
    def keys(self) -> int:
        return largest_fit(self.bytes, _sizes)

    def sizes(self) -> dict[str, int]:
        return _sizes(self.keys)

    def launches(self, space: Space) -> Launches:
        keys, tree = self.keys, grown_tree(self.keys)
        ranges, queries = _queries(keys)
        first = generator(self.seed, 0).integers(max(1, keys - int(keys * self.span)), size=ranges)
        last = np.minimum(first + int(keys * self.span), keys - 1)
        yield launch_of(space, "findRangeK", _find_range, ranges, (tree, first, last))
        wanted = generator(self.seed, 1).integers(keys, size=queries)
        yield launch_of(space, "findK", _find, queries, (tree, wanted))


def _queries(keys: int) -> tuple[int, int]:
    ranges, queries = (max(1, round(share * keys)) for share in _SHARES)
    return ranges, queries


def _sizes(keys: int) -> dict[str, int]:
    tree = grown_tree(keys)
    nodes, (ranges, queries) = tree.node * int(tree.levels.sum()), _queries(keys)
    of_ranges = dict.fromkeys(_WIDE, LONG * ranges) | dict.fromkeys(_NARROW, FLOAT * ranges)
    of_keys = dict.fromkeys(("currKnode_k", "offset_k"), LONG * queries)
    of_keys |= dict.fromkeys(("keys", "ans"), FLOAT * queries)
    records = {"records": FLOAT * keys, "knodes_k": nodes}
    return {"knodes_j": nodes} | of_ranges | records | of_keys


@jit
def _visit(log: Any, array: int, tree: Any, level: int, path: Any, slot: Any) -> None:
    """Use the node of a level on the way to a key: all its keys, and the index of the way on."""
    begin = tree.node * (tree.levels[:level].sum() + path[level])
    use(log, array, begin + FLOAT * (tree.order + 2), begin + FLOAT * (2 * tree.order + 2), False)
    use_sector(log, array, begin + FLOAT * (1 + slot[level]), False)


@jit
def _find(log: Any, count: int, shape: Any) -> None:
    tree, wanted = shape
    height = len(tree.levels)
    path, slot = np.empty(height, np.int64), np.empty(height, np.int64)
    for block in blocks(log, count):
        find_path(path, slot, wanted[block], tree)
        for level in range(height):
            use_sector(log, _CURR_K, LONG * block, level > 0)
            use_sector(log, _KEYS, FLOAT * block, False)
            _visit(log, _NODES_K, tree, level, path, slot)
            if level < height - 1:
                use_sector(log, _OFFSET_K, LONG * block, True)
        use_sector(log, _RECORDS, FLOAT * wanted[block], False)
        use_sector(log, _ANS, FLOAT * block, True)


@jit
def _find_range(log: Any, count: int, shape: Any) -> None:
    tree, first, last = shape
    height = len(tree.levels)
    paths, slots = np.empty((2, height), np.int64), np.empty((2, height), np.int64)
    ends = (_CURR_J, _START, _OFFSET_J), (_LAST, _END, _OFFSET_2)
    for block in blocks(log, count):
        find_path(paths[0], slots[0], first[block], tree)
        find_path(paths[1], slots[1], last[block], tree)
        for level in range(height):
            for end in range(2):
                current, key, offset = ends[end]
                use_sector(log, current, LONG * block, level > 0)
                use_sector(log, key, FLOAT * block, False)
                _visit(log, _NODES_J, tree, level, paths[end], slots[end])
                if level < height - 1:
                    use_sector(log, offset, LONG * block, True)
        use_sector(log, _RECSTART, FLOAT * block, True)
        use_sector(log, _LENGTH, FLOAT * block, True)
