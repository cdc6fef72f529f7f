"""Placement of whole objects, launch by launch: the common part of LRU by objects, RLM, GLM and RDM
(SC'19, 3.1 to 3.4).

on_launch ──▶ meet      the policy notes how this launch uses its objects
          ──▶ decide    for each object it uses, worthiest first: near, or partly near, or far
          ──▶ enforce   evict what lost its room · advise "far" for the rest · prefetch if dense
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

from tidegate.errors import PolicyError
from tidegate.options import Option
from tidegate.policies.interface.memory_view import MemoryView
from tidegate.policies.interface.policy import PlacementPolicy
from tidegate.trace.plan import Plan, PlannedUse
from tidegate.trace.trace import Object


class Planned(PlacementPolicy):
    """Base of the policies that need a plan: from a compiler, or else from the trace itself."""

    needs_plan = True
    plan: Plan
    objects: dict[str, Object]

    def start(self) -> None:
        assert self.memory.plan is not None, "a mechanism without plans does not take such policies"
        self.plan, self.objects = self.memory.plan, {o.name: o for o in self.memory.objects}
        unknown = {
            u.object for launch in self.plan.launches for u in launch.uses
        } - self.objects.keys()
        if unknown:
            raise PolicyError(
                f"{self.name}: the plan places {', '.join(sorted(unknown))}, "
                "which the program does not allocate"
            )

    def uses(self) -> tuple[PlannedUse, ...]:
        """Return what the launch that is about to begin uses."""
        if self.memory.place not in self.plan.by_name:
            known = ", ".join(self.plan.by_name)
            raise PolicyError(
                f"{self.name}: the plan does not know launch '{self.memory.place}'; "
                f"it knows {known}"
            )
        return self.plan.by_name[self.memory.place].uses


def _known(objects: dict[str, Object]) -> str:
    return f"the program has {', '.join(objects)}"


def regions_of(owner: Object, memory: MemoryView) -> range:
    """Return the regions of an object; objects begin at region boundaries."""
    first = owner.first_page // memory.geometry.pages_per_region
    return range(first, first + memory.geometry.regions(owner.bytes))


class ObjectPlacement(Planned):
    """Base of policies that give each object a worth.

    The worthiest objects are near, and only worthier objects take their room.
    """

    transfer = Option(
        "density",
        "how objects come near: by density, always explicit (prefetched), or implicit (by faults)",
        choices=("density", "explicit", "implicit"),
    )
    threshold = Option(0.5, "access density from which an object is prefetched (3.1)", least=0.0)
    left = Option(
        "", "an object that is left to faults whatever its density (5.2 tries it with bfs's edges)"
    )
    partial: Any = "no"  # RDM's option

    def start(self) -> None:
        super().start()
        if self.left and self.left not in self.objects:
            raise PolicyError(
                f"{self.name}: there is no object {self.left} to be left to faults; "
                f"{_known(self.objects)}"
            )
        self.size = {name: len(regions_of(o, self.memory)) for name, o in self.objects.items()}
        # regions, from the object's first, that have room near
        self.held = dict.fromkeys(self.objects, 0)
        self.free = self.memory.frames
        self.before: dict[str, int] = {}  # what objects held when the launch began, if it changed
        self.number = {name: n for n, name in enumerate(self.objects)}
        self.clock = 0  # the target region counter, TRC (3.4)

    def on_launch(self, launch: int) -> None:
        self.clock += 1
        uses = self.uses()
        self.before.clear()
        self.meet(uses)
        self._decide(uses)
        self._enforce(uses)

    @abstractmethod
    def meet(self, uses: Sequence[PlannedUse]) -> None:
        """Note the uses of the launch that is about to begin."""

    @abstractmethod
    def worth(self, name: str) -> tuple[float, ...]:
        """Return how much an object deserves its place near; only lower worth is replaced."""

    # The steps of the paper's algorithms

    def _decide(self, uses: Sequence[PlannedUse]) -> None:
        unplaced = []
        for use in sorted(uses, key=lambda u: self.worth(u.object), reverse=True):
            need = self.size[use.object] - self.held[use.object]
            for leaving in self._candidates(use.object, need - self.free):
                self._hold(leaving, 0)
            if need <= self.free:
                self._hold(use.object, self.held[use.object] + need)
            else:
                unplaced.append(use.object)
                if self.partial == "at once" and len(unplaced) == 1:
                    self._hold(use.object, self.held[use.object] + self.free)
        if self.partial == "rest" and unplaced:
            self._hold(unplaced[0], self.held[unplaced[0]] + self.free)

    def _hold(self, name: str, regions: int) -> None:
        self.before.setdefault(name, self.held[name])
        self.free += self.held[name] - regions
        self.held[name] = regions

    def _candidates(self, name: str, lacking: int) -> list[str]:
        """Return objects that make room for ``lacking`` more regions, the least worthy first; none
        if all of them are not enough.
        """
        if lacking <= 0:
            return []
        own, found = self.worth(name), list[str]()
        for other in sorted((o for o, held in self.held.items() if held), key=self.worth):
            if lacking <= 0:
                break
            if not self.is_protected(other, own):
                found.append(other)
                lacking -= self.held[other]
        return found if lacking <= 0 else []

    def is_protected(self, other: str, own: tuple[float, ...]) -> bool:
        """Return whether a near object keeps its room from one that is worth ``own``."""
        return self.worth(other) >= own

    def _enforce(self, uses: Sequence[PlannedUse]) -> None:
        for name in sorted(self.before, key=self.number.__getitem__):
            held = self.held[name]
            if held < self.before[name]:
                for region in regions_of(self.objects[name], self.memory)[held:]:
                    if self.memory.is_resident(region):
                        self.memory.evict(region)
        for use in uses:
            owner = self.objects[use.object]
            near = min(owner.pages, self.held[use.object] * self.memory.geometry.pages_per_region)
            if near:
                self.memory.advise(owner.first_page, near, None)
                if self.explicit(use):
                    self.memory.prefetch(owner.first_page, near)
            if near < owner.pages:
                self.memory.advise(owner.first_page + near, owner.pages - near, "far")

    def explicit(self, use: PlannedUse) -> bool:
        """Return whether this object is prefetched rather than left to faults.

        One of unknown density is prefetched.
        """
        if use.object == self.left:
            return False
        if self.transfer == "density":
            return use.density is None or use.density >= self.threshold
        return self.transfer == "explicit"

    def finished(self) -> None:
        assert 0 <= self.free == self.memory.frames - sum(self.held.values())
        assert all(0 <= held <= self.size[name] for name, held in self.held.items())

    def report(self) -> dict[str, Any]:
        """Return which objects had room near at the end, in regions."""
        return {
            "near": {name: held for name, held in self.held.items() if held},
            "target regions": self.clock,
        }
