"""Sequences of pages, and a simulated machine that serves them as live memory does.

A live thread waits for its fault and for nothing else. The simulated machine does the same if every
touch takes longer than a round of the simulation, and the driver and its link take no time.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tidegate.live.pager.engine import Engine
from tidegate.live.pager.no_mover import NoMover
from tidegate.machine.machine import Driver, Link, Machine, Near
from tidegate.policies.interface.visibility import Everything
from tidegate.policies.prefetch.together import make_prefetch
from tidegate.policies.registries import eviction, placement
from tidegate.simulation.gpu.simulation import Simulation
from tidegate.trace.geometry import Geometry
from tidegate.trace.trace import Object
from traces import one_block, reads

GEOMETRY = Geometry(4096, 8 * 4096)
SLOW_TOUCH = 20_000.0  # ns; more than a round


def live_policies() -> list[str]:
    """Return the registered eviction policies that can run on live memory."""
    return [
        name for name in eviction.names() if not isinstance(eviction.find(name).sees, Everything)
    ]


def sequences(pages: int, length: int, seed: int = 1) -> dict[str, list[int]]:
    """Return a cyclic scan, random pages, and a hot spot with excursions."""
    draw = np.random.default_rng(seed)
    hot = np.where(
        draw.random(length) < 0.7,
        draw.integers(0, pages // 4, length),
        draw.integers(0, pages, length),
    )
    return {
        "cyclic": [i % pages for i in range(length)],
        "uniform": draw.integers(0, pages, length).tolist(),
        "hot": hot.tolist(),
    }


@dataclass
class Seen:
    """Counts and victims that must be equal."""

    faults: int = 0
    evictions: int = 0
    notifications: int = 0
    pages_in: int = 0
    victims: list[int] = field(default_factory=list)


def simulate(
    sequence: list[int],
    objects: list[int],
    frames: int,
    *,
    eviction_spec: str,
    prefetch_spec: str = "none",
    placement_spec: str = "um",
    observed: int | None = None,
    geometry: Geometry = GEOMETRY,
) -> Seen:
    near = Near(
        sms=1,
        blocks_per_sm=1,
        bytes=1 << 30,
        bandwidth=math.inf,
        flops=math.inf,
        latency=SLOW_TOUCH,
    )
    link = Link(
        math.inf, math.inf, math.inf, run_overhead=0.0, remote_share=1.0, remote_latency=SLOW_TOUCH
    )
    driver = Driver(batch_faults=256, batch_overhead=0.0, region_overhead=0.0, unmap_per_kib=0.0)
    machine = Machine(
        "instant", "a driver that takes no time", geometry, ("everything",), near, link, driver
    )
    policy = eviction.make(eviction_spec)
    victims = spy_on_evictions(policy)
    simulation = Simulation(
        one_block(reads(sequence), objects, geometry),
        machine,
        frames,
        policy,
        make_prefetch(prefetch_spec),
        placement.make(placement_spec),
        observed=observed,
        watched=100,
        compiled=False,
    )
    simulation.run()
    b = simulation.books[0]
    return Seen(
        int(b["faults"]), int(b["evictions"]), int(b["notifications"]), int(b["pages_in"]), victims
    )


def spy_on_evictions(policy: Any) -> list[int]:
    """Return a list to which every evicted region is appended."""
    victims: list[int] = []
    original = policy.on_eviction

    class Spied(type(policy)):  # type: ignore[misc]
        name = policy.name

        def on_eviction(self, region: int) -> None:
            victims.append(region)
            super().on_eviction(region)

    assert original
    policy.__class__ = Spied
    return victims


def pages_read(
    events: list[int],
    objects: tuple[Object, ...],
    geometry: Geometry,
    frames: int,
    eviction_spec: str,
    prefetch_spec: str,
) -> int:
    """Return the pages that these policies bring near for this sequence of uses."""
    policies = eviction.make(eviction_spec), make_prefetch(prefetch_spec), placement.make("um")
    engine = Engine(geometry, frames, policies, NoMover())
    engine.set_objects(objects)
    engine.start()
    for page in events:
        if engine.region[page // engine.ppr].sampled >> page % engine.ppr & 1:
            engine.serve([], [page])
        else:
            engine.serve([page])
        while engine.queue:
            engine.prefetch_turn()
    return engine.count["pages_in"]
