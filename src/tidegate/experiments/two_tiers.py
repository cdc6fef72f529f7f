"""Runs over two tiers, near and far memory: from a specification to a Run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tidegate.experiments.prepared_run import PreparedRun, policy_inputs
from tidegate.experiments.runs import Run
from tidegate.experiments.settings import GpuModel
from tidegate.options import format_spec
from tidegate.policies.interface.page_flags import COMING, NEAR
from tidegate.policies.interface.policy import Policy, PrefetchPolicy, label
from tidegate.policies.interface.visibility import Samples
from tidegate.policies.placement.objects import Planned
from tidegate.policies.placement.plans.copy_plan import CopyPlan
from tidegate.policies.prefetch.together import make_prefetch
from tidegate.policies.registries import eviction, placement, prefetch
from tidegate.policies.systems import find_system
from tidegate.simulation.gpu.memory import TIMELINE_COLUMNS
from tidegate.simulation.gpu.recorded_moves import MARKS
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
    "copies_in",
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
DEEP_THRASH = 2.5  # times that a launch brings in as much as the program has
_LAUNCH_COLUMNS = ("name", "start", "end", "touches", "faults", "evictions", "pages_in")


class TwoTierRun(PreparedRun):
    """A run over near and far memory."""

    def __init__(self, spec: RunSpec, window: Window | None = None):
        super().__init__(spec, window)
        system = find_system(spec.system)
        self.eviction = eviction.resolve(
            system.eviction if spec.eviction is None else spec.eviction
        )
        self.prefetch = _prefetch(system.prefetch if spec.prefetch is None else spec.prefetch)
        self.placement = placement.resolve(
            system.placement if spec.placement is None else spec.placement
        )
        for name, policy in self.policies.items():
            if not isinstance(getattr(spec, name), Policy):  # an object is as its maker wanted it
                policy.scale_counts(spec.count_factor)
        geometry = self.trace.geometry
        room = spec.near_bytes(self.trace, 1 + fraction(OVERSUBSCRIBE), "region", geometry.region)
        frame = geometry.page if self.machine.near.frame == "page" else geometry.region
        self.frames = room // frame
        self.near = self.frames * frame

    @property
    def policies(self) -> dict[str, Policy]:
        return {"eviction": self.eviction, "prefetch": self.prefetch, "placement": self.placement}

    def _set_up(self) -> Simulation:
        model = self.spec.gpu
        simulation = Simulation(
            self.trace,
            self.machine,
            self.frames,
            self.eviction,
            self.prefetch,
            self.placement,
            dirty_only=model.dirty_only,
            samples=model.samples,
            observed=self._observed(),
            watched=self._watched(),
            compiled=self.spec.compiled,
            window=self.window,
        )
        simulation.checked |= self.spec.checked
        return simulation

    def _observed(self) -> int | None:
        """Return the regions observed at a time: as given, or as declared for the full size,
        scaled.
        """
        given = self.spec.gpu.observed
        return given if given is not None or self.spec.scale is None else self._declared()

    def _watched(self) -> int | None:
        """Return the evicted regions to watch: as given, or as many as would be observed by
        default.
        """
        given = self.spec.gpu.watched
        return given if given is not None or self.spec.gpu.observed is None else self._declared()

    def _declared(self) -> int | None:
        """Return the number of regions that the policies declare to observe, scaled."""
        seen = [p.sees.regions for p in self.policies.values() if isinstance(p.sees, Samples)]
        return max(1, round(max(seen) * self.spec.factor)) if any(seen) else None

    @property
    def inputs(self) -> dict[str, Any]:
        s: Simulation = self.simulation
        return {
            "trace": s.trace.identity(),
            "machine": s.machine.constants(),
            "frames": s.frames,
            "dirty_only": s.dirty_only,
            "samples": s.samples,
            "observed": s.observed,
            "watched": s.watched,
            "scale": self.spec.count_factor,
            "policies": [policy_inputs(policy) for policy in self.policies.values()],
        }

    def describe(self, key: str, inputs: dict[str, Any]) -> Run:
        s: Simulation = self.simulation
        b = s.books[0]
        counts = {name: int(b[name]) for name in _COUNTED}
        counts["hits"] = int(b["touches"] - b["stalls"] - b["waits"] - b["remote_touches"])
        busy = {name: float(b[f"{name}_time"]) for name in ("driver", "link_in", "link_out")}
        tables = {"timeline": _timeline(s), "launches": _launches(s), "objects": _objects(s)}
        notes = _notes(s) + _thrash(s) + s.notes + _without_effect(s, self.spec.gpu)
        facts = _facts(s, self.near)
        return Run(key, inputs, facts, counts, _parts(b), busy, tables, notes)

    def recording(self) -> Recording:
        s: Simulation = self.simulation
        return read_recording(s.memory, MARKS, int(s.books["touches"][0]), s.memory.region_pages)


def _prefetch(given: Any) -> PrefetchPolicy:
    return make_prefetch(given) if isinstance(given, str) else prefetch.resolve(given)


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


def _facts(s: Simulation, near: int) -> dict[str, Any]:
    return {
        "workload": s.trace.name,
        "provenance": s.trace.provenance.value,
        "machine": s.machine.name,
        "eviction": format_spec(s.eviction),
        "prefetch": format_spec(s.prefetch),
        "placement": format_spec(s.placement),
        "near_bytes": near,
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


def _notes(s: Simulation) -> list[str]:
    """Return notes on what the policies see and what the machine offers."""
    notes = []
    for policy in (s.eviction, s.prefetch, s.placement):
        if policy.sees.level not in s.machine.offers:
            notes.append(
                f"{format_spec(policy)} sees {policy.sees.level}; "
                f"the hardware of {s.machine.name} shows {', '.join(s.machine.offers)}"
            )
    if s.trace.plan is None and isinstance(s.placement, Planned):
        notes.append(
            f"{s.trace.name} has no compiler's plan, so {format_spec(s.placement)} uses a perfect "
            "profile of its trace, where a compiler would estimate"
        )
    if isinstance(s.placement, CopyPlan):
        notes.append(
            f"{format_spec(s.placement)} is planned from the whole trace, as from a rehearsed run"
        )
    return notes


def _thrash(s: Simulation) -> list[str]:
    """Return a note if a launch brings the program's pages in again and again."""
    most = max((launch.pages_in for launch in s.launches), default=0)
    if most <= DEEP_THRASH * s.trace.footprint / s.trace.geometry.page:
        return []
    return [
        f"deep thrash: a launch brings all pages in more than {DEEP_THRASH} times, so its time "
        "hangs on the order in which faults are served, of which real cards say little "
        "(docs/validation.md)"
    ]


def _without_effect(s: Simulation, model: GpuModel) -> list[str]:
    """Return a note on each setting of observation that was given where no policy observes."""
    policies = (s.eviction, s.prefetch, s.placement)
    if any(isinstance(p.sees, Samples) for p in policies):
        return []
    *names, last = map(format_spec, policies)
    given = {"observed": model.observed, "watched": model.watched, "samples": model.samples or None}
    return [
        f"{name} = {value} has no effect: none of {', '.join(names)} and {last} observes"
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
