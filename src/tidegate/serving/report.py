"""What a cache of keys and values is worth: hits, bytes over links, time to first token.

The time of a request is that of bringing the blocks of its found prefix near, and of computing the
rest of its prompt; waiting for other requests, and attention over long prompts, are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tidegate.analysis.belady import belady_misses
from tidegate.analysis.flat import lru_misses
from tidegate.errors import TidegateError
from tidegate.machine.machine import Machine
from tidegate.serving.cache import Found, serve
from tidegate.serving.requests import Requests

TIERS = ("near", "middle", "ssd")
MORE = 0.1  # a tier is made larger by this share, to see what that is worth
POINTS = 8  # of the curve over capacity
_GIB = 1 << 30


@dataclass(frozen=True)
class Model:
    """The model that is served. The defaults are Llama-3 8B's: 32 layers × 8 heads × 128 × 2 × 2
    bytes a token.

    ``efficiency``: the share of the GPU's BF16 peak that a prefill reaches, which is assumed.
    """

    token_bytes: int = 128 << 10
    block_tokens: int = 512
    parameters: float = 8.03e9
    efficiency: float = 0.5

    @property
    def block_bytes(self) -> int:
        return self.token_bytes * self.block_tokens


@dataclass(frozen=True)
class Server:
    """A machine, a model, and the bytes that its tiers give to the cache."""

    machine: Machine
    model: Model
    room: tuple[int, int, int]  # bytes of each tier; 0: none

    @property
    def blocks(self) -> tuple[int, ...]:
        return tuple(room // self.model.block_bytes for room in self.room)

    def seconds(self, requests: Requests, found: Found) -> NDArray[np.float64]:
        """Return each request's time to first token."""
        size, machine = self.model.block_bytes, self.machine
        ns = np.zeros(len(requests))
        for tier, rate in ((1, machine.link.inward), (2, self._from_ssd())):
            ns += self._prefix_blocks(requests, found, tier) * size / rate
        left = requests.tokens - found.prefix * self.model.block_tokens
        work = 2 * self.model.parameters * np.maximum(left, 1)  # the last token is always computed
        ns += work / (machine.rate("bf16") * self.model.efficiency)
        return ns / 1e9

    def _from_ssd(self) -> float:
        if self.machine.storage is None:
            return self.machine.link.inward
        return min(self.machine.storage.read, self.machine.link.inward)

    @staticmethod
    def _prefix_blocks(requests: Requests, found: Found, tier: int) -> NDArray[np.int64]:
        """Return how many blocks of each found prefix are in a tier."""
        counts = np.append(0, np.cumsum(found.tiers == tier))
        begin = requests.starts[:-1]
        return np.asarray(counts[begin + found.prefix] - counts[begin])


@dataclass(frozen=True)
class Served:
    """A policy's row: hits by tier as shares of all uses of blocks, and times in seconds."""

    policy: str
    hits: tuple[float, ...]
    prefix: float  # share of the prompts' tokens that need not be computed
    bytes_in: tuple[int, ...]  # brought near from each tier
    bytes_out: tuple[int, ...]  # that left each tier for the next
    mean: float
    median: float
    p99: float

    @property
    def all_hits(self) -> float:
        return sum(self.hits)


@dataclass(frozen=True)
class Worth:
    """What a GiB more of a tier is worth to a policy."""

    tier: str
    seconds: float  # of the mean time to first token, saved by a GiB
    hits: float  # share of uses, gained by a GiB


@dataclass(frozen=True)
class Report:
    """All of it. ``bound``: hits with all tiers as one and the future known; ``curve``: capacity in
    blocks, hits of LRU and that bound.
    """

    requests: Requests
    server: Server
    rows: list[Served]
    bound: float
    worth: list[Worth]
    curve: list[tuple[int, float, float]]

    @property
    def best(self) -> Served:
        return min(self.rows, key=lambda row: row.mean)


def make_report(
    requests: Requests,
    server: Server,
    policies: Sequence[str],
    progress: Callable[[], None] = lambda: None,
) -> Report:
    """Serve the requests under each policy, and the best one with a little more of each tier."""
    if server.room[2] and server.machine.storage is None:
        raise TidegateError(
            f"machine {server.machine.name} has no SSD; leave out --ssd, or take a100-pcie3-ssd"
        )
    rows = []
    for policy in policies:
        rows.append(row_of(requests, server, policy))
        progress()
    best = min(rows, key=lambda row: row.mean)
    worth = []
    for tier, room in enumerate(server.room):
        if room:
            worth.append(_worth(requests, server, best, tier))
            progress()
    total = sum(server.blocks)
    bound = 1 - belady_misses(requests.blocks, total) / len(requests.blocks)
    return Report(requests, server, rows, bound, worth, list(curve_of(requests)))


def row_of(requests: Requests, server: Server, policy: str) -> Served:
    """Serve the requests under one policy."""
    found = serve(requests, policy, server.blocks)
    seconds = server.seconds(requests, found)
    uses, size = len(requests.blocks), server.model.block_bytes
    spared = np.minimum(found.prefix * server.model.block_tokens, requests.tokens).sum()
    return Served(
        policy,
        tuple(found.hits(tier) / uses for tier in range(len(server.room))),
        float(spared / max(1, requests.tokens.sum())),
        tuple(found.hits(tier) * size if tier else 0 for tier in range(len(server.room))),
        tuple(n * size for n in found.demoted),
        float(seconds.mean()),
        float(np.median(seconds)),
        float(np.quantile(seconds, 0.99)),
    )


def _worth(requests: Requests, server: Server, now: Served, tier: int) -> Worth:
    """Return what more of a tier brings, by GiB."""
    block = server.model.block_bytes
    more = max(block, int(server.room[tier] * MORE) // block * block)
    room = list(server.room)
    room[tier] += more
    larger = row_of(requests, replace(server, room=tuple(room)), now.policy)  # type: ignore[arg-type]
    gib = more / _GIB
    return Worth(
        TIERS[tier], (now.mean - larger.mean) / gib, (larger.all_hits - now.all_hits) / gib
    )


def curve_of(requests: Requests) -> Any:
    """Yield capacities up to all blocks, the hits of LRU and of Belady."""
    uses = len(requests.blocks)
    sizes = np.unique(
        np.geomspace(min(64, requests.distinct), requests.distinct, POINTS).astype(int)
    )
    for blocks in sizes.tolist():
        lru = 1 - lru_misses(requests.blocks, blocks) / uses
        yield blocks, lru, 1 - belady_misses(requests.blocks, blocks) / uses
