"""The example programs of examples/openmp as workloads, with saved models and plans (SC'19)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path

from tidegate.compiler.model import ProgramModel
from tidegate.compiler.model_file import load
from tidegate.compiler.plan.schedule import make_plan
from tidegate.options import Option
from tidegate.trace.plan import Plan
from tidegate.workloads.program import Derived


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
    first_touch = Option(
        True, "what only the GPU writes is born there; otherwise its first use is a transfer"
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
