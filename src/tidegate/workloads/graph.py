"""Graphs from a seed: uniformly random or Kronecker's, as lists of neighbours.

    uniform, kronecker ──▶ Graph ──▶ neighbours, degree, list_start   one node's list, in loops
                                 └─▶ csr                              all lists, as CSR's two arrays

An edge is drawn once and is in the lists of both its ends. Edge k is a function of the seed and k
alone, so it can be drawn again: once to count, once to fill the lists, and only the lists take
memory. Where the first ends go round the nodes in turn (``uniform``), not even all of these are
stored: the edges that a node drew itself are drawn again with its list, and only those that others
drew with it are stored. That halves the memory: 16 M nodes with 28 neighbours each take 1 GB, not
2.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tidegate.compiled.jit import jit
from tidegate.errors import TidegateError

_BUCKET = 1 << 16  # nodes whose lists are sorted together
_TOGETHER = 4096  # edges that are drawn together
_MOST = 1 << 31
# Graph500's shares of the four quarters of the adjacency matrix: 0.57, 0.19, 0.19 and 0.05, of
# 2^16.
_A, _AB, _ABC = 37356, 49807, 62259


class Graph(NamedTuple):
    """Lists of neighbours.

    A node's list begins where the one before it ends; ``csr`` writes them all out.
    """

    nodes: int
    redrawn: int  # edges whose first ends go round the nodes, drawn again; 0: all are stored
    key: np.uint64  # of the random numbers
    offsets: NDArray[np.int64]  # node v has ``stored[offsets[v]:offsets[v + 1]]``
    stored: NDArray[np.int32]


@functools.lru_cache(maxsize=1)
def uniform(nodes: int, edges: int, seed: int) -> Graph:
    """Return a graph whose nodes draw the same number of edges each (within one), in turn.

    The other end is any node, with equal probability. That is Rodinia's generator
    (``graphgen.cpp``), whose nodes draw 2, 3 or 4 edges each; loops and repeated edges remain, as
    there. Degrees are that number plus a Poisson variable.

    >>> graph = uniform(100, 300, seed=1)
    >>> len(graph.stored), int(csr(graph)[0][-1])
    (300, 600)
    """
    _check(nodes, edges)
    offsets, stored = _uniform(nodes, edges, _key(seed))
    return Graph(nodes, edges, _key(seed), offsets, stored)


@functools.lru_cache(maxsize=1)
def kronecker(nodes: int, edges: int, seed: int) -> Graph:
    """Return an R-MAT graph with Graph500's shares: few nodes have most of the edges.

    It is drawn over the next power of two of nodes, scattered (as Graph500 shuffles its labels) and
    folded onto ``nodes``.

    >>> graph = kronecker(100, 300, seed=1)
    >>> len(graph.stored), int(csr(graph)[0][-1])
    (600, 600)
    """
    _check(nodes, 2 * edges)
    offsets, stored = _kronecker(nodes, edges, _key(seed), (nodes - 1).bit_length())
    return Graph(nodes, 0, _key(seed), offsets, stored)


@jit
def csr(graph: Any) -> Any:
    """Return all lists as CSR: the start of each node's list (and the end), and the neighbours."""
    offsets = np.empty(graph.nodes + 1, np.int64)
    targets = np.empty(list_start(graph, graph.nodes), np.int32)
    for v in range(graph.nodes):
        offsets[v] = list_start(graph, v)
        neighbours(graph, v, targets[offsets[v] :])
    offsets[graph.nodes] = len(targets)
    return offsets, targets


@jit
def list_start(graph: Any, v: int) -> Any:
    """Return where node v's list begins in CSR; for v = ``nodes``, where the last one ends."""
    return graph.offsets[v] + v * graph.redrawn // graph.nodes


@jit
def degree(graph: Any, v: int) -> Any:
    """Return the length of node v's list."""
    return list_start(graph, v + 1) - list_start(graph, v)


@jit
def largest_degree(graph: Any) -> Any:
    most = 0
    for v in range(graph.nodes):
        most = max(most, degree(graph, v))
    return most


@jit
def neighbours(graph: Any, v: int, into: Any) -> Any:
    """Write node v's list to ``into``; return its length.

    The order is that in which Rodinia's generator appends: edges that lower nodes drew, that v
    drew, that v and higher nodes drew.
    """
    # taken out of the tuple once: it is expensive in a loop
    nodes, redrawn, key, stored = graph.nodes, graph.redrawn, graph.key, graph.stored
    n, at, end = 0, graph.offsets[v], graph.offsets[v + 1]
    while at < end and stored[at] < v:
        into[n] = stored[at]
        n += 1
        at += 1
    for edge in range(v * redrawn // nodes, (v + 1) * redrawn // nodes):
        into[n] = random_below(nodes, key, edge)
        n += 1
    while at < end:
        into[n] = stored[at]
        n += 1
        at += 1
    return n


@jit
def random_bits(key: Any, k: int) -> Any:
    """Return the k-th 64 random bits of a key: SplitMix64 (Steele et al., OOPSLA 2014).

    Its state for any k is computed directly.
    """
    x = key + np.uint64(k) * np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


@jit
def random_below(limit: int, key: Any, k: int) -> Any:
    """Return the k-th random number of a key, from 0 to ``limit`` - 1; ``limit`` ≤ 2^32."""
    return np.int64((random_bits(key, k) >> np.uint64(32)) * np.uint64(limit) >> np.uint64(32))


def _key(seed: int) -> np.uint64:
    """Return the key of a seed: seeds are often neighbours, their keys are not."""
    return np.uint64(random_bits(np.uint64(seed), 1))


def _check(nodes: int, stored: int) -> None:
    if max(nodes, stored) >= _MOST:
        raise TidegateError(
            f"the graph is too large: nodes and stored neighbours must be below 2^31, got {nodes} "
            f"and {stored}; take fewer bytes"
        )


@jit
def start_node(graph: Any) -> Any:
    """Return a node drawn at random, or the next one that has neighbours."""
    v = random_below(graph.nodes, graph.key, -3)
    for _ in range(graph.nodes):
        if degree(graph, v) > 0:
            break
        v = (v + 1) % graph.nodes
    return v


# Lists are filled in two rounds, because scattered writes to a gigabyte take a minute: first every
# entry's number goes to its owner's bucket of 65,536 nodes, then each bucket is sorted by owner, in
# the cache.


@jit
def _uniform(nodes: int, edges: int, key: Any) -> Any:
    offsets, stored = np.empty(nodes + 1, np.int64), np.empty(edges, np.int32)
    begins = np.zeros(nodes // _BUCKET + 2, np.int64)
    for edge in range(edges):
        begins[random_below(nodes, key, edge) // _BUCKET + 1] += 1
    room = _begin(begins)
    for edge in range(edges):
        _put(stored, begins, random_below(nodes, key, edge), edge)
    _move_back(begins)
    owner, other = np.empty(room, np.int32), np.empty(room, np.int32)
    for bucket in range(len(begins) - 1):
        first, n = begins[bucket], begins[bucket + 1] - begins[bucket]
        for i in range(n):
            entry = np.int64(stored[first + i])
            owner[i] = random_below(nodes, key, entry)
            other[i] = ((entry + 1) * nodes - 1) // edges  # the node that drew it
        _sort(offsets, stored, bucket, first, owner[:n], other)
    return offsets, stored


@jit
def _kronecker(nodes: int, edges: int, key: Any, scale: int) -> Any:
    offsets, stored = np.empty(nodes + 1, np.int64), np.empty(2 * edges, np.int32)
    begins = np.zeros(nodes // _BUCKET + 2, np.int64)
    scatter = random_bits(key, -1) | np.uint64(1), random_bits(key, -2) | np.uint64(1)
    drawn, shape = np.empty((2, _TOGETHER), np.int64), (nodes, key, scale, scatter)
    for first in range(0, edges, _TOGETHER):
        n = _draw(drawn, np.arange(first, min(first + _TOGETHER, edges)), shape)
        for i in range(n):
            begins[drawn[0, i] // _BUCKET + 1] += 1
            begins[drawn[1, i] // _BUCKET + 1] += 1
    room = _begin(begins)
    for first in range(0, edges, _TOGETHER):
        n = _draw(drawn, np.arange(first, min(first + _TOGETHER, edges)), shape)
        for i in range(n):
            _put(stored, begins, drawn[0, i], 2 * (first + i))
            _put(stored, begins, drawn[1, i], 2 * (first + i) + 1)
    _move_back(begins)
    owner, other = np.empty(room, np.int32), np.empty(room, np.int32)
    for bucket in range(len(begins) - 1):
        begin, end = begins[bucket], begins[bucket + 1]
        for first in range(begin, end, _TOGETHER):
            entries = stored[first : min(first + _TOGETHER, end)].astype(np.int64)
            _draw(drawn, entries // 2, shape)
            for i in range(len(entries)):
                side, at = entries[i] % 2, first - begin + i
                owner[at], other[at] = drawn[side, i], drawn[1 - side, i]
        _sort(offsets, stored, bucket, begin, owner[: end - begin], other)
    return offsets, stored


@jit
def _draw(drawn: Any, edges: Any, shape: Any) -> int:
    """Write the ends of some edges to ``drawn``; return how many edges these are.

    At each of ``scale`` levels 16 random bits choose a quarter. Levels are the outer loop, so that
    the processor draws several edges at a time: large graphs take most of their time here.
    """
    nodes, key, scale, scatter = shape
    n = len(edges)
    u, v, bits = drawn[0, :n], drawn[1, :n], np.empty(n, np.uint64)
    u[:], v[:] = 0, 0
    for word in range((scale + 3) // 4):
        for i in range(n):
            bits[i] = random_bits(key, 8 * edges[i] + word)
        for _ in range(min(4, scale - 4 * word)):
            for i in range(n):
                r = np.int64(bits[i] & np.uint64(0xFFFF))
                bits[i] >>= np.uint64(16)
                below = np.int64(r >= _AB)
                u[i] = 2 * u[i] + below
                v[i] = 2 * v[i] + (np.int64(r >= _A) ^ below ^ np.int64(r >= _ABC))
    for i in range(n):
        u[i], v[i] = _place(u[i], nodes, scale, scatter), _place(v[i], nodes, scale, scatter)
    return n


@jit
def _place(node: int, nodes: int, scale: int, scatter: Any) -> Any:
    """Scatter the numbers below 2^scale among themselves, then fold them onto the nodes."""
    mask = (np.uint64(1) << np.uint64(scale)) - np.uint64(1)
    x, half = np.uint64(node), np.uint64((scale + 1) // 2)
    x = (x * scatter[0]) & mask
    x ^= x >> half
    x = (x * scatter[1]) & mask
    x ^= x >> half
    return np.int64(x * np.uint64(nodes) >> np.uint64(scale))


@jit
def _begin(begins: Any) -> Any:
    """Turn counts, each one place further on, into starts of buckets; return the largest count."""
    most = 0
    for i in range(1, len(begins)):
        most = max(most, begins[i])
        begins[i] += begins[i - 1]
    return most


@jit
def _put(stored: Any, begins: Any, owner: int, entry: int) -> None:
    """Append to the owner's bucket and move its start on."""
    bucket = owner // _BUCKET
    stored[begins[bucket]] = entry
    begins[bucket] += 1


@jit
def _move_back(begins: Any) -> None:
    """Turn the ends of buckets back into their starts."""
    for i in range(len(begins) - 1, 0, -1):
        begins[i] = begins[i - 1]
    begins[0] = 0


@jit
def _sort(offsets: Any, stored: Any, bucket: int, first: int, owner: Any, other: Any) -> None:
    """Write a bucket's lists from ``first`` on, one after another, entries in their order."""
    low = bucket * _BUCKET
    high = min(low + _BUCKET, len(offsets) - 1)
    at = np.zeros(high - low + 1, np.int64)
    for node in owner:
        at[node - low + 1] += 1
    at[0] = first
    for i in range(high - low):
        at[i + 1] += at[i]
        offsets[low + i] = at[i]
    offsets[high] = at[high - low]
    for i in range(len(owner)):
        node = owner[i] - low
        stored[at[node]] = other[i]
        at[node] += 1
