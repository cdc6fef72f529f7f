"""Runs over three tiers, near memory, host memory and an SSD: from a specification to a Run, with
traits of the trace where they are asked for: reuse, and distances that remain when CLOCK evicts.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from tidegate import units
from tidegate.analysis.remaining import remaining_by_id, reuse_pairs, shares
from tidegate.experiments.prepared_run import PreparedRun, policy_inputs
from tidegate.experiments.runs import Run
from tidegate.options import format_spec
from tidegate.policies.interface.policy import Policy
from tidegate.policies.registries import eviction, tiering
from tidegate.simulation.recorded import Recording
from tidegate.simulation.recording import Window
from tidegate.simulation.tiers.simulation import MOST_STAYS, Tiered
from tidegate.simulation.tiers.state import IN_MIDDLE
from tidegate.trace.geometry import Geometry
from tidegate.trace.trace import Trace

if TYPE_CHECKING:
    from tidegate.experiments.specification import RunSpec

# where no size is given: the middle over near memory, and the footprint over both (GMT 3.1)
RATIO, FACTOR = 4.0, 2.0


class ThreeTierRun(PreparedRun):
    """A run over near memory, host memory and an SSD."""

    def __init__(self, spec: RunSpec, window: Window | None = None):
        super().__init__(spec, window)
        page = self.trace.geometry.page
        room = spec.near_bytes(self.trace, FACTOR * (1 + RATIO), "page", page)
        middle = RATIO * room if spec.middle is None else units.size(spec.middle)
        self.near, self.middle_pages = room // page * page, int(middle // page)
        self.tiering = tiering.resolve(spec.tiering)
        self.eviction = None if spec.eviction is None else eviction.resolve(spec.eviction)

    @property
    def policies(self) -> dict[str, Policy]:
        return {"tiering": self.tiering} | (
            {} if self.eviction is None else {"eviction": self.eviction}
        )

    def _set_up(self) -> Tiered:
        model = self.spec.tiers
        return Tiered(
            self.trace,
            self.machine,
            self.near // self.trace.geometry.page,
            self.middle_pages,
            self.tiering,
            self.eviction,
            service=model.service,
            shared=model.shared,
            read_ahead=model.read_ahead,
            transfers=model.transfers,
            spare=model.spare,
            jitter=model.jitter,
            most_stays=MOST_STAYS if model.most_stays is None else model.most_stays,
            flush=model.flush,
            compiled=self.spec.compiled,
            window=self.window,
        )

    @property
    def inputs(self) -> dict[str, Any]:
        s: Tiered = self.simulation
        return {
            "tiers": [s.near, s.middle],
            "trace": s.trace.identity(),
            "machine": s.machine.constants(),
            "settings": s.settings,
            "tiering": policy_inputs(s.placement),
            "eviction": None if s.eviction is None else policy_inputs(s.eviction),
            "traits": self.spec.tiers.traits,
        }

    def describe(self, key: str, inputs: dict[str, Any]) -> Run:
        s: Tiered = self.simulation
        facts = _facts(s)
        tables: dict[str, dict[str, list[Any]]] = {
            "timeline": s.timeline.table(),
            "launches": s.launches,
            "objects": _objects(s),
        }
        if self.spec.tiers.traits:
            more_facts, more_tables = trace_traits(s.trace, s.near, s.middle or int(RATIO * s.near))
            facts, tables = facts | more_facts, tables | more_tables
        return Run(key, inputs, facts, _counts(s), s.parts, s.busy, tables, list(_notes(s)))

    def recording(self) -> Recording:
        s: Tiered = self.simulation
        return s.recording()


def _counts(s: Tiered) -> dict[str, int]:
    c = s.counts
    written = c["near_written"] + c["middle_written"] + c["near_flushed"] + c["middle_flushed"]
    return c | {
        "faults": c["middle_hits"] + c["far_reads"],
        "far_writes": written,
        "far_moved": c["far_reads"] + c["read_ahead"] + written,
        "pages_in": c["middle_hits"] + c["far_reads"],
        "pages_home": 0,
        "pages_sampled": 0,
        "pages_written_back": c["to_middle"] + c["near_written"] + c["near_flushed"],
    }


def _facts(s: Tiered) -> dict[str, Any]:
    page = s.trace.geometry.page
    return {
        "workload": s.trace.name,
        "provenance": s.trace.provenance.value,
        "machine": s.machine.name,
        "tiering": format_spec(s.placement),
        "eviction": _eviction(s),
        "prefetch": "none",
        "placement": "none",
        "service": s.service,
        "near_bytes": s.near * page,
        "middle_bytes": s.middle * page,
        "footprint_bytes": s.trace.footprint,
        "page_bytes": page,
        "region_bytes": page,
        "geometry": str(Geometry(page, page)),
        "slots": s.machine.near.slots,
        "policy_report": s.placement.report(),
    }


def _eviction(s: Tiered) -> str:
    """Return the name of the policy that chooses the page to leave near memory."""
    if s.eviction is not None:
        return format_spec(s.eviction)
    return "its own" if s.chooses else "clock"


def _objects(s: Tiered) -> dict[str, list[Any]]:
    """Return the bytes of each object, and where its pages are at the end."""
    objects = s.trace.objects
    places = [s.memory.where[o.first_page : o.first_page + o.pages] for o in objects]
    return {
        "name": [o.name for o in objects],
        "bytes": [o.bytes for o in objects],
        "pages_near": [int((at >= 0).sum()) for at in places],
        "pages_middle": [int((at <= IN_MIDDLE).sum()) for at in places],
    }


def _notes(s: Tiered) -> Iterator[str]:
    """Yield notes on what the policies see and what was left out."""
    for policy in (s.placement, s.eviction):
        if policy is not None and getattr(policy.sees, "future", False):
            name = format_spec(policy)
            yield f"{name} sees the future, which no machine shows; use it as a bound"
    if not s.placement.keeps_middle:
        yield f"{format_spec(s.placement)} has no middle; what leaves near memory goes far"
    if not s.flush:
        yield "pages that were dirty at the end were not written"
    yield from s.notes


SHOWN = 2000  # points kept of a scatter
BINS = 64  # of the distribution of remaining distances


def trace_traits(
    trace: Trace, near: int, middle: int
) -> tuple[dict[str, Any], dict[str, dict[str, list[Any]]]]:
    """Return facts and tables about a trace, for memories of ``near`` and ``middle`` pages."""
    pages = np.concatenate(
        [segment.page for launch in trace.launches() for segment in launch.segments]
    )
    returned, remaining = remaining_by_id(pages, near)
    vtd, distance = reuse_pairs(pages)
    edges = np.linspace(0, 2.5 * (near + middle), BINS + 1)
    visited = len(np.unique(pages))
    facts = {
        "reuse": 1 - visited / max(1, len(pages)),
        "visits": len(pages),
        "visited": visited,
        "remaining": shares(remaining, near, middle),
        "remaining_middle": middle,
        "returns": len(remaining),
        **_line(vtd, distance),
        "same_class": _same_class(returned, np.digitize(remaining, (near, near + middle))),
    }
    tables = {
        "distances": {
            "share": np.histogram(remaining.clip(max=edges[-1]), edges)[0].tolist(),
            "from": edges[:-1].tolist(),
        },
        "pairs": {"vtd": _some(vtd), "distance": _some(distance)},
        "returns": {"page": _some(returned), "remaining": _some(remaining)},
    }
    return facts, tables


def _line(vtd: Any, distance: Any) -> dict[str, float | int]:
    """Return the regression of Figure 4a over all pairs, its correlation, and the number of
    different distances.

    Visits are merged, so a page touched twice in a row is missing; it is the point (1, 0). Without
    it a loop, where all distances are equal, would have no line.
    """
    x, y = (
        np.concatenate([given, [first]]).astype(np.float64)
        for given, first in ((vtd, 1), (distance, 0))
    )
    if np.ptp(x) == 0 or np.ptp(y) == 0:
        return {"slope": 1.0, "correlation": 1.0, "distinct": len(np.unique(distance))}
    slope, correlation = float(np.polyfit(x, y, 1)[0]), float(np.corrcoef(x, y)[0, 1])
    return {"slope": slope, "correlation": correlation, "distinct": len(np.unique(distance))}


def _same_class(page: Any, tier: Any) -> float | None:
    """Return the share of returns, after a page's first, with the same tier as the one before."""
    order = np.argsort(page, kind="stable")
    follows = page[order][1:] == page[order][:-1]
    return float((tier[order][1:] == tier[order][:-1])[follows].mean()) if follows.any() else None


def _some(values: Any) -> list[int]:
    """Return at most SHOWN of the values, evenly spread."""
    return [int(v) for v in values[:: max(1, -(-len(values) // SHOWN))]]
