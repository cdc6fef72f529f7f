"""Which of the allocations that a pointer may hold a launch can use.

An allocation that comes after a launch cannot be what the launch uses, although the pointer may
hold it later: a host's check that resizes the same vector again. Allocations of which a run makes
only one (``p = large ? malloc(m) : malloc(n)``) are one object: taken as two, each would need room,
and each use would be half a use.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from itertools import combinations

from tidegate.compiler.analysis.flow import Flow
from tidegate.compiler.analysis.launches import DecodedLaunch, MapEntry
from tidegate.compiler.analysis.points_to import Origin, PointsTo
from tidegate.compiler.ir.calls import ALLOCATORS, FREES
from tidegate.compiler.ir.loops import reachable
from tidegate.compiler.ir.module import Instruction


class Precedence:
    """Which allocations a run may have made before a launch."""

    def __init__(self, flow: Flow):
        self._made = {i.ref.name: i for i in flow.body if i.callee in ALLOCATORS}
        self._successors = flow.successors
        self._onward: dict[str, set[str]] = {}  # the blocks that may follow a block
        self._position = {i.key: n for n, i in enumerate(flow.body)}

    def without_later(self, launch: DecodedLaunch) -> DecodedLaunch:
        """Return a launch without the allocations that come after it. An entry that would lose all
        it holds is left as it is.
        """
        entries = tuple(self._entry(entry, launch) for entry in launch.entries)
        return replace(launch, entries=entries)

    def _entry(self, entry: MapEntry, launch: DecodedLaunch) -> MapEntry:
        if len(entry.origins) < 2:
            return entry
        earlier = frozenset(o for o in entry.origins if self._may_precede(o, launch))
        return replace(entry, origins=earlier or entry.origins)

    def _may_precede(self, origin: Origin, launch: DecodedLaunch) -> bool:
        made = self._made.get(origin.name) if origin.kind == "heap" else None
        if made is None:
            return True
        block, call = made.block, launch.call
        if block == call.block and self._position[made.key] < self._position[call.key]:
            return True
        if block not in self._onward:
            self._onward[block] = reachable(block, self._successors)
        return call.block in self._onward[block]


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


def one_at_a_time(
    found: Sequence[DecodedLaunch],
    flow: Flow,
    points: PointsTo,
    kind: Callable[[Instruction], Hashable],
) -> dict[Origin, Origin]:
    """Return, for allocations of one kind of which at most one lives at a time, the first of them,
    which stands for all: a run makes one of them only, or frees one before it makes the next.

    Such are the buffers of a function that is called from several places. ``kind``: what those have
    in common that may stand for each other; None: nothing.
    """
    made = {i.ref.name: i for i in flow.body if i.callee in ALLOCATORS}
    position = {i.key: n for n, i in enumerate(flow.body)}
    freed: dict[Origin, list[Instruction]] = {}
    for i in flow.body:
        if i.callee in FREES:
            for origin, _ in points.targets(i.arguments[0]):
                freed.setdefault(origin, []).append(i)

    def leads(a: Instruction, b: Instruction) -> bool:
        if a.block == b.block and position[a.key] < position[b.key]:
            return True
        return b.block in reachable(a.block, flow.successors)

    def apart(a: Origin, b: Origin) -> bool:
        one, other = made[a.name], made[b.name]
        if leads(other, one):
            return False
        between = (free for free in freed.get(a, ()) if leads(one, free) and leads(free, other))
        return not leads(one, other) or next(between, None) is not None

    used = {o for x in found for e in x.entries for o in e.origins if o.name in made}
    groups: dict[Hashable, list[Origin]] = {}
    for origin in sorted(used, key=lambda o: position[made[o.name].key]):
        if (own := kind(made[origin.name])) is not None:
            groups.setdefault(own, []).append(origin)
    stands: dict[Origin, Origin] = {}
    for first, *others in groups.values():
        kept = [first]
        for origin in others:
            if all(apart(earlier, origin) for earlier in kept):
                kept.append(origin)
        if len(kept) > 1:
            stands |= dict.fromkeys(kept, first)
    return stands


def with_alternatives(launch: DecodedLaunch, stands: dict[Origin, Origin]) -> DecodedLaunch:
    """Return a launch whose entries name the allocations that stand for others."""
    entries = (
        replace(entry, origins=frozenset(stands.get(o, o) for o in entry.origins))
        for entry in launch.entries
    )
    return replace(launch, entries=tuple(entries))
