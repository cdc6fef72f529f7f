"""Small traces for the tests of analysis."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tidegate.trace import Launch, Provenance, Trace, blocks_of, lay_out
from tidegate.trace.geometry import Geometry


class Small(Trace):
    """One object, and the given pages in launches of the given lengths; the last takes the rest."""

    provenance = Provenance.ASSUMED
    geometry = Geometry()

    def __init__(
        self, pages: Sequence[int] | NDArray[Any], cuts: Sequence[int] = (), room: int | None = None
    ):
        self.name = "small"
        self._parts = np.split(np.asarray(pages, np.int32), np.cumsum(np.asarray(cuts, int)))
        self.objects = lay_out(
            {"a": (room or max(pages, default=0) + 1) * self.geometry.page}, self.geometry
        )

    def launches(self) -> Iterator[Launch]:
        for part in self._parts:
            yield Launch("kernel", [blocks_of(3, page=part, bytes=4096)])

    def identity(self) -> dict[str, Any]:
        return {"pages": [part.tolist() for part in self._parts]}


@pytest.fixture(scope="session")
def small() -> Callable[..., Small]:
    return Small


def zipf(n: int, ids: int, alpha: float = 0.9, seed: int = 0) -> NDArray[np.int32]:
    rng = np.random.default_rng(seed)
    shares = np.cumsum(1.0 / np.arange(1, ids + 1) ** alpha)
    names = rng.permutation(ids).astype(np.int32)  # hot ids lie anywhere
    return names[np.searchsorted(shares, rng.random(n) * shares[-1])]


@pytest.fixture(scope="session")
def id_sequences() -> dict[str, NDArray[np.int32]]:
    """Four shapes of 60,000 touches: hot ids, no hot ids, a loop, and runs of the same id."""
    uniform = np.random.default_rng(1).integers(0, 1000, 60_000).astype(np.int32)
    return {
        "zipf": zipf(60_000, 2000),
        "uniform": uniform,
        "cyclic": np.arange(60_000, dtype=np.int32) % 700,
        "runs": np.repeat(uniform[:6_000], 10),
    }
