"""Sim equals live: real memory has the faults and the victims of the simulated GPU."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from live.sequences import GEOMETRY, Seen, live_policies, sequences, simulate
from live.test_failures import FAULTS
from tidegate.live import Arena
from tidegate.policies.registries import prefetch

pytestmark = [pytest.mark.live, pytest.mark.oracle]

OBJECTS = [64, 32]  # pages; whole regions
FRAMES = 7
Touch = Callable[..., Seen]


@pytest.fixture
def touch_live(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Touch:
    """Touch a sequence of pages and return what the arena did."""
    victims = tmp_path / "victims"
    victims.touch()
    paths = os.pathsep.join([str(FAULTS), os.environ.get("PYTHONPATH", "")])
    monkeypatch.setenv("PYTHONPATH", paths)
    monkeypatch.setenv("TIDEGATE_VICTIMS", str(victims))

    def touch(sequence: list[int], settle: bool = False, **policies: str) -> Seen:
        near = FRAMES * GEOMETRY.region
        options: Any = {"geometry": GEOMETRY, "span": "64MiB", "observe_share": 1, **policies}
        with Arena(near, **options) as arena:
            arrays = [arena.empty(pages * GEOMETRY.page, "u1") for pages in OBJECTS]
            base = arrays[0].ctypes.data
            byte = ctypes.c_uint8.from_address
            for page in sequence:
                byte(base + page * GEOMETRY.page).value  # noqa: B018 - a touch
                if settle:
                    arena.settle()
            s = arena.stats()
        evicted = np.fromfile(victims, "<i8").tolist()
        return Seen(s["faults"], s["evictions"], s["notifications"], s["pages_in"], evicted)

    return touch


def benign(sequence: list[int]) -> list[int]:
    """Return the sequence without a sampled page at its very end.

    A simulated run ends before the driver is notified of it.
    """
    return [*sequence, sequence[-1]]


@pytest.mark.parametrize("spec", [pytest.param("none", marks=pytest.mark.slow), "tree"])
@pytest.mark.parametrize("policy", live_policies())
def test_real_memory_equals_simulated_memory(touch_live: Touch, policy: str, spec: str) -> None:
    sequence = benign([page for part in sequences(sum(OBJECTS), 400).values() for page in part])
    live = touch_live(sequence, eviction=policy, prefetch=spec)
    assert live == simulate(sequence, OBJECTS, FRAMES, eviction_spec=policy, prefetch_spec=spec)
    assert live.evictions > 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("policy", "spec"), [("tournament", "fdp+rgp"), *(("lrm", spec) for spec in prefetch.names())]
)
def test_prefetch_ahead_is_equal_too(touch_live: Touch, policy: str, spec: str) -> None:
    sequence = benign(sequences(sum(OBJECTS), 300)["cyclic"])
    live = touch_live(sequence, settle=True, eviction=policy, prefetch=spec)
    assert live == simulate(sequence, OBJECTS, FRAMES, eviction_spec=policy, prefetch_spec=spec)
