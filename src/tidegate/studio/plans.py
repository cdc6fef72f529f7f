"""Plans: where a program's objects live at each launch, for the page."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tidegate import units
from tidegate.compiler.model_file import load
from tidegate.compiler.plan.emit import emit_cuda, emit_openmp
from tidegate.errors import TidegateError, UnknownName
from tidegate.experiments.planning import RIVALS, brief, make_policy, predict, rehearse, settle
from tidegate.machine.machine import load_machine
from tidegate.papers.hybrid import applications
from tidegate.studio.jobs import Job
from tidegate.workloads.modelled import Modelled

MODELS = Path(applications.__file__).parent / "models"
MACHINE, PLACEMENT, NEAR = "v100-nvlink2", "rdm", "1GiB"


def program_names() -> list[str]:
    """Return the programs whose models are shipped."""
    return sorted(file.stem for file in MODELS.glob("*.json"))


def plan(job: Job, asked: Mapping[str, Any]) -> None:
    """Plan a shipped program: schedule, predicted times and code."""
    name = str(asked.get("program") or "")
    if name not in program_names():
        raise UnknownName("program", name, program_names())
    chosen = str(asked.get("placement") or PLACEMENT)
    machine = load_machine(str(asked.get("machine") or MACHINE))
    room = units.size(str(asked.get("near") or NEAR))
    if room < machine.geometry.region:
        region = units.show_size(machine.geometry.region)
        raise TidegateError(f"near memory must hold at least one region of {region}")
    job.unit, model = "touches", load(MODELS / f"{name}.json")
    settled, notes = settle(model, {}, room)
    program = Modelled(model, settled)
    policy = make_policy(chosen)
    schedule = rehearse(program, policy, machine.geometry, room // machine.geometry.region)
    data = schedule.to_data()
    del data["runs"]  # long, and the page shows places only
    job.result = {
        **data,
        "chosen": chosen,
        "sizes": program.sizes(),
        "cuda": emit_cuda(schedule),
        "openmp": "" if model.two_copies else emit_openmp(schedule),
    }
    short = brief(program, machine.geometry.page)
    runs = predict(short, machine, room, dict.fromkeys((*RIVALS, chosen)), job.advance)
    job.result |= {
        "predicted": {
            policy: {"failed": run} if isinstance(run, str) else {"time_ns": run.time, **run.parts}
            for policy, run in runs.items()
        },
        "notes": [*notes, *schedule.notes],
    }
