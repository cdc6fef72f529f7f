"""Sim equals live: on the same sequence of pages, real memory has the faults and the victims of the
simulated GPU.
"""

from __future__ import annotations

import ctypes

import pytest

from live.sequences import GEOMETRY, Seen, live_policies, sequences, simulate
from tidegate.live import Arena
from tidegate.policies.registries import prefetch

pytestmark = [pytest.mark.live, pytest.mark.oracle]

OBJECTS = [64, 32]  # pages; whole regions
FRAMES = 7


def touch_live(sequence: list[int], settle: bool = False, **asked: str) -> Seen:
    near = FRAMES * GEOMETRY.region
    with Arena(near, geometry=GEOMETRY, span="64MiB", _keep_victims=True, **asked) as arena:
        arrays = [arena.empty(pages * GEOMETRY.page, "u1") for pages in OBJECTS]
        base = arrays[0].ctypes.data
        byte = ctypes.c_uint8.from_address
        for page in sequence:
            byte(base + page * GEOMETRY.page).value  # noqa: B018 - a touch is all that is wanted
            if settle:
                arena.settle()
        victims = arena.victims()
        s = arena.stats()
    return Seen(s["faults"], s["evictions"], s["notifications"], s["pages_in"], victims)


def benign(sequence: list[int]) -> list[int]:
    """The sequence without a sampled page at its very end: a simulated run ends before the driver
    hears of it.
    """
    return [*sequence, sequence[-1]]


@pytest.mark.parametrize("spec", ["none", "tree"])
@pytest.mark.parametrize("policy", live_policies())
def test_real_memory_equals_simulated_memory(policy: str, spec: str) -> None:
    sequence = benign([page for part in sequences(sum(OBJECTS), 400).values() for page in part])
    live = touch_live(sequence, eviction=policy, prefetch=spec)
    assert live == simulate(sequence, OBJECTS, FRAMES, eviction_spec=policy, prefetch_spec=spec)
    assert live.evictions > 0


@pytest.mark.parametrize(
    ("policy", "spec"), [("tournament", "fdp+rgp"), *(("lrm", spec) for spec in prefetch.names())]
)
def test_prefetch_ahead_is_equal_too(policy: str, spec: str) -> None:
    sequence = benign(sequences(sum(OBJECTS), 300)["cyclic"])
    live = touch_live(sequence, settle=True, eviction=policy, prefetch=spec)
    assert live == simulate(sequence, OBJECTS, FRAMES, eviction_spec=policy, prefetch_spec=spec)
