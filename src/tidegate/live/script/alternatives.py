"""What another eviction policy would have saved a script, from the faults of its run.

Hits on resident pages are not seen, so what another policy would have missed there is unknown:
the figure is the best case. It is exact where the run missed all it used, such as a loop larger
than near memory under ``lru``. The engine decides as in the pager, without memory; nothing is
compiled.
"""

from __future__ import annotations

from typing import NamedTuple

from tidegate.live.arena.arena import Arena
from tidegate.live.pager.engine import Engine
from tidegate.live.pager.no_mover import NoMover
from tidegate.live.script.recording import RecordedTrace
from tidegate.policies.prefetch.together import make_prefetch
from tidegate.policies.registries import eviction, placement
from tidegate.trace.geometry import Geometry
from tidegate.trace.trace import Object

ALTERNATIVES = ("loop", "mru", "lrm", "lru")
MOST_EVENTS = 8000  # the latest of the recorded ones; a second for all policies
WORTH_SAYING = 1.2  # times fewer bytes


class Alternative(NamedTuple):
    """Another eviction policy, and how many times fewer bytes it would have read at best."""

    eviction: str
    times_fewer: float


def best_alternative(arena: Arena, used: str, prefetch: str) -> Alternative | None:
    """Return the policy that would have read least, if it is worth saying."""
    trace = RecordedTrace(arena)
    frames = arena.near // trace.geometry.region
    events = trace.events[-MOST_EVENTS:].tolist()
    read = {
        name: pages_read(events, trace.objects, trace.geometry, frames, name, prefetch)
        for name in dict.fromkeys((used, *ALTERNATIVES))
    }
    best = min(read, key=read.__getitem__)
    times_fewer = read[used] / max(1, read[best])
    return Alternative(best, times_fewer) if times_fewer >= WORTH_SAYING else None


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
