"""Copies that the program makes itself."""

from __future__ import annotations

from tidegate.errors import PolicyError
from tidegate.options import Option
from tidegate.policies.placement.objects import Planned, regions_of
from tidegate.policies.registries import placement


@placement("explicit")
class Explicit(Planned):
    """Copy whole objects in and out, as map clauses say (SC'19, 2.3 and 5.2: Baseline); all of them
    must fit.

    ``copies=program``: a ``target data`` holds the program, and each object is copied once.
    ``copies=launch``: only the map clauses of kernel regions count, so a launch copies in again
    what it maps ``to``, and what was written there before is copied out first. With
    ``copies_results`` what was written is copied out at the end, too. Objects that were only read
    are not. A copy takes the link's time and nothing else: memory that is not managed is not
    unmapped.
    """

    managed = False
    copies = Option("program", "when objects are copied", choices=("program", "launch"))
    copies_results = Option(True, "whether what was written is copied out at the end")

    def start(self) -> None:
        super().start()
        used = {use.object for launch in self.plan.launches for use in launch.uses}
        regions = sum(len(regions_of(self.objects[name], self.memory)) for name in used)
        if regions > self.memory.frames:
            raise PolicyError(
                f"explicit copies {regions} regions and near memory holds {self.memory.frames}; "
                "take a policy that need not hold everything, such as rdm, or more near memory"
            )
        self.again: set[int] = set()  # regions that are to leave and come back
        self.left = -1  # of those, the one that left last

    def on_launch(self, launch: int) -> None:
        for use in self.uses():
            owner = self.objects[use.object]
            self.memory.prefetch(owner.first_page, owner.pages)
            if self.copies == "launch" and use.copied_in:
                for region in filter(self.memory.is_resident, regions_of(owner, self.memory)):
                    self.again.add(region)
                    self.memory.evict(region)

    # A region can be requested again only after it has left: each is when the next one leaves, the
    # last one at the first return.

    def on_eviction(self, region: int) -> None:
        self._ask_back()
        if region in self.again:
            self.again.remove(region)
            self.left = region

    def on_prefetch(self, region: int) -> None:
        self._ask_back()

    def on_fault(self, region: int) -> None:
        self._ask_back()

    def _ask_back(self) -> None:
        if self.left >= 0:
            pages = self.memory.geometry.pages_per_region
            self.memory.prefetch(self.left * pages, pages)
            self.left = -1

    def finished(self) -> None:
        assert not self.again
