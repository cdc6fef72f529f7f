"""Logs of language models: the experts that tokens use, and the cache blocks of requests.

Routing logs of mixture-of-experts models: which experts each token used, layer by layer.

    {"token": 0, "layer": 3, "experts": [17, 4]}        JSON lines, or
    0 3 17 4                                            token, layer, then experts, as numbers

Each expert of each layer is an object of ``expert_bytes``; a token's use of a layer is one launch,
which reads its experts. Tokens with the same number are one batch: their experts are read together.

KV-cache block traces (Mooncake's JSON lines): the cache blocks that each request's prefix needs.

    {"timestamp": 0, "input_length": 6755, "output_length": 500, "hash_ids": [0, 1, 2, …]}

A hash id names the keys and values of 512 tokens. A request is one launch: it reads the blocks that
were computed before, writes those that are new, and appends blocks of its own for its output.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tidegate import units
from tidegate.options import Option
from tidegate.trace.importers.importer import Allocation, Importer, RawLaunch, lines
from tidegate.trace.trace import Provenance

_STRIDE = 1 << 40  # addresses of one expert
_MOST = 1 << 16  # layers, and experts of a layer


class MoE(Importer):
    """Experts read by the tokens of a log."""

    name = "moe"
    title = "MoE routing log"
    provenance = Provenance.RECORDED
    notes = ("routing is recorded; sizes and the order of pages within an expert are assumed",)
    expert_bytes = Option(
        units.size("336MiB"),  # Mixtral 8x7B: three matrices of 4096 × 14336 in bf16
        "bytes of one expert's weights",
        parse=units.size,
        least=1,
    )

    @classmethod
    def recognises(cls, path: Path, head: bytes) -> bool:
        first = next((line for line in head.split(b"\n") if line.strip()), b"")
        if first.lstrip().startswith(b"{"):
            return b'"experts"' in first and b'"layer"' in first
        fields = first.split()
        return len(fields) >= 3 and all(f.isdigit() for f in fields) and path.suffix == ".moe"

    def launches(self, progress: Callable[[int], None]) -> Iterator[RawLaunch]:
        for (_, layer), rows in groupby(self._rows(progress), key=lambda row: row[:2]):
            experts = list(dict.fromkeys(e for row in rows for e in row[2]))
            yield self._launch(layer, experts)

    def allocations(self) -> list[Allocation]:
        used = {(layer, e) for _, layer, es in self._rows(lambda read: None) for e in es}
        return [
            Allocation(f"layer {layer} expert {e}", _address(layer, e), self.expert_bytes)
            for layer, e in sorted(used)
        ]

    def _launch(self, layer: int, experts: list[int]) -> RawLaunch:
        """Each expert's weights are read by a row of blocks, a few pages each."""
        grain = 1 << 16
        count = -(-self.expert_bytes // grain)
        offsets = np.arange(count, dtype=np.uint64) * np.uint64(grain)
        size = np.minimum(grain, self.expert_bytes - np.arange(count, dtype=np.int64) * grain)
        n = len(experts)
        return RawLaunch(
            f"layer {layer}",
            np.arange(n * count, dtype=np.int64) // 4,
            np.concatenate([np.uint64(_address(layer, e)) + offsets for e in experts]),
            np.tile(size, n),
            np.zeros(n * count, np.uint8),
            np.zeros(n * count, np.int16),
        )

    def _rows(self, progress: Callable[[int], None]) -> Iterator[tuple[int, int, list[int]]]:
        for number, line in enumerate(lines(self.path, progress), 1):
            if line.strip():
                try:
                    token, layer, experts = _row(line)
                except (ValueError, KeyError, TypeError):
                    raise self.wrong(
                        f"line {number}", "token, layer and experts expected"
                    ) from None
                if not 0 <= layer < _MOST or not all(0 <= e < _MOST for e in experts):
                    raise self.wrong(f"line {number}", f"numbers must be 0 to {_MOST - 1}")
                if experts:
                    yield token, layer, experts


def _row(line: bytes) -> tuple[int, int, list[int]]:
    if line.lstrip().startswith(b"{"):
        row = json.loads(line)
        return int(row.get("token", 0)), int(row["layer"]), [int(e) for e in row["experts"]]
    token, layer, *experts = (int(f) for f in line.replace(b",", b" ").split())
    return token, layer, experts


def _address(layer: int, expert: int) -> int:
    return ((layer << 16 | expert) + 1) * _STRIDE


_OUTPUT = 1 << 46  # addresses of blocks that requests append
_GRAIN = 1 << 16
_MOST_BLOCKS = 1 << 20  # of one request


class KvCache(Importer):
    """Blocks of keys and values, request by request."""

    name = "kv-cache"
    title = "KV-cache block trace"
    notes = ("requests and prefixes are recorded; sizes and the order of pages are assumed",)
    token_bytes = Option(
        units.size("128KiB"),  # Llama-3 8B: 32 layers × 8 heads × 128 × 2 × 2 bytes
        "bytes of keys and values of one token",
        parse=units.size,
        least=1,
    )
    block_tokens = Option(512, "tokens of one block", least=1)

    @classmethod
    def recognises(cls, path: Path, head: bytes) -> bool:
        first = next((line for line in head.split(b"\n") if line.strip()), b"")
        return first.lstrip().startswith(b"{") and b'"hash_ids"' in first

    def launches(self, progress: Callable[[int], None]) -> Iterator[RawLaunch]:
        seen: set[int] = set()
        appended = 0
        for number, line in enumerate(lines(self.path, progress), 1):
            if not line.strip():
                continue
            ids, output = self._request(line, number)
            new = [i for i in dict.fromkeys(ids) if i not in seen]
            seen.update(new)
            known = [i for i in dict.fromkeys(ids) if i not in set(new)]
            size = self.block_tokens * self.token_bytes
            written = [i * size for i in new]
            blocks = -(-output // self.block_tokens)
            written += [_OUTPUT + (appended + i) * size for i in range(blocks)]
            appended += blocks
            if known or written:
                yield self._launch(number, [i * size for i in known], written, size)

    def _launch(self, number: int, read: list[int], written: list[int], size: int) -> RawLaunch:
        address, used = _pages_of(read + written, size)
        each = len(address) // (len(read) + len(written))
        write = np.repeat(np.array([0] * len(read) + [1] * len(written), np.uint8), each)
        n = len(address)
        return RawLaunch(
            f"request {number}",
            np.arange(n, dtype=np.int64) // 4,
            address,
            used,
            write,
            np.zeros(n, np.int16),
        )

    def _request(self, line: bytes, number: int) -> tuple[list[int], int]:
        try:
            row: dict[str, Any] = json.loads(line)
            ids = [int(i) for i in row["hash_ids"]]
            output = int(row.get("output_length", 0))
        except (ValueError, KeyError, TypeError, AttributeError):
            raise self.wrong(f"line {number}", "hash_ids and lengths expected") from None
        most = _OUTPUT // (self.block_tokens * self.token_bytes)
        if len(ids) > _MOST_BLOCKS or not all(0 <= i < most for i in ids):
            raise self.wrong(f"line {number}", f"hash ids must be 0 to {most - 1}")
        if not 0 <= output <= _MOST_BLOCKS * self.block_tokens:
            raise self.wrong(f"line {number}", f"output_length {output} is out of range")
        return ids, output


def _pages_of(blocks: list[int], size: int) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    """Return the addresses and bytes of the touches that cover these blocks."""
    count = -(-size // _GRAIN)
    offsets = np.arange(count, dtype=np.int64) * _GRAIN
    used = np.minimum(_GRAIN, size - offsets)
    begin = np.array(blocks, np.int64)
    return (begin[:, None] + offsets).reshape(-1).astype(np.uint64), np.tile(used, len(blocks))
