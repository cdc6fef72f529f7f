"""cfd's inner loop with room for two objects: the paper's example of how GLM and RDM differ
(Figure 3, 3.3, 3.4).
"""

from __future__ import annotations

from dataclasses import replace

from tidegate.experiments.planning import Rehearsal
from tidegate.papers.hybrid.applications.grids import CFD
from tidegate.policies.placement.objects import ObjectPlacement
from tidegate.policies.registries import placement
from tidegate.trace.geometry import Geometry
from tidegate.trace.plan import Plan
from tidegate.trace.trace import lay_out

LETTERS = {"variables": "V", "normals": "N", "fluxes": "F", "old_variables": "O"}
ROUNDS = 4  # of the outer loop: enough to settle


def locality_order(plan: Plan | None = None) -> str:
    """Return the four objects by global locality, the highest first.

    Without a plan, cfd's saved analysis is used.
    """
    locality = (plan or CFD().plan()).global_locality
    return " > ".join(LETTERS[name] for name in sorted(LETTERS, key=lambda name: -locality[name]))


def kept_by(policy: str, plan: Plan | None = None) -> str:
    """Return which two of four equally large objects are near in the inner loop."""
    geometry = Geometry()
    plan = four_objects(plan or CFD().plan())
    memory = Rehearsal(
        lay_out(dict.fromkeys(LETTERS, geometry.region), geometry), geometry, 2, plan
    )
    decider = placement.make("rdm(partial=no)" if policy == "rdm" else policy)
    assert isinstance(decider, ObjectPlacement)
    decider.attach(memory)  # type: ignore[arg-type]
    decider.start()
    inner = ["compute_flux", "time_step"] * 3
    for n, memory.place in enumerate(
        ["initialize_variables", *["copy", "compute_step_factor", *inner] * ROUNDS]
    ):
        decider.on_launch(n)
        if memory.place == "compute_flux":
            held = "".join(LETTERS[name] for name in LETTERS if decider.held[name])
    return held


def four_objects(plan: Plan) -> Plan:
    """Return the plan with the four objects of the figure only."""
    launches = tuple(
        replace(x, uses=tuple(u for u in x.uses if u.object in LETTERS)) for x in plan.launches
    )
    return Plan(launches, plan.global_locality)
