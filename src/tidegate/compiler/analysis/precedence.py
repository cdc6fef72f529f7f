"""Allocations that come after a launch cannot be what it uses, although the pointer may hold them
later: a host's check that resizes the same vector again.
"""

from __future__ import annotations

from dataclasses import replace

from tidegate.compiler.analysis.flow import Flow
from tidegate.compiler.analysis.launches import DecodedLaunch, MapEntry
from tidegate.compiler.analysis.points_to import Origin
from tidegate.compiler.ir.allocators import ALLOCATORS
from tidegate.compiler.ir.loops import reachable


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
