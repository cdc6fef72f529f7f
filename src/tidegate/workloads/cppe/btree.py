"""B+T: keys, and ranges of keys, looked up in a B+ tree; the nodes near the root are hot, the
leaves are not.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from tidegate import units
from tidegate.compiled.jit import jit
from tidegate.options import Option
from tidegate.trace.trace import Launch, Provenance
from tidegate.workloads.cppe.kernel import FLOAT, closed, fitted, going, jump, stream, use
from tidegate.workloads.draw import generator
from tidegate.workloads.program import Space, Workload, workload
from tidegate.workloads.suites import published_bytes

ORDER = 256  # DEFAULT_ORDER: children of a node at most
# bytes of a knode: location, indices, keys, is_leaf, num_keys
NODE = 4 + 2 * 4 * (ORDER + 1) + 4 + 4
LONG = 8  # bytes
# keys of a leaf, children of an inner node: half full, as rising keys leave them
LEAF, INNER = ORDER // 2, ORDER // 2
_SHARES = (0.006, 0.01)  # 6,000 ranges and 10,000 keys, of 1,000,000
ARRAYS = (
    "knodes_j",
    "currKnode_j",
    "offset_j",
    "lastKnode",
    "offset_2",
    "start",
    "end",
    "recstart",
    "reclength",
    "records",
    "knodes_k",
    "currKnode_k",
    "offset_k",
    "keys",
    "ans",
)
(_NODES_J, _CURR_J, _OFFSET_J, _LAST, _OFFSET_2, _START, _END, _RECSTART, _LENGTH) = range(9)
(_RECORDS, _NODES_K, _CURR_K, _OFFSET_K, _KEYS, _ANS) = range(9, 15)


@workload("cppe-B+T")
class BPlusTree(Workload):
    """Look-ups in a B+ tree: b+tree of Rodinia, commands "j 6000 3000" and "k 10000"; every look-up
    really walks.

        struct knode { int location; int indices[257]; int keys[257]; bool is_leaf; int num_keys; }

        a thread block per query (bid), a thread per key of a node (thid), from the root down to a leaf:
            if knodes[curr[bid]].keys[thid] <= keys[bid] < knodes[curr[bid]].keys[thid + 1]:
                offset[bid] = knodes[curr[bid]].indices[thid];   thid 0:  curr[bid] = offset[bid]
        findK        at the leaf:  ans[bid] = records[knodes[curr[bid]].indices[thid]]
        findRangeK   walks for the first and the last key at once;  recstart[bid], reclength[bid] from both leaves' indices

    Each command copies the tree for itself, so there are two of it, and records only for findK. The
    tree is the one that Rodinia's insertions leave when keys come in rising order: all nodes half
    full but the last of each level, level by level from the root. All keys of a node count as they
    are, every other place 32 bytes. Grid order: from the first query to the last. References: the
    arrays as they are allocated. Table II: b+tree, 34.7 MB, Type VI; Rodinia's 1,000,000 keys make
    35.4 MiB, of which these queries touch 34.7.
    """

    provenance = Provenance.DERIVED
    bytes = Option(
        published_bytes("cppe", "cppe-B+T"),
        "size of both trees, records and queries",
        parse=units.size,
        least=1,
    )
    span = Option(
        0.003,
        "keys of a range, as a share of all (a choice: 3,000 of 1,000,000)",
        parse=units.fraction,
        least=0,
    )
    seed = Option(1, "of the queries (a choice)", least=0)

    @property
    def keys(self) -> int:
        return fitted(self.bytes, _sizes)

    def sizes(self) -> dict[str, int]:
        return _sizes(self.keys)

    def launches(self, space: Space) -> Iterator[Launch]:
        keys = self.keys
        levels = np.array(_levels(keys))
        ranges, queries = _queries(keys)
        first = generator(self.seed, 0).integers(max(1, keys - int(keys * self.span)), size=ranges)
        last = np.minimum(first + int(keys * self.span), keys - 1)
        yield Launch("findRangeK", stream(space, _find_range, ranges, (levels, first, last)))
        asked = generator(self.seed, 1).integers(keys, size=queries)
        yield Launch("findK", stream(space, _find, queries, (levels, asked)))


def _levels(keys: int) -> list[int]:
    """Nodes of each level, the root first."""
    levels = [_nodes(keys, LEAF, ORDER - 1)]
    while levels[0] > 1:
        levels.insert(0, _nodes(levels[0], INNER, ORDER))
    return levels


def _nodes(items: int, each: int, most: int) -> int:
    """When a node has more than ``most`` items, it keeps ``each`` and the rest go to a new one."""
    return 1 if items <= most else 1 - (most - items) // each


def _queries(keys: int) -> tuple[int, int]:
    ranges, queries = (max(1, round(share * keys)) for share in _SHARES)
    return ranges, queries


def _sizes(keys: int) -> dict[str, int]:
    tree = NODE * sum(_levels(keys))
    ranges, queries = _queries(keys)
    wide, narrow = 4 * [LONG * ranges], 4 * [FLOAT * ranges]
    own = (FLOAT * keys, tree, LONG * queries, LONG * queries, FLOAT * queries, FLOAT * queries)
    return dict(zip(ARRAYS, (tree, *wide, *narrow, *own), strict=True))


@jit
def _visit(log: Any, array: int, levels: Any, level: int, key: int) -> None:
    """The node of a level on the way to a key: all its keys, and the index of the way on."""
    # a leaf's keys begin at its second place: before them stands INT_MIN
    item, each, first = key, LEAF, 1
    node = slot = 0
    for at in range(len(levels) - 1, level - 1, -1):
        node = min(item // each, levels[at] - 1)
        slot = item - node * each + first
        item, each, first = node, INNER, 0
    begin = NODE * (levels[:level].sum() + node)
    use(log, array, begin + FLOAT * (ORDER + 2), begin + FLOAT * (2 * ORDER + 2), False)
    jump(log, array, begin + FLOAT * (1 + slot), False)


@jit
def _find(log: Any, block: int, count: int, shape: Any) -> Any:
    levels, asked = shape
    while block < count and going(log):
        for level in range(len(levels)):
            jump(log, _CURR_K, LONG * block, level > 0)
            jump(log, _KEYS, FLOAT * block, False)
            _visit(log, _NODES_K, levels, level, asked[block])
            if level < len(levels) - 1:
                jump(log, _OFFSET_K, LONG * block, True)
        jump(log, _RECORDS, FLOAT * asked[block], False)
        jump(log, _ANS, FLOAT * block, True)
        block += closed(log)
    return block


@jit
def _find_range(log: Any, block: int, count: int, shape: Any) -> Any:
    levels, first, last = shape
    while block < count and going(log):
        for level in range(len(levels)):
            jump(log, _CURR_J, LONG * block, level > 0)
            jump(log, _START, FLOAT * block, False)
            _visit(log, _NODES_J, levels, level, first[block])
            if level < len(levels) - 1:
                jump(log, _OFFSET_J, LONG * block, True)
            jump(log, _LAST, LONG * block, level > 0)
            jump(log, _END, FLOAT * block, False)
            _visit(log, _NODES_J, levels, level, last[block])
            if level < len(levels) - 1:
                jump(log, _OFFSET_2, LONG * block, True)
        jump(log, _RECSTART, FLOAT * block, True)
        jump(log, _LENGTH, FLOAT * block, True)
        block += closed(log)
    return block
