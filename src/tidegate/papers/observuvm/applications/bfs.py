"""BFS: a graph searched level by level; every level walks the nodes and jumps to neighbours."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tidegate.compiled.jit import jit
from tidegate.options import Option
from tidegate.trace.trace import Launch, Segment
from tidegate.workloads.graph import (
    Graph,
    kronecker,
    largest_degree,
    list_start,
    neighbours,
    start_node,
    uniform,
)
from tidegate.workloads.program import Derived, Launches, Space, workload
from tidegate.workloads.suites import published_footprint
from tidegate.workloads.thread_blocks import SECTOR
from tidegate.workloads.waves import distribute, wave_segments

THREADS = 512  # MAX_THREADS_PER_BLOCK of bfs.cu
# bytes: struct Node { int starting, no_of_edges }, int, int; the masks are bool
NODE, EDGE, COST = 8, 4, 4

# The arrays, in the order in which bfs.cu allocates them; an array's place is its access site.
_GRAPH = ("graph_nodes", "graph_edges", "graph_mask")
ARRAYS = (*_GRAPH, "updating_graph_mask", "graph_visited", "cost")
_NODES, _EDGES, _MASK, _UPDATING, _VISITED, _COST = range(6)

# The step in which Kernel, or Kernel2, first loads each array's pages, and stores into them.
_STEP = ((2, 3, 0, 0, 4, 5), (0, 0, 1, 7, 0, 6))
_STEP2 = ((0, 0, 0, 0, 0, 0), (0, 0, 1, 3, 2, 0))
_STEPS = 8


@workload("BFS")
class BFS(Derived):
    """Breadth-first search: bfs of Rodinia (Che et al., IISWC'09), executed on a graph from a seed.

    Two launches per level, a thread per node (tid), 512 to a thread block, until no node is new:

        Kernel   if mask[tid]:  mask[tid] = false
                     for i in nodes[tid].starting … + nodes[tid].no_of_edges - 1:
                         id = edges[i];  if !visited[id]:  cost[id] = cost[tid] + 1
                                                           updating[id] = true
        Kernel2  if updating[tid]:  mask[tid] = visited[tid] = true;  updating[tid] = false
                                    over = true

    The search is carried out as the touches are streamed; they are *derived* because its input is
    made here and the order of threads is assumed. The thread blocks of one page of ``graph_nodes``
    (16, if pages have 64 KB) walk in step: they are one wave, a list of pages, each once at its
    first load and once at its first store: mask loaded and stored, nodes, edges, visited, then cost
    loaded and stored, and updating stored, each in the order of the threads. Kernel's waves are
    distributed over ``lanes`` blocks; Kernel2's are a block each. Bytes of a page: what
    neighbouring threads use side by side counts as it is, every jump (visited, cost, updating at
    ``id``) counts 32, but no more than the page holds. The flag ``over``, one byte, is left out.
    Access sites: the arrays in the order in which they are allocated.

    Table II says 2.1 GB, the artifact a graph of 16 M nodes by Rodinia's generator. That
    generator's nodes have 6 neighbours on average, and 16 M of them take 0.61 GiB; 30 neighbours
    make 2.1 GiB of 2^24 nodes.
    """

    bytes = published_footprint("BFS", "size of the six arrays together")
    degree = Option(
        30.0, "neighbours of a node on average (a choice: fits 16 M nodes to 2.1 GB)", least=2
    )
    graph = Option(
        "uniform",
        "uniform as Rodinia's, or kronecker: 2.2 GB of RAM (a choice)",
        choices=("uniform", "kronecker"),
    )
    lanes = Option(16, "blocks of the trace that share the pages of a wave of Kernel", least=1)
    seed = Option(1, "seed of the graph and of the node the search begins at", least=0)

    @property
    def nodes(self) -> int:
        return int(self.bytes / (NODE + 3 + COST + EDGE * self.degree))

    @property
    def edges(self) -> int:
        """Edges; each is in the lists of both its ends."""
        return int(self.nodes * self.degree / 2)

    def sizes(self) -> dict[str, int]:
        n = self.nodes
        return dict(zip(ARRAYS, (NODE * n, 2 * EDGE * self.edges, n, n, n, COST * n), strict=True))

    def made(self) -> Graph:
        """Return the graph."""
        make = uniform if self.graph == "uniform" else kronecker
        return make(self.nodes, self.edges, self.seed)

    def release(self) -> None:
        uniform.cache_clear()
        kronecker.cache_clear()

    def launches(self, space: Space) -> Launches:
        together = max(1, space.geometry.page // (NODE * THREADS))  # thread blocks to a wave
        lanes = min(self.lanes, together)
        search = _begin(self.made(), space, together * THREADS)
        level, more = 0, True
        while more:
            yield Launch("Kernel", _touches(search, _kernel, lanes, level), together // lanes)
            search.over[0] = 0
            yield Launch("Kernel2", _touches(search, _kernel2, 1, level), together)
            level, more = level + 1, bool(search.over[0])


class PageUse(NamedTuple):
    """The places of the arrays, and how the current wave uses each page."""

    shift: int  # a page has 2^shift bytes
    first_page: NDArray[np.int64]  # of each array
    size: NDArray[np.int64]
    loaded: NDArray[np.int64]  # bytes, by page; 0: not listed
    stored: NDArray[np.int64]


class Search(NamedTuple):
    """The state of a search."""

    graph: Graph
    mask: NDArray[np.uint8]
    updating: NDArray[np.uint8]
    visited: NDArray[np.uint8]
    cost: NDArray[np.int32]
    over: NDArray[np.uint8]
    wave: int  # nodes
    pages: PageUse
    row: NDArray[np.int32]  # room for one node's neighbours


def _begin(graph: Graph, space: Space, wave: int) -> Search:
    """Return a search that has visited only the node it begins at."""
    mask, updating, visited = (np.zeros(graph.nodes, np.uint8) for _ in range(3))
    cost, source = np.full(graph.nodes, -1, np.int32), int(start_node(graph))
    mask[source], visited[source], cost[source] = 1, 1, 0
    arrays, count = [space[a] for a in ARRAYS], max(o.first_page + o.pages for o in space.values())
    pages = PageUse(
        space.geometry.page.bit_length() - 1,
        np.array([a.first_page for a in arrays]),
        np.array([a.bytes for a in arrays]),
        np.zeros(count, np.int64),
        np.zeros(count, np.int64),
    )
    row = np.empty(int(largest_degree(graph)), np.int32)
    return Search(graph, mask, updating, visited, cost, np.zeros(1, np.uint8), wave, pages, row)


def _touches(
    search: Search, kernel: Callable[..., Any], lanes: int, level: int
) -> Iterator[Segment]:
    """Carry out the kernel wave by wave: one launch."""
    count, most = -(-search.graph.nodes // search.wave), 2 * len(search.pages.loaded)
    return wave_segments(count, most, kernel, lanes, search, level)


@jit
def _kernel(
    columns: Any, needs: Any, wave: int, enough: int, lanes: int, s: Any, level: int
) -> Any:
    """Run Kernel from ``wave`` on, until there are ``enough`` touches; see ``waves.Fill``."""
    block = touch = 0
    while wave * s.wave < s.graph.nodes and touch < enough:
        low, high = wave * s.wave, min((wave + 1) * s.wave, s.graph.nodes)
        end = _expand(s, needs, low, high, level)
        _settle(s.pages, needs, end)
        block, touch = distribute(needs, end, _STEPS, lanes, columns, block, touch)
        wave += 1
    return wave, block, touch


@jit
def _expand(s: Any, needs: Any, low: int, high: int, level: int) -> Any:
    """Run Kernel for the nodes ``low`` to ``high``; return the list's end.

    This is the hot loop: what it needs is taken out of the tuples once, and its jumps are written
    out, as a call would count references to arrays.
    """
    graph, mask, updating, visited, cost = s.graph, s.mask, s.updating, s.visited, s.cost
    pages, row = s.pages, s.row
    loaded, stored, shift, first_page = pages.loaded, pages.stored, pages.shift, pages.first_page
    at_visited, at_cost = first_page[_VISITED], first_page[_COST]
    at_updating = first_page[_UPDATING]
    end = _use(pages, needs, 0, _MASK, low, high, 0)
    for tid in range(low, high):
        if not mask[tid]:
            continue
        mask[tid] = 0
        end = _use(pages, needs, end, _MASK, tid, tid + 1, 1)
        end = _use(pages, needs, end, _NODES, NODE * tid, NODE * (tid + 1), 0)
        begin, n = list_start(graph, tid), neighbours(graph, tid, row)
        end = _use(pages, needs, end, _EDGES, EDGE * begin, EDGE * (begin + n), 0)
        found = False
        for i in range(n):
            other = np.int64(row[i])
            page = at_visited + (other >> shift)
            if loaded[page] == 0:
                end = _list(needs, end, page, _VISITED, 0)
            loaded[page] += SECTOR
            if not visited[other]:
                if not found:
                    end = _use(pages, needs, end, _COST, COST * tid, COST * (tid + 1), 0)
                    found = True
                cost[other] = level + 1
                page = at_cost + (COST * other >> shift)
                if stored[page] == 0:
                    end = _list(needs, end, page, _COST, 1)
                stored[page] += SECTOR
                updating[other] = 1
                page = at_updating + (other >> shift)
                if stored[page] == 0:
                    end = _list(needs, end, page, _UPDATING, 1)
                stored[page] += SECTOR
    return end


@jit
def _kernel2(
    columns: Any, needs: Any, wave: int, enough: int, lanes: int, s: Any, level: int
) -> Any:
    """Run Kernel2, likewise."""
    block = touch = 0
    while wave * s.wave < s.graph.nodes and touch < enough:
        low, high = wave * s.wave, min((wave + 1) * s.wave, s.graph.nodes)
        end = _renew(s, needs, low, high)
        _settle(s.pages, needs, end)
        for i in range(end):
            needs[i].step = _STEP2[needs[i].write][needs[i].site]
        block, touch = distribute(needs, end, _STEPS, lanes, columns, block, touch)
        wave += 1
    return wave, block, touch


@jit
def _renew(s: Any, needs: Any, low: int, high: int) -> Any:
    """Run Kernel2 for the nodes ``low`` to ``high``; return the list's end."""
    mask, updating, visited, over, pages = s.mask, s.updating, s.visited, s.over, s.pages
    end = _use(pages, needs, 0, _UPDATING, low, high, 0)
    for tid in range(low, high):
        if updating[tid]:
            mask[tid] = visited[tid] = over[0] = 1
            updating[tid] = 0
            for array in (_MASK, _VISITED, _UPDATING):
                end = _use(pages, needs, end, array, tid, tid + 1, 1)
    return end


@jit
def _list(needs: Any, end: int, page: int, array: int, write: int) -> Any:
    """Add a page to the list; return the list's new end."""
    needs[end].page = page
    needs[end].step = _STEP[write][array]
    needs[end].site = array
    needs[end].write = write
    return end + 1


@jit
def _use(pages: Any, needs: Any, end: int, array: int, low: int, high: int, write: int) -> Any:
    """Load or store bytes ``low`` to ``high`` of an array; return the list's new end."""
    used = pages.stored if write else pages.loaded
    while low < high:
        stop = min(high, ((low >> pages.shift) + 1) << pages.shift)
        page = pages.first_page[array] + (low >> pages.shift)
        if used[page] == 0:
            end = _list(needs, end, page, array, write)
        used[page] += stop - low
        low = stop
    return end


@jit
def _settle(pages: Any, needs: Any, end: int) -> None:
    """Give the listed pages their bytes, and clear their use for the next wave."""
    for i in range(end):
        page, array = needs[i].page, needs[i].site
        used = pages.stored if needs[i].write else pages.loaded
        within = pages.size[array] - ((page - pages.first_page[array]) << pages.shift)
        needs[i].bytes = min(used[page], within, 1 << pages.shift)
        used[page] = 0
