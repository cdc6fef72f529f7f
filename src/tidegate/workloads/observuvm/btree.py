"""BTR: keys looked up in a B+ tree; the nodes near the root are hot, the leaves and records are
not.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tidegate import units
from tidegate.compiled.jit import jit
from tidegate.options import Option
from tidegate.trace.build import SEGMENT_TOUCHES
from tidegate.trace.trace import Launch, Provenance, Segment
from tidegate.workloads.draw import Zipf, generator
from tidegate.workloads.program import Space, Workload, workload
from tidegate.workloads.suites import published_bytes

RECORD, KEY, ANSWER, PLACE = 4, 4, 4, 8  # bytes: int value, int, record, long
SECTOR = 32  # bytes: the least that GPU memory moves, so what an access to a place of its own costs

# The arrays, in the order in which kernel_gpu_cuda_wrapper.cu allocates them; an array's place is
# its reference.
ARRAYS = ("records", "knodes", "currKnode", "offset", "keys", "ans")
_RECORDS, _KNODES, _CURR, _OFFSET, _KEYS, _ANS = range(6)


@workload("BTR")
class BTree(Workload):
    """Look-ups in a B+ tree: findK of Rodinia's b+tree, on a tree made here; every look-up really
    walks.

        struct knode { int location; int indices[order + 1]; int keys[order + 1]; bool is_leaf; int num_keys; }

        a thread block per query (bid), a thread per key of a node (thid), from the root down to a leaf:
            if knodes[curr[bid]].keys[thid] <= keys[bid] < knodes[curr[bid]].keys[thid + 1]:
                offset[bid] = knodes[offset[bid]].indices[thid]
            if thid == 0:  curr[bid] = offset[bid]
        at the leaf:
            if knodes[curr[bid]].keys[thid] == keys[bid]:  ans[bid].value = records[knodes[curr[bid]].indices[thid]].value

    The tree is the one that Rodinia's insertions leave when keys 0, 1, 2, … come in rising order:
    of a node that is split the left half stays as it is, so every node is half full but the last of
    its level. ``transform_to_cuda`` puts nodes level by level, the root first, and records in the
    order of their keys; there is a record for every key. A trace block is a thread block: its
    pages, each once, as first needed. All keys of a node count as they are, all else that is looked
    up counts 32 bytes. The touches are *derived*: the tree and the queries are made here, from a
    seed.

    The paper gives no tree, and cites for it not Rodinia [10] but another work [7] whose title is
    not in our copy.
    """

    provenance = Provenance.DERIVED
    bytes = Option(
        published_bytes("observuvm", "BTR"),
        "size of the tree, its records and one batch of queries",
        parse=units.size,
        least=1,
    )
    queries = Option(
        0.01,
        "look-ups, as a share of the keys (a choice: 1%, as Rodinia's 10,000 of 1,000,000)",
        parse=units.fraction,
        least=1e-9,
    )
    batch = Option(
        65_535,
        "look-ups in a launch (a choice: the most blocks that Rodinia's launch allows for)",
        least=1,
    )
    skew = Option(
        0.0,
        "exponent of Zipf's law over the leaves looked up (a choice: 0 is uniform, as in Rodinia)",
        least=0,
    )
    order = Option(
        256,
        "children of a node at most: DEFAULT_ORDER (a choice; 16 makes nodes of about 128 bytes)",
        least=3,
        most=1024,
    )
    fill = Option(
        0.5,
        "how full nodes are (a choice: half, as rising keys leave them; random ones leave 69%)",
        parse=units.fraction,
        least=0.5,
        most=1,
    )
    placement = Option(
        "levels",
        "where nodes are (a choice: by level, as Rodinia copies them; or shuffled, as in a pool after random keys)",
        choices=("levels", "shuffled"),
    )
    seed = Option(1, "of the queries and of shuffled nodes", least=0)

    def tree(self) -> Tree:
        """The largest tree that fits, of one key at least."""
        low, high = 1, max(2, self.bytes // RECORD)  # one key fits or must; the other is too many
        while high - low > 1:
            middle = (low + high) // 2
            if sum(self._sizes(self._grown(middle)).values()) <= self.bytes:
                low = middle
            else:
                high = middle
        return self._grown(low)

    def sizes(self) -> dict[str, int]:
        return self._sizes(self.tree())

    def _sizes(self, tree: Tree) -> dict[str, int]:
        together = min(self.batch, self._count(tree))
        sizes = (
            RECORD * tree.keys,
            tree.node * sum(tree.levels),
            PLACE * together,
            PLACE * together,
            KEY * together,
        )
        return dict(zip(ARRAYS, (*sizes, ANSWER * together), strict=True))

    def _count(self, tree: Tree) -> int:
        return max(1, int(tree.keys * self.queries))

    def _grown(self, keys: int) -> Tree:
        """The tree of so many keys."""
        leaf, inner = (int(np.ceil(most * self.fill)) for most in (self.order - 1, self.order))
        levels = [_nodes(keys, leaf, self.order - 1)]
        while levels[0] > 1:
            levels.insert(0, _nodes(levels[0], inner, self.order))
        return Tree(keys, leaf, inner, self.order, tuple(levels))

    def launches(self, space: Space) -> Iterator[Launch]:
        tree = self.tree()
        count, law = (
            self._count(tree),
            Zipf(tree.levels[-1], self.skew, self.seed) if self.skew else None,
        )
        places = np.empty(0, np.int32)  # nodes are where they are
        if self.placement == "shuffled":
            places = generator(self.seed, 0).permutation(sum(tree.levels)).astype(np.int32)
        for batch, first in enumerate(range(0, count, self.batch)):
            asked = _asked(
                tree, law, generator(self.seed, 1 + batch), min(self.batch, count - first)
            )
            yield Launch("findK", _walked(space, tree, places, asked))


class Tree(NamedTuple):
    """A B+ tree over the keys 0 to ``keys`` - 1, whose nodes are all alike but the last of each
    level.
    """

    keys: int
    leaf: int  # keys of a leaf
    inner: int  # children of an inner node
    order: int
    levels: tuple[int, ...]  # nodes of each level, the root first

    @property
    def node(self) -> int:
        """sizeof(knode)"""
        return 4 + 2 * 4 * (self.order + 1) + 4 + 4


def _nodes(items: int, each: int, most: int) -> int:
    """Nodes for so many items: when one has more than ``most``, it keeps ``each`` and the rest go
    to a new one.
    """
    return 1 if items <= most else 1 - (most - items) // each


def _asked(
    tree: Tree, law: Zipf | None, random: np.random.Generator, count: int
) -> NDArray[np.int64]:
    """The keys looked up: any, all alike, or any of a leaf that is drawn by the law."""
    if law is None:
        return random.integers(tree.keys, size=count)
    first = law.draw(random, count).astype(np.int64) * tree.leaf
    last = np.where(first == (tree.levels[-1] - 1) * tree.leaf, tree.keys, first + tree.leaf)
    return random.integers(first, last)


def _walked(
    space: Space, tree: Tree, places: NDArray[np.int32], asked: NDArray[np.int64]
) -> Iterator[Segment]:
    """A block for each key asked for."""
    arrays, page = [space[a] for a in ARRAYS], space.geometry.page
    where = Where(
        page, np.array([a.first_page for a in arrays]), np.array([a.bytes for a in arrays])
    )
    most = 5 + len(tree.levels) * (tree.order * KEY // page + 3)  # touches of a look-up
    levels = np.array(tree.levels)
    together = max(1, SEGMENT_TOUCHES // most)
    for first in range(0, len(asked), together):
        some = asked[first : first + together]
        yield Segment(
            *_walk(
                where,
                most,
                first,
                some,
                levels,
                tree.leaf,
                tree.inner,
                tree.order,
                tree.node,
                places,
            )
        )


class Where(NamedTuple):
    """Where the arrays lie."""

    page: int  # bytes
    first_page: NDArray[np.int64]  # of each array
    size: NDArray[np.int64]


@jit
def _walk(
    where: Any,
    most: int,
    bid: int,
    asked: Any,
    levels: Any,
    leaf: int,
    inner: int,
    order: int,
    node: int,
    places: Any,
) -> Any:
    """findK for the keys asked for, whose first is block ``bid``'s: a segment's columns."""
    room = len(asked) * most
    starts, page, write = (
        np.zeros(len(asked) + 1, np.int64),
        np.empty(room, np.int32),
        np.empty(room, np.uint8),
    )
    used, reference = np.empty(room, np.int32), np.empty(room, np.int16)
    path, slot, height = (
        np.empty(len(levels), np.int64),
        np.empty(len(levels), np.int64),
        len(levels) - 1,
    )
    end = 0
    for i in range(len(asked)):
        own = end
        _find(path, slot, asked[i], levels, leaf, inner)
        columns = page, write, used, reference
        end = _use(where, columns, own, end, _CURR, PLACE * (bid + i), PLACE, height > 0)
        end = _use(where, columns, own, end, _KEYS, KEY * (bid + i), KEY, False)
        before = 0  # nodes of the levels above
        for level in range(height + 1):
            place = before + path[level]
            at = node * (np.int64(places[place]) if len(places) else place)
            before += levels[level]
            end = _use(where, columns, own, end, _KNODES, at + 4 * (order + 2), KEY * order, False)
            if level < height:
                end = _use(where, columns, own, end, _OFFSET, PLACE * (bid + i), PLACE, True)
            end = _use(where, columns, own, end, _KNODES, at + 4 * (1 + slot[level]), 4, False)
        end = _use(where, columns, own, end, _RECORDS, RECORD * asked[i], RECORD, False)
        end = _use(where, columns, own, end, _ANS, ANSWER * (bid + i), ANSWER, True)
        starts[i + 1] = end
    return starts, page[:end], write[:end], used[:end], reference[:end]


@jit
def _find(path: Any, slot: Any, key: int, levels: Any, leaf: int, inner: int) -> None:
    """The nodes on the way to a key, numbered within their levels, and the thread that finds the
    way on in each.
    """
    # a leaf's keys begin at its second place: before them stands INT_MIN
    item, each, first = key, leaf, 1
    for level in range(len(levels) - 1, -1, -1):
        path[level] = min(item // each, levels[level] - 1)
        slot[level] = item - path[level] * each + first
        item, each, first = path[level], inner, 0


@jit
def _use(
    where: Any, columns: Any, own: int, end: int, array: int, at: int, size: int, write: bool
) -> Any:
    """Bytes ``at`` to ``at + size`` of an array are used by the block whose touches began at
    ``own``; the new end.
    """
    page, writes, used, reference = columns
    low, high = at, at + size
    while low < high:
        number = low // where.page
        stop = min(high, (number + 1) * where.page)
        i = own
        while i < end and page[i] != where.first_page[array] + number:
            i += 1
        if i == end:
            page[i], writes[i], used[i], reference[i] = (
                where.first_page[array] + number,
                0,
                0,
                array,
            )
            end += 1
        within = min(where.page, where.size[array] - number * where.page)
        used[i] = min(within, used[i] + max(SECTOR, stop - low))
        writes[i] |= write
        low = stop
    return end
