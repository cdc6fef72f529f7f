"""BTR: keys looked up in a B+ tree; nodes near the root are hot, leaves and records are not."""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tidegate import units
from tidegate.compiled.jit import jit
from tidegate.options import Option
from tidegate.trace.build import SEGMENT_TOUCHES
from tidegate.trace.trace import Launch, Segment
from tidegate.workloads.program import Derived, Launches, Space, largest_fit, workload
from tidegate.workloads.random_pages import Zipf, generator
from tidegate.workloads.suites import published_footprint
from tidegate.workloads.thread_blocks import SECTOR

RECORD, KEY, ANSWER, PLACE = 4, 4, 4, 8  # bytes: int value, int, record, long

# The arrays, in the order in which kernel_gpu_cuda_wrapper.cu allocates them; an array's place is
# its access site.
ARRAYS = ("records", "knodes", "currKnode", "offset", "keys", "ans")
_RECORDS, _KNODES, _CURR, _OFFSET, _KEYS, _ANS = range(6)


class Tree(NamedTuple):
    """A B+ tree over the keys 0 to ``keys`` - 1; nodes are alike but the last of each level."""

    keys: int
    leaf: int  # keys of a leaf
    inner: int  # children of an inner node
    order: int
    node: int  # bytes: sizeof(knode)
    levels: NDArray[np.int64]  # nodes of each level, the root first


def grown_tree(keys: int, order: int = 256, fill: float = 0.5) -> Tree:
    """Return the tree that Rodinia's insertions leave when keys come in rising order.

    Of a node that is split, the left part keeps ``fill`` of the most items and stays as it is.
    """
    leaf, inner = ceil((order - 1) * fill), ceil(order * fill)
    levels = [_nodes(keys, leaf, order - 1)]
    while levels[0] > 1:
        levels.insert(0, _nodes(levels[0], inner, order))
    return Tree(keys, leaf, inner, order, 4 + 2 * 4 * (order + 1) + 4 + 4, np.array(levels))


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


@workload("BTR")
class BTree(Derived):
    """Look-ups in a B+ tree: findK of Rodinia's b+tree, executed on a tree made here.

        struct knode { int location; int indices[order + 1]; int keys[order + 1];
                       bool is_leaf; int num_keys; }

        a thread block per query (bid), a thread per key of a node (thid), from the root to a leaf:
            if knodes[curr[bid]].keys[thid] <= keys[bid] < knodes[curr[bid]].keys[thid + 1]:
                offset[bid] = knodes[offset[bid]].indices[thid]
            if thid == 0:  curr[bid] = offset[bid]
        at the leaf:
            if knodes[curr[bid]].keys[thid] == keys[bid]:
                ans[bid].value = records[knodes[curr[bid]].indices[thid]].value

    The tree is the one that Rodinia's insertions leave when keys 0, 1, 2, … come in rising order:
    of a node that is split the left half stays as it is, so every node is half full but the last of
    its level. ``transform_to_cuda`` puts nodes level by level, the root first, and records in the
    order of their keys; there is a record for every key. A trace block is a thread block: its
    pages, each once, at its first use. All keys of a node count as they are, all other look-ups
    count 32 bytes. The touches are *derived*: the tree and the queries are made here, from a seed.

    The paper gives no tree, and cites for it not Rodinia [10] but another work [7] whose title is
    not in our copy.
    """

    bytes = published_footprint("BTR", "size of the tree, its records and one batch of queries")
    queries = Option(
        0.01,
        "look-ups, as a share of the keys (a choice: 1%, as in Rodinia)",
        parse=units.fraction,
        least=1e-9,
    )
    batch = Option(
        65_535, "look-ups in a launch (a choice: the most blocks of Rodinia's launch)", least=1
    )
    skew = Option(
        0.0, "exponent of Zipf's law over the leaves (a choice: uniform, as in Rodinia)", least=0
    )
    order = Option(256, "children of a node at most (a choice: DEFAULT_ORDER)", least=3, most=1024)
    fill = Option(
        0.5,
        "how full nodes are (a choice: half, as rising keys leave them; random ones leave 69%)",
        parse=units.fraction,
        least=0.5,
        most=1,
    )
    placement = Option(
        "levels",
        "nodes by level, as in Rodinia, or shuffled (a choice)",
        choices=("levels", "shuffled"),
    )
    seed = Option(1, "seed of the queries and of shuffled nodes", least=0)

    def tree(self) -> Tree:
        """Return the largest tree that fits, of one key at least."""
        return self._grown(largest_fit(self.bytes, lambda keys: self._sizes(self._grown(keys))))

    def sizes(self) -> dict[str, int]:
        return self._sizes(self.tree())

    def _sizes(self, tree: Tree) -> dict[str, int]:
        together = min(self.batch, self._count(tree))
        sizes = (RECORD * tree.keys, tree.node * int(tree.levels.sum()))
        queries = (width * together for width in (PLACE, PLACE, KEY, ANSWER))
        return dict(zip(ARRAYS, (*sizes, *queries), strict=True))

    def _count(self, tree: Tree) -> int:
        return max(1, int(tree.keys * self.queries))

    def _grown(self, keys: int) -> Tree:
        return grown_tree(keys, self.order, self.fill)

    def launches(self, space: Space) -> Launches:
        tree = self.tree()
        count = self._count(tree)
        law = Zipf(int(tree.levels[-1]), self.skew, self.seed) if self.skew else None
        places = np.empty(0, np.int32)  # empty: nodes are in order
        if self.placement == "shuffled":
            places = generator(self.seed, 0).permutation(tree.levels.sum()).astype(np.int32)
        for batch, first in enumerate(range(0, count, self.batch)):
            random = generator(self.seed, 1 + batch)
            keys = _queried_keys(tree, law, random, min(self.batch, count - first))
            yield Launch("findK", _touches(space, tree, places, keys))


def _queried_keys(
    tree: Tree, law: Zipf | None, random: np.random.Generator, count: int
) -> NDArray[np.int64]:
    """Return keys to look up: uniform ones, or uniform ones of leaves that are drawn by the law."""
    if law is None:
        return random.integers(tree.keys, size=count)
    first = law.draw(random, count).astype(np.int64) * tree.leaf
    last = np.where(first == (tree.levels[-1] - 1) * tree.leaf, tree.keys, first + tree.leaf)
    return random.integers(first, last)


class Layout(NamedTuple):
    """The places of the arrays."""

    page: int  # bytes
    first_page: NDArray[np.int64]  # of each array
    size: NDArray[np.int64]


def _touches(
    space: Space, tree: Tree, places: NDArray[np.int32], keys: NDArray[np.int64]
) -> Iterator[Segment]:
    """Yield a block for each key."""
    arrays, page = [space[a] for a in ARRAYS], space.geometry.page
    first_pages, sizes = [a.first_page for a in arrays], [a.bytes for a in arrays]
    layout = Layout(page, np.array(first_pages), np.array(sizes))
    most = 5 + len(tree.levels) * (tree.order * KEY // page + 3)  # touches of a look-up
    together = max(1, SEGMENT_TOUCHES // most)
    for first in range(0, len(keys), together):
        yield Segment(*_walk(layout, most, first, keys[first : first + together], tree, places))


@jit
def _walk(layout: Any, most: int, bid: int, keys: Any, tree: Any, places: Any) -> Any:
    """Run findK for keys, the first of which is block ``bid``'s; return a segment's columns."""
    room = len(keys) * most
    starts = np.zeros(len(keys) + 1, np.int64)
    page, write = np.empty(room, np.int32), np.empty(room, np.uint8)
    used, reference = np.empty(room, np.int32), np.empty(room, np.int16)
    height = len(tree.levels) - 1
    path, slot = np.empty(height + 1, np.int64), np.empty(height + 1, np.int64)
    end = 0
    for i in range(len(keys)):
        own = end
        find_path(path, slot, keys[i], tree)
        columns = page, write, used, reference
        end = _use(layout, columns, own, end, _CURR, PLACE * (bid + i), PLACE, height > 0)
        end = _use(layout, columns, own, end, _KEYS, KEY * (bid + i), KEY, False)
        before = 0  # nodes of the levels above
        for level in range(height + 1):
            place = before + path[level]
            at = tree.node * (np.int64(places[place]) if len(places) else place)
            before += tree.levels[level]
            low, size = at + 4 * (tree.order + 2), KEY * tree.order
            end = _use(layout, columns, own, end, _KNODES, low, size, False)
            if level < height:
                end = _use(layout, columns, own, end, _OFFSET, PLACE * (bid + i), PLACE, True)
            end = _use(layout, columns, own, end, _KNODES, at + 4 * (1 + slot[level]), 4, False)
        end = _use(layout, columns, own, end, _RECORDS, RECORD * keys[i], RECORD, False)
        end = _use(layout, columns, own, end, _ANS, ANSWER * (bid + i), ANSWER, True)
        starts[i + 1] = end
    return starts, page[:end], write[:end], used[:end], reference[:end]


@jit
def _use(
    layout: Any, columns: Any, own: int, end: int, array: int, at: int, size: int, write: bool
) -> Any:
    """Use ``size`` bytes of an array from ``at`` on; return the new end.

    The touches of the current block begin at ``own``.
    """
    page, writes, used, reference = columns
    low, high = at, at + size
    while low < high:
        number = low // layout.page
        stop = min(high, (number + 1) * layout.page)
        i = own
        while i < end and page[i] != layout.first_page[array] + number:
            i += 1
        if i == end:
            page[i], writes[i] = layout.first_page[array] + number, 0
            used[i], reference[i] = 0, array
            end += 1
        within = min(layout.page, layout.size[array] - number * layout.page)
        used[i] = min(within, used[i] + max(SECTOR, stop - low))
        writes[i] |= write
        low = stop
    return end
