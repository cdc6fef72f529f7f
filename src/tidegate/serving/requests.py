"""Requests to a language model: the blocks of each prompt, by number, in order.

A block is the keys and values of some tokens. Two prompts that begin alike have the same first
blocks (Mooncake's JSON lines: ``hash_ids``).
"""

from __future__ import annotations

import itertools
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tidegate.errors import TidegateError
from tidegate.trace.importers.importer import lines

MOST_BLOCKS = 1 << 27  # of all requests: half a gigabyte of numbers


@dataclass(frozen=True)
class Requests:
    """All requests of a trace: ``blocks[starts[i]:starts[i + 1]]`` are those of request i."""

    name: str
    blocks: NDArray[np.int32]
    starts: NDArray[np.int64]
    tokens: NDArray[np.int64]  # of each prompt; its last block need not be full
    times: NDArray[np.float64]  # seconds since the first request

    def __len__(self) -> int:
        return len(self.starts) - 1

    @property
    def distinct(self) -> int:
        """How many different blocks there are; their numbers are 0 up to it."""
        return int(self.blocks.max(initial=-1)) + 1

    @property
    def seconds(self) -> float:
        """The time between the first and the last request."""
        return float(self.times[-1] - self.times[0]) if len(self.times) else 0.0


def read_requests(path: Path) -> Requests:
    """Read Mooncake's JSON lines; blocks get numbers in the order of their first use."""
    numbers: dict[int, int] = {}
    found: list[NDArray[np.int32]] = []
    tokens: list[int] = []
    times: list[float] = []
    total = 0
    for number, line in enumerate(lines(path, lambda read: None), 1):
        if not line.strip():
            continue
        ids, length, when = _request(path, line, number)
        total += len(ids)
        if total > MOST_BLOCKS:
            raise TidegateError(f"{path} has more than {MOST_BLOCKS:,} uses of blocks; split it")
        known = (numbers.setdefault(i, len(numbers)) for i in ids)
        found.append(np.fromiter(known, np.int32, len(ids)))
        tokens.append(length)
        times.append(when / 1000)
    if not total:
        raise TidegateError(f"{path} has no requests with hash_ids; nothing can be served")
    starts = np.fromiter(itertools.accumulate(map(len, found), initial=0), np.int64)
    return Requests(
        path.name,
        np.concatenate(found),
        starts,
        np.array(tokens, np.int64),
        np.array(times) - min(times),
    )


def _request(path: Path, line: bytes, number: int) -> tuple[list[int], int, float]:
    try:
        row: dict[str, Any] = json.loads(line)
        ids = [int(i) for i in row["hash_ids"]]
        length, when = int(row["input_length"]), float(row.get("timestamp", 0))
        if length < 0 or not 0 <= when < 1e15:
            raise ValueError
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError):
        raise TidegateError(
            f"{path}, line {number}: expected a request with hash_ids, input_length and timestamp "
            "(Mooncake's JSON lines)"
        ) from None
    return ids, length, when
