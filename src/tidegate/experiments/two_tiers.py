"""Runs over two tiers, near and far memory: from a specification to a Run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tidegate.experiments.naming import policy_inputs
from tidegate.experiments.runs import Run
from tidegate.options import spell
from tidegate.policies.interface.page_flags import COMING, NEAR
from tidegate.policies.interface.policy import Policy, PrefetchPolicy, label
from tidegate.policies.interface.visibility import Samples
from tidegate.policies.placement.objects import Planned
from tidegate.policies.placement.plans.copy_plan import CopyPlan
from tidegate.policies.prefetch.together import make_prefetch
from tidegate.policies.registries import eviction, placement, prefetch
from tidegate.policies.systems import find_system
from tidegate.simulation.gpu.marks import MARKS
from tidegate.simulation.gpu.memory import TIMELINE_COLUMNS
from tidegate.simulation.gpu.simulation import Simulation
from tidegate.simulation.recorded import Recording, read_recording
from tidegate.simulation.recording import Window
from tidegate.units import fraction

if TYPE_CHECKING:
    from tidegate.experiments.specification import RunSpec

OVERSUBSCRIBE = "50%"  # where no size is given: ObservUVM's level

PARTS = (
    "compute",
    "fault_handling",
    "transfer_in",
    "transfer_out",
    "remote_access",
    "policy_overhead",
)
_COUNTED = (
    "touches",
    "waits",
    "faults",
    "raw_faults",
    "batches",
    "evictions",
    "decisions",
    "pages_in",
    "pages_born",
    "pages_prefetched",
    "pages_unused",
    "pages_evicted",
    "pages_written_back",
    "pages_discarded",
    "remote_touches",
    "remote_bytes",
    "frames_peak",
    "observations",
    "notifications",
    "pages_sampled",
    "pages_home",
)
_LAUNCH_COLUMNS = ("name", "start", "end", "touches", "faults", "evictions")


def prepare(spec: RunSpec, window: Window | None = None) -> Simulation:
    """Look everything up and set the simulation up, without running it.

    ``window``: what to record.
    """
    machine, trace, system = spec.load_machine(), spec.trace(), find_system(spec.system)
    policies = (
        eviction.given(system.eviction if spec.eviction is None else spec.eviction),
        _prefetch(system.prefetch if spec.prefetch is None else spec.prefetch),
        placement.given(system.placement if spec.placement is None else spec.placement),
    )
    for policy, given in zip(policies, (spec.eviction, spec.prefetch, spec.placement), strict=True):
        if not isinstance(given, Policy):  # an object is as its maker wanted it
            policy.scale_counts(spec.count_factor)
    geometry = trace.geometry
    near = spec.near_bytes(trace, 1 + fraction(OVERSUBSCRIBE), "region", geometry.region)
    simulation = Simulation(
        trace,
        machine,
        near // (geometry.page if machine.near.frame == "page" else geometry.region),
        *policies,
        dirty_only=spec.dirty_only,
        samples=spec.samples,
        observed=_observed(spec, policies),
        watched=_watched(spec, policies),
        compiled=spec.compiled,
        window=window,
    )
    simulation.checked |= spec.checked
    return simulation


def _prefetch(given: Any) -> PrefetchPolicy:
    return make_prefetch(given) if isinstance(given, str) else prefetch.given(given)


def _observed(spec: RunSpec, policies: tuple[Policy, ...]) -> int | None:
    """Return the regions observed at a time: as given, or as declared for the full size, scaled."""
    if spec.observed is not None or spec.scale is None:
        return spec.observed
    return _declared(spec, policies)


def _watched(spec: RunSpec, policies: tuple[Policy, ...]) -> int | None:
    """Return the evicted regions to watch: as given, or as many as would be observed by default."""
    if spec.watched is not None or spec.observed is None:
        return spec.watched
    return _declared(spec, policies)


def _declared(spec: RunSpec, policies: tuple[Policy, ...]) -> int | None:
    """Return the number of regions that the policies declare to observe, scaled."""
    most = max((p.sees.regions for p in policies if isinstance(p.sees, Samples)), default=0)
    return max(1, round(most * spec.factor)) if most else None


def inputs_of(s: Simulation, spec: RunSpec) -> dict[str, Any]:
    """Return everything that can change the outcome."""
    return {
        "trace": s.trace.identity(),
        "machine": s.machine.constants(),
        "frames": s.frames,
        "dirty_only": s.dirty_only,
        "samples": s.samples,
        "observed": s.observed,
        "watched": s.watched,
        "scale": spec.count_factor,
        "policies": [policy_inputs(policy) for policy in (s.eviction, s.prefetch, s.placement)],
    }


def made_by(s: Simulation) -> tuple[object, ...]:
    """Return the objects and classes whose code takes part in the run."""
    return s.eviction, s.prefetch, s.placement, *s.trace.made_by(), *s.machine.made_by()


def describe(s: Simulation, key: str, inputs: dict[str, Any], spec: RunSpec) -> Run:
    """Put a finished simulation's books into a Run."""
    b = s.books[0]
    counts = {name: int(b[name]) for name in _COUNTED}
    counts["hits"] = int(b["touches"] - b["stalls"] - b["waits"] - b["remote_touches"])
    busy = {name: float(b[f"{name}_time"]) for name in ("driver", "link_in", "link_out")}
    tables = {"timeline": _timeline(s), "launches": _launches(s), "objects": _objects(s)}
    notes = _notes(s) + s.notes + _without_effect(s, spec)
    return Run(key, inputs, _facts(s), counts, _parts(b), busy, tables, notes)


def recording_of(s: Simulation) -> Recording:
    """Return what a finished simulation recorded."""
    return read_recording(s.memory, MARKS, int(s.books["touches"][0]), s.memory.region_pages)


def _parts(b: Any) -> dict[str, float]:
    """Return the parts of time in ns.

    Running time outside launches is split by what the slots spent theirs on.
    """
    near_time = max(0.0, float(b["near_time"]))
    remote_time = float(b["remote_time"])
    share = remote_time / ((near_time + remote_time) or 1.0)
    remote = float(b["running"] - b["launching"]) * share
    split = {"compute": float(b["running"]) - remote, "remote_access": remote}
    return {part: split[part] if part in split else float(b[part]) for part in PARTS}


def _facts(s: Simulation) -> dict[str, Any]:
    return {
        "workload": s.trace.name,
        "provenance": s.trace.provenance.value,
        "machine": s.machine.name,
        "eviction": spell(s.eviction),
        "prefetch": spell(s.prefetch),
        "placement": spell(s.placement),
        "near_bytes": near_bytes(s),
        "footprint_bytes": s.trace.footprint,
        "page_bytes": s.trace.geometry.page,
        "region_bytes": s.trace.geometry.region,
        "geometry": str(s.trace.geometry),
        "slots": s.machine.near.slots,
        "policy_report": {
            k: v for p in (s.eviction, s.prefetch, s.placement) for k, v in p.report().items()
        },
        "decisions": [
            {"policy": label(p), **decision._asdict()}
            for p in (s.eviction, s.prefetch, s.placement)
            for decision in p.decisions()
        ],
    }


def near_bytes(s: Simulation) -> int:
    """Return the bytes of near memory: of its frames, which are regions, or pages on machines with
    ``near.frame = "page"``.
    """
    return s.frames * (
        s.trace.geometry.page if s.machine.near.frame == "page" else s.trace.geometry.region
    )


def _notes(s: Simulation) -> list[str]:
    """Return notes on what the policies see and what the machine offers."""
    notes = []
    for policy in (s.eviction, s.prefetch, s.placement):
        if policy.sees.level not in s.machine.offers:
            notes.append(
                f"{spell(policy)} sees {policy.sees.level}; "
                f"the hardware of {s.machine.name} shows {', '.join(s.machine.offers)}"
            )
    if s.trace.plan is None and isinstance(s.placement, Planned):
        notes.append(
            f"{s.trace.name} has no compiler's plan, so {spell(s.placement)} uses a perfect "
            "profile of its trace, where a compiler would estimate"
        )
    if isinstance(s.placement, CopyPlan):
        notes.append(
            f"{spell(s.placement)} is planned from the whole trace, as from a rehearsed run"
        )
    return notes


def _without_effect(s: Simulation, spec: RunSpec) -> list[str]:
    """Return a note on each setting of observation that was given where no policy observes."""
    if any(isinstance(p.sees, Samples) for p in (s.eviction, s.prefetch, s.placement)):
        return []
    given = {"observed": spec.observed, "watched": spec.watched, "samples": spec.samples or None}
    return [
        f"{name} = {value} has no effect: none of {spell(s.eviction)}, {spell(s.prefetch)} and "
        f"{spell(s.placement)} observes"
        for name, value in given.items()
        if value is not None
    ]


def _timeline(s: Simulation) -> dict[str, list[Any]]:
    rows = s.memory.timeline[: s.books[0]["timeline_n"]]
    whole = {name: rows[:, i] for i, name in enumerate(TIMELINE_COLUMNS)}
    return {
        name: (v if name in ("time", "running") else v.astype(np.int64)).tolist()
        for name, v in whole.items()
    }


def _launches(s: Simulation) -> dict[str, list[Any]]:
    return {name: [getattr(r, name) for r in s.launches] for name in _LAUNCH_COLUMNS}


def _objects(s: Simulation) -> dict[str, list[Any]]:
    m, ppr = s.memory, s.trace.geometry.pages_per_region
    objects, near = s.trace.objects, (m.page_state & (NEAR | COMING)) != 0
    own = [slice(o.first_page // ppr, -(-(o.first_page + o.pages) // ppr)) for o in objects]
    summed: dict[str, Any] = {
        "faults": m.region_faults,
        "evictions": m.region_evictions,
        "pages_in": m.region_pages_in,
        "pages_near": near.reshape(-1, ppr).sum(axis=1),
    }
    return {
        "name": [o.name for o in objects],
        "bytes": [o.bytes for o in objects],
        **{column: [int(of[regions].sum()) for regions in own] for column, of in summed.items()},
    }
