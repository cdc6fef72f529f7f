"""KV-cache block traces (Mooncake's JSON lines): the cache blocks that each request's prefix needs.

    {"timestamp": 0, "input_length": 6755, "output_length": 500, "hash_ids": [0, 1, 2, …]}

A hash id names the keys and values of 512 tokens. A request is one launch: it reads the blocks that
were computed before, writes those that are new, and appends blocks of its own for its output.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tidegate import units
from tidegate.options import Option
from tidegate.trace.importers.importer import Importer, RawLaunch, lines

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


FORMAT = KvCache
