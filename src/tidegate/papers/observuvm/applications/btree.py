"""BTR: keys looked up in a B-tree whose nodes lie in memory in the order of their creation."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tidegate import units
from tidegate.compiled.jit import jit
from tidegate.options import Option
from tidegate.trace.trace import Launch, Segment
from tidegate.workloads.graph import random_below, random_bits
from tidegate.workloads.program import Launches, Space, workload
from tidegate.workloads.random_pages import generator
from tidegate.workloads.suites import published_footprint
from tidegate.workloads.waves import (
    Columns,
    Matrix,
    WaveWorkload,
    add_bytes,
    add_page,
    distribute,
    wave_segments,
)

NODE, WORD = 128, 4  # bytes: 32 words; a key, a value or a place
PAIRS = 15  # of a node, each a key and a value or a child; the sixteenth links to the next node
THREADS = 1024  # of a thread block, a look-up each
_SLOTS = 8  # of a GPU with 8 slots to an SM, that one thread block takes: two do not fit
# The pool of 2^25 nodes has room for more than the 250 million keys fill.
KEYS_PER_PLACE = 250e6 / 2**25
_QUERIES, _POOL, _RESULTS = range(3)  # access sites, and the steps of a wave


def pairs_after_random_insertions(kept: int = 8, moved: int = 7) -> float:
    """Return the pairs of a node on average, once many keys were inserted in random order.

    The program splits a node that is full (``kept + moved`` pairs) when a key comes to it: the
    lower ``kept`` stay, the others move to a new node, and the key goes where it belongs
    (GpuBTree, map_warps.cu, split_node1). A key comes to a node of k pairs with a probability
    proportional to k. In the long run there are n[k] nodes of k pairs in proportion to

        (k + 1) n[k] = (k - 1) n[k - 1] + what splits make

    >>> round(pairs_after_random_insertions(), 2)
    10.54
    """
    full = kept + moved
    # of ``full`` splits: one half as it is, and the other with the key
    made = {moved: kept, kept + 1: kept}
    for size in (kept, moved + 1):
        made[size] = made.get(size, 0) + moved
    nodes = {moved - 1: 0.0}
    for k in range(moved, full + 1):
        nodes[k] = ((k - 1) * nodes[k - 1] + made.get(k, 0)) / (k + 1)
    return sum(k * n for k, n in nodes.items()) / sum(nodes.values())


class TreeArrays(NamedTuple):
    """A B-tree: nodes by level, leaves first, and look-ups that read a page, per look-up."""

    levels: list[int]
    reads: NDArray[np.float64]  # by page of the pool, for one look-up


@workload("BTR")
class BTree(WaveWorkload):
    """Look-ups in the GPU B-tree of Awad et al. (PPoPP'19, the paper's reference): its search.

        node  15 pairs of key and value (or child), and a link: 32 words, 128 bytes, in a pool
        a thread per query; a warp takes its 32 queries one after another, from the root to a leaf:
            word[lane] = pool[32 node + lane];  node = the child below the last key <= query
        results[thread] = the value

    The pool has 2^25 nodes, 4 GiB; 128 Mi queries and as many results take 1 GiB: Table II's 5.0
    GB. The first author's own version (SUV, MICRO'24) inserts 250 million keys in random order and
    then looks 128 Mi of them up, shuffled, in one launch; the tree is far when that begins.

    Random insertions leave nodes 70 % full by the program's rule of splitting
    (``pairs_after_random_insertions``), and number nodes in the order of their splits. So
    leaves of neighbouring keys, and inner nodes below the topmost levels, lie anywhere in the pool:
    a page of it holds leaves and inner nodes alike, and every query reads one node of each level,
    in as many pages. Inner nodes are put into pages by a seed; leaves take the rest. A wave is the
    queries that are resident together; it reads its queries, then the pages of the pool that its
    look-ups reach, each once, in random order, with the bytes of all its reads, then writes its
    results, distributed over ``lanes`` blocks. As each wave reaches the whole tree, ``merge`` of
    them are one list, which makes the trace shorter. Access sites: 0 = queries, 1 = pool, 2 =
    results.
    """

    bytes = published_footprint("BTR", "size of the pool, the queries and the results")
    wave = Option(82, "thread blocks resident together; 82 SMs hold one of 1024 threads", least=1)
    lanes = Option(656, "blocks of the trace that share a wave's pages in turn", least=1)
    merge = Option(8, "waves that are one list of pages (a choice)", least=1)
    fill = Option(
        pairs_after_random_insertions() / PAIRS,
        "how full nodes are: as random insertions leave them by the program's rule of splitting",
        parse=units.fraction,
        least=0.5,
        most=1,
    )
    seed = Option(1, "seed of the nodes' places and of the queries", least=0)

    @property
    def queries(self) -> int:
        """Look-ups: a fifth of the bytes are queries and results."""
        return max(1, self.bytes // 5 // (2 * WORD))

    @property
    def nodes(self) -> int:
        """Nodes that the pool has room for."""
        return max(1, (self.bytes - 2 * WORD * self.queries) // NODE)

    def sizes(self) -> dict[str, int]:
        ends = WORD * self.queries
        return {"pool": NODE * self.nodes, "queries": ends, "results": ends}

    def levels(self) -> list[int]:
        """Return the nodes of each level, leaves first."""
        each = PAIRS * self.fill
        levels = [max(1, round(KEYS_PER_PLACE * self.nodes / each))]
        while levels[-1] > 1:
            levels.append(max(1, round(levels[-1] / each)))
        return levels

    def tree(self, page: int) -> TreeArrays:
        """Return the tree; a page has so many bytes."""
        levels = self.levels()
        used = min(sum(levels), self.nodes)
        places = np.bincount(np.arange(used) * NODE // page)  # nodes of each page
        random, reads, others = generator(self.seed, 0), np.zeros(len(places)), 0 * places
        for count in levels[1:]:
            here = np.bincount(random.integers(used, size=count) * NODE // page)
            here = np.pad(here, (0, len(places) - len(here)))
            reads += here / count
            others += here
        leaves = np.maximum(places - others, 0)
        return TreeArrays(levels, reads + leaves / leaves.sum())

    def launches(self, space: Space) -> Launches:
        lanes = min(self.lanes, _SLOTS * self.wave)
        width = max(1, _SLOTS * self.wave // lanes)
        touches, sharing = self._touches(space, lanes), (1.0, self._shared(space), 1.0)
        yield Launch("search_b_tree", touches, width, sharing=sharing)

    def _shared(self, space: Space) -> float:
        """Return how many look-ups of a wave read each byte of the pool that it reads.

        A wave counts the bytes of a page at most once.
        """
        page, wave = space.geometry.page, min(self.queries, THREADS * self.wave * self.merge)
        asked = NODE * wave * self.tree(page).reads
        return float(asked.sum() / np.minimum(asked, page).sum())

    def _touches(self, space: Space, lanes: int) -> Iterator[Segment]:
        page, together = space.geometry.page, THREADS * self.wave * self.merge
        tree, count = self.tree(page), -(-self.queries // together)
        queries, pool, results = (
            Matrix(space[name].first_page, page, page, site, int(site == _RESULTS))
            for site, name in enumerate(("queries", "pool", "results"))
        )
        order, key = np.arange(len(tree.reads)), random_bits(np.uint64(self.seed), 2)
        size = NODE * self.nodes

        def fill(
            room: Columns, needs: NDArray[Any], wave: int, enough: int
        ) -> tuple[int, int, int]:
            block = touch = 0
            while wave < count and touch < enough:
                first, stop = wave * together, min(self.queries, (wave + 1) * together)
                end = add_bytes(needs, 0, 0, queries, WORD * first, WORD * stop, _QUERIES)
                end = _add_pool(needs, end, pool, size, tree.reads, order, stop - first, key, wave)
                end = add_bytes(needs, end, end, results, WORD * first, WORD * stop, _RESULTS)
                block, touch = distribute(needs, end, _RESULTS + 1, lanes, room, block, touch)
                wave += 1
            return wave, block, touch

        return wave_segments(count, sum(o.pages for o in space.values()), fill)


@jit
def _add_pool(
    needs: Any,
    end: int,
    pool: Any,
    size: int,
    reads: Any,
    order: Any,
    queries: int,
    key: Any,
    wave: int,
) -> Any:
    """Add the pages of the pool, of ``size`` bytes, that ``queries`` look-ups reach, in a new
    random order.

    A page is read as often as is to be expected, rounded up or down by chance.
    """
    drawn = 2 * wave * len(order)
    for last in range(len(order) - 1, 0, -1):
        other = random_below(last + 1, key, drawn)
        drawn += 1
        order[last], order[other] = order[other], order[last]
    for number in order:
        expected = queries * reads[number]
        times = np.int64(expected)
        times += random_below(1 << 30, key, drawn) < (expected - times) * (1 << 30)
        drawn += 1
        if times > 0:
            here = min(pool.page, size - number * pool.page)
            end = add_page(needs, end, pool, number, min(here, NODE * times), _POOL)
    return end
