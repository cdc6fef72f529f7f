"""The example programs of examples/openmp as workloads, with saved models and plans (SC'19)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path

from tidegate.compiler.model import ProgramModel
from tidegate.compiler.model_file import load
from tidegate.compiler.plan.schedule import make_plan
from tidegate.options import Option
from tidegate.trace.plan import Plan
from tidegate.trace.trace import Copy, Launch
from tidegate.workloads.program import Derived, Space


@cache
def model_named(name: str) -> ProgramModel:
    """Return the analysis of an example program, as `tidegate compile --out` wrote it."""
    return load(Path(__file__).parent / "models" / f"{name}.json")


class Offloaded(Derived):
    """Base of the example programs: ``program`` names the example."""

    program = ""
    distances = Option(
        "launches",
        "reuse distance: expected launches, or nearest kernel region (4.3)",
        choices=("launches", "regions"),
    )
    host = Option(
        True, "the host's accesses between launches, which bring what they use back from the GPU"
    )
    first_touch = Option(
        True, "what only the GPU writes is born there; otherwise its first use is a transfer"
    )

    def after_host(self, space: Space, launch: Launch, name: str) -> Launch:
        """Return a launch before which the host uses an object.

        Its pages that are near fault on the CPU, which moves them there: here as a copy that the
        launch waits for. What is far stays where it is.
        """
        if not self.host:
            return launch
        return replace(
            launch, copies=(Copy(space[name].first_page, space[name].pages, "far", True),)
        )

    def variables(self) -> Mapping[str, int]:
        """Return the values of the program's variables at this size."""
        raise NotImplementedError

    def model(self) -> ProgramModel:
        return model_named(self.program)

    def plan(self) -> Plan:
        return make_plan(self.model(), self.variables(), self.distances == "regions")

    def sizes(self) -> dict[str, int]:
        given = self.variables()
        return {o.name: o.bytes.at(given) for o in self.model().placeable() if o.bytes is not None}
