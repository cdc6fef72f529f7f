"""Graphs from a seed: uniformly random or Kronecker's, as lists of neighbours.

    uniform, kronecker ──▶ Graph ──▶ neighbours, degree, beginning    one node's list, in compiled loops
                                 └─▶ csr                              all lists, as the two arrays of CSR

An edge is drawn once and is in the lists of both its ends. Edge k is a function of the seed and k
alone, so it can be drawn again: once to count, once to fill the lists in, and nothing but the lists
takes memory. Where the first ends go round the nodes in turn (``uniform``), not even all of them
need be kept: what a node drew itself is drawn again when its list is asked for, and only what
others drew with it is kept. That halves the memory: 16 M nodes with 28 neighbours each take 1 GB,
not 2.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tidegate.compiled.jit import jit
from tidegate.errors import TidegateError

_BUCKET = 1 << 16  # nodes whose lists are sorted together
_MOST = 1 << 31
# Graph500's shares of the four quarters of the adjacency matrix: 0.57, 0.19, 0.19 and 0.05, of
# 2^16.
_A, _AB, _ABC = 37356, 49807, 62259


class Graph(NamedTuple):
    """Lists of neighbours.

    A node's list begins where the one before it ends; ``csr`` writes them all out.
    """

    nodes: int
    # edges whose first ends go round the nodes in turn, and are drawn again when needed; 0: all are
    # kept
    drawn: int
    key: np.uint64  # of the random numbers
    offsets: NDArray[np.int64]  # node v's kept neighbours are ``kept[offsets[v]:offsets[v + 1]]``
    kept: NDArray[np.int32]


@functools.lru_cache(maxsize=1)
def uniform(nodes: int, edges: int, seed: int) -> Graph:
    """Every node in turn draws the same number of edges (within one); the other end is any node,
    all alike.

    That is Rodinia's generator (``graphgen.cpp``), whose nodes draw 2, 3 or 4 edges each; loops and
    repeated edges remain, as there. So degrees are that number plus a Poisson variable.

    >>> graph = uniform(100, 300, seed=1)
    >>> len(graph.kept), int(csr(graph)[0][-1])
    (300, 600)
    """
    _check(nodes, edges)
    offsets, kept = _uniform(nodes, edges, _key(seed))
    return Graph(nodes, edges, _key(seed), offsets, kept)


@functools.lru_cache(maxsize=1)
def kronecker(nodes: int, edges: int, seed: int) -> Graph:
    """R-MAT with Graph500's shares: few nodes have most of the edges.

    Drawn over the next power of two of nodes, scattered (as Graph500 shuffles its labels) and
    folded onto ``nodes``.

    >>> graph = kronecker(100, 300, seed=1)
    >>> len(graph.kept), int(csr(graph)[0][-1])
    (600, 600)
    """
    _check(nodes, 2 * edges)
    offsets, kept = _kronecker(nodes, edges, _key(seed), (nodes - 1).bit_length())
    return Graph(nodes, 0, _key(seed), offsets, kept)


@jit
def csr(graph: Any) -> Any:
    """All lists as CSR: where each node's begins (and the end), and the neighbours."""
    offsets = np.empty(graph.nodes + 1, np.int64)
    targets = np.empty(beginning(graph, graph.nodes), np.int32)
    for v in range(graph.nodes):
        offsets[v] = beginning(graph, v)
        neighbours(graph, v, targets[offsets[v] :])
    offsets[graph.nodes] = len(targets)
    return offsets, targets


@jit
def beginning(graph: Any, v: int) -> Any:
    """Where node v's list begins when all lists are written one after another; of ``nodes``: where
    they end.
    """
    return graph.offsets[v] + v * graph.drawn // graph.nodes


@jit
def degree(graph: Any, v: int) -> Any:
    """The length of node v's list."""
    return beginning(graph, v + 1) - beginning(graph, v)


@jit
def largest_degree(graph: Any) -> Any:
    most = 0
    for v in range(graph.nodes):
        most = max(most, degree(graph, v))
    return most


@jit
def neighbours(graph: Any, v: int, into: Any) -> Any:
    """Write node v's list to ``into``; answers its length.

    In the order in which Rodinia's generator appends them: what lower nodes drew, what v drew, what
    v and higher nodes drew.
    """
    # once: it is dear in a loop
    nodes, drawn, key, kept = graph.nodes, graph.drawn, graph.key, graph.kept
    n, at, end = 0, graph.offsets[v], graph.offsets[v + 1]
    while at < end and kept[at] < v:
        into[n] = kept[at]
        n += 1
        at += 1
    for edge in range(v * drawn // nodes, (v + 1) * drawn // nodes):
        into[n] = below(nodes, key, edge)
        n += 1
    while at < end:
        into[n] = kept[at]
        n += 1
        at += 1
    return n


@jit
def number(key: Any, k: int) -> Any:
    """The k-th random number of a key, 64 bits: SplitMix64 (Steele et al., OOPSLA 2014), whose
    state can be jumped to.
    """
    x = key + np.uint64(k) * np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


@jit
def below(limit: int, key: Any, k: int) -> Any:
    """The k-th random number of a key, from 0 to ``limit`` - 1; ``limit`` is at most 2^32."""
    return np.int64((number(key, k) >> np.uint64(32)) * np.uint64(limit) >> np.uint64(32))


def _key(seed: int) -> np.uint64:
    """Seeds are often neighbours; their keys are not."""
    return np.uint64(number(np.uint64(seed), 1))


def _check(nodes: int, kept: int) -> None:
    if nodes >= _MOST or kept >= _MOST:
        raise TidegateError(
            f"a graph of {nodes} nodes that keeps {kept} neighbours is too large; both must be below 2^31"
        )


# Lists are filled in two rounds, because writing all over a gigabyte takes a minute: first every
# entry's number goes to the bucket of 65,536 nodes that its owner is in, then each bucket is sorted
# by owner, in the cache.


@jit
def _uniform(nodes: int, edges: int, key: Any) -> Any:
    offsets, kept = np.empty(nodes + 1, np.int64), np.empty(edges, np.int32)
    begins = np.zeros(nodes // _BUCKET + 2, np.int64)
    for edge in range(edges):
        begins[below(nodes, key, edge) // _BUCKET + 1] += 1
    room = _begin(begins)
    for edge in range(edges):
        _put(kept, begins, below(nodes, key, edge), edge)
    _move_back(begins)
    owner, other = np.empty(room, np.int32), np.empty(room, np.int32)
    for bucket in range(len(begins) - 1):
        first, n = begins[bucket], begins[bucket + 1] - begins[bucket]
        for i in range(n):
            entry = np.int64(kept[first + i])
            owner[i] = below(nodes, key, entry)
            other[i] = ((entry + 1) * nodes - 1) // edges  # whose turn it was
        _sort(offsets, kept, bucket, first, owner[:n], other)
    return offsets, kept


@jit
def _kronecker(nodes: int, edges: int, key: Any, scale: int) -> Any:
    offsets, kept = np.empty(nodes + 1, np.int64), np.empty(2 * edges, np.int32)
    begins = np.zeros(nodes // _BUCKET + 2, np.int64)
    scatter = number(key, -1) | np.uint64(1), number(key, -2) | np.uint64(1)
    for edge in range(edges):
        u, v = _ends(nodes, key, scale, scatter, edge)
        begins[u // _BUCKET + 1] += 1
        begins[v // _BUCKET + 1] += 1
    room = _begin(begins)
    for edge in range(edges):
        u, v = _ends(nodes, key, scale, scatter, edge)
        _put(kept, begins, u, 2 * edge)
        _put(kept, begins, v, 2 * edge + 1)
    _move_back(begins)
    owner, other = np.empty(room, np.int32), np.empty(room, np.int32)
    for bucket in range(len(begins) - 1):
        first, n = begins[bucket], begins[bucket + 1] - begins[bucket]
        for i in range(n):
            entry = np.int64(kept[first + i])
            u, v = _ends(nodes, key, scale, scatter, entry // 2)
            owner[i], other[i] = (u, v) if entry % 2 == 0 else (v, u)
        _sort(offsets, kept, bucket, first, owner[:n], other)
    return offsets, kept


@jit
def _ends(nodes: int, key: Any, scale: int, scatter: Any, edge: int) -> Any:
    """The ends of an edge: at each of ``scale`` levels 16 random bits choose a quarter of the
    matrix.
    """
    u = v = np.int64(0)
    for word in range((scale + 3) // 4):
        bits = number(key, 8 * edge + word)
        for _ in range(min(4, scale - 4 * word)):
            r = np.int64(bits & np.uint64(0xFFFF))
            bits >>= np.uint64(16)
            u = 2 * u + (r >= _AB)
            v = 2 * v + ((r >= _A) ^ (r >= _AB) ^ (r >= _ABC))
    return _place(u, nodes, scale, scatter), _place(v, nodes, scale, scatter)


@jit
def _place(node: int, nodes: int, scale: int, scatter: Any) -> Any:
    """Scatter the numbers below 2^scale among themselves, then fold them onto the nodes."""
    x, mask, half = (
        np.uint64(node),
        (np.uint64(1) << np.uint64(scale)) - np.uint64(1),
        np.uint64((scale + 1) // 2),
    )
    x = (x * scatter[0]) & mask
    x ^= x >> half
    x = (x * scatter[1]) & mask
    x ^= x >> half
    return np.int64(x * np.uint64(nodes) >> np.uint64(scale))


@jit
def _begin(begins: Any) -> Any:
    """From counts, each one place further on, to where buckets begin; answers the largest count."""
    most = 0
    for i in range(1, len(begins)):
        most = max(most, begins[i])
        begins[i] += begins[i - 1]
    return most


@jit
def _put(kept: Any, begins: Any, owner: int, entry: int) -> None:
    """Append to the owner's bucket, whose beginning moves on."""
    bucket = owner // _BUCKET
    kept[begins[bucket]] = entry
    begins[bucket] += 1


@jit
def _move_back(begins: Any) -> None:
    """From where buckets end back to where they begin."""
    for i in range(len(begins) - 1, 0, -1):
        begins[i] = begins[i - 1]
    begins[0] = 0


@jit
def _sort(offsets: Any, kept: Any, bucket: int, first: int, owner: Any, other: Any) -> None:
    """Write a bucket's lists from ``first`` on, one after another, entries of a list in their
    order.
    """
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
        kept[at[node]] = other[i]
        at[node] += 1
