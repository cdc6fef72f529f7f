"""Allocations of which a run makes only one: ``p = large ? malloc(m) : malloc(n)``.

They are one object. Taken as two, each would need room, and each use would be half a use.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations

from tidegate.compiler.analysis.flow import Flow
from tidegate.compiler.analysis.launches import DecodedLaunch
from tidegate.compiler.analysis.points_to import Origin
from tidegate.compiler.ir.allocators import ALLOCATORS
from tidegate.compiler.ir.loops import reachable


def alternatives(found: Sequence[DecodedLaunch], flow: Flow) -> dict[Origin, Origin]:
    """Return, for allocations that one pointer may hold and of which no run makes two, the first of
    them, which stands for all.
    """
    made = {i.ref.name: n for n, i in enumerate(flow.body) if i.callee in ALLOCATORS}
    blocks = {i.ref.name: i.block for i in flow.body if i.callee in ALLOCATORS}
    onward: dict[str, set[str]] = {}

    def follows(later: Origin, earlier: Origin) -> bool:
        block = blocks[earlier.name]
        if block not in onward:
            onward[block] = reachable(block, flow.successors)
        return blocks[later.name] == block or blocks[later.name] in onward[block]

    held = {entry.origins for launch in found for entry in launch.entries}
    stands: dict[Origin, Origin] = {}
    for origins in held:
        heap = sorted((o for o in origins if o.name in made), key=lambda o: made[o.name])
        if len(heap) < 2 or len(heap) < len(origins):
            continue
        if not any(follows(a, b) or follows(b, a) for a, b in combinations(heap, 2)):
            stands |= dict.fromkeys(heap, heap[0])
    return stands


def with_alternatives(launch: DecodedLaunch, stands: dict[Origin, Origin]) -> DecodedLaunch:
    """Return a launch whose entries name the allocations that stand for others."""
    entries = (
        replace(entry, origins=frozenset(stands.get(o, o) for o in entry.origins))
        for entry in launch.entries
    )
    return replace(launch, entries=tuple(entries))
