"""TieredAsk: what a run over three tiers is made from, as a person says it; answered with a Run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from tidegate import units
from tidegate.analysis.remaining import remaining_by_id, reuse_pairs, shares
from tidegate.errors import TidegateError
from tidegate.experiments import store
from tidegate.experiments.ask import Ask, _policy_inputs, check_whole, spell
from tidegate.experiments.runs import Run
from tidegate.machine.machine import Machine, load_machine
from tidegate.policies.interface.policy import EvictionPolicy
from tidegate.policies.interface.tier_policy import TierPolicy
from tidegate.policies.registries import eviction, tiering
from tidegate.simulation.tiers.simulation import MOST_STAYS, Tiered
from tidegate.simulation.tiers.state import IN_MIDDLE
from tidegate.trace.geometry import Geometry
from tidegate.trace.trace import Trace
from tidegate.workloads.program import Workload

SHOWN = 2000  # points of a scatter that are kept
BINS = 64  # of the distribution of remaining distances


# where nothing is said: the middle over near memory, and the footprint over both (GMT 3.1)
RATIO, FACTOR = 4.0, 2.0


@dataclass(frozen=True)
class TieredAsk:
    """One run over three tiers, asked for. Names are looked up when it is answered.

    ``near`` and ``middle``: capacities; without them the footprint is twice both, and the middle
    four times near memory, as in GMT. ``eviction``: in place of CLOCK. ``service``: who serves
    misses, if not as the placement has it. ``traits``: also what the trace is like (reuse,
    remaining distances), for figures.

    >>> ask = TieredAsk("cyclic(bytes=8MiB, passes=2)", "tier-order", near="1MiB", middle="4MiB")
    >>> ask.answer(cache=False).counts["far_reads"]
    256
    """

    workload: str | type[Workload] | Workload | Trace
    tiering: str | type[TierPolicy] | TierPolicy = "tier-reuse"
    near: str | int | None = None
    middle: str | int | None = None
    oversubscribe: str | float | None = None  # the footprint over near memory, in place of ``near``
    machine: str | Machine = "a100-pcie3-ssd"
    eviction: str | type[EvictionPolicy] | EvictionPolicy | None = None
    bytes: str | int | None = None
    scale: str | float | None = None
    slots: int | None = None  # misses under way at a time
    service: str | None = None
    shared: bool = True  # the SSD reads and writes from one queue
    read_ahead: bool = False  # of the page cache, where the CPU serves misses
    most_stays: int = MOST_STAYS
    flush: bool = True  # what is dirty at the end is written
    traits: bool = False
    compiled: bool = True

    def __post_init__(self) -> None:
        check_whole(slots=self.slots, most_stays=self.most_stays)

    def answer(
        self, cache: bool = True, progress: Callable[[int], None] = lambda touches: None
    ) -> Run:
        """Run it, or fetch it from the store."""
        simulation = self.prepare()

        def make(key: str, inputs: dict[str, Any]) -> Run:
            simulation.run(progress)
            return _describe(simulation, key, inputs, self.traits)

        return store.answer(self._inputs(simulation), cache, make)

    def prepare(self) -> Tiered:
        """Look everything up and set the tiers up, without running anything."""
        asked = Ask(self.workload, self.machine, bytes=self.bytes, scale=self.scale)
        trace, machine = asked.trace(), load_machine(self.machine)
        if self.slots is not None:
            if self.slots < 1:
                raise TidegateError(f"slots={self.slots} cannot run anything; expected at least 1")
            machine = machine.with_slots(self.slots)
        near, middle = self._capacities(trace)
        return Tiered(
            trace,
            machine,
            near,
            middle,
            tiering.given(self.tiering),
            None if self.eviction is None else eviction.given(self.eviction),
            service=self.service,
            shared=self.shared,
            read_ahead=self.read_ahead,
            most_stays=self.most_stays,
            flush=self.flush,
            compiled=self.compiled,
        )

    def _capacities(self, trace: Trace) -> tuple[int, int]:
        """Of near and middle, in pages."""
        page = trace.geometry.page
        if self.near is not None and self.oversubscribe is not None:
            raise TidegateError(
                "near and oversubscribe were both given; they say the same thing, give one"
            )
        if self.near is not None:
            near = units.size(self.near)
        elif self.oversubscribe is not None:
            near = int(trace.footprint / (1 + units.oversubscription(self.oversubscribe)))
        else:
            near = int(trace.footprint / (FACTOR * (1 + RATIO)))
        if near < page:
            raise TidegateError(
                f"near memory of {units.show_size(near)} cannot hold one page of {units.show_size(page)}; give it more, or "
                "the workload more bytes"
            )
        middle = RATIO * near if self.middle is None else units.size(self.middle)
        return near // page, int(middle // page)

    def _inputs(self, s: Tiered) -> dict[str, Any]:
        """Everything that can change the outcome."""
        return {
            "tiers": [s.near, s.middle],
            "trace": s.trace.identity(),
            "machine": s.machine.constants(),
            "settings": s.settings,
            "tiering": _policy_inputs(s.placement, self.tiering),
            "eviction": None if s.eviction is None else _policy_inputs(s.eviction, self.eviction),
            "traits": self.traits,
        }


def _describe(s: Tiered, key: str, inputs: dict[str, Any], traits: bool) -> Run:
    """Put finished tiers' books into a Run."""
    c = s.counts
    written = c["near_written"] + c["middle_written"] + c["near_flushed"] + c["middle_flushed"]
    counts = c | {
        "faults": c["middle_hits"] + c["far_reads"],
        "far_writes": written,
        "far_moved": c["far_reads"] + written,
        "pages_in": c["middle_hits"] + c["far_reads"],
        "pages_home": 0,
        "pages_sampled": 0,
        "pages_written_back": c["to_middle"] + c["near_written"] + c["near_flushed"],
    }
    page = s.trace.geometry.page
    facts = {
        "workload": s.trace.name,
        "provenance": s.trace.provenance.value,
        "machine": s.machine.name,
        "tiering": spell(s.placement),
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
    tables: dict[str, dict[str, list[Any]]] = {"launches": s.launches, "objects": _objects(s)}
    if traits:
        told, more = _traits(s)
        facts, tables = facts | told, tables | more
    return Run(key, inputs, facts, counts, s.parts, s.busy, tables, list(_notes(s)))


def _eviction(s: Tiered) -> str:
    """Who chooses the page that leaves near memory."""
    if s.eviction is not None:
        return spell(s.eviction)
    return "its own" if s.chooses else "clock"


def _objects(s: Tiered) -> dict[str, list[Any]]:
    """Each object: bytes, and where its pages are at the end."""
    table: dict[str, list[Any]] = {n: [] for n in ("name", "bytes", "pages_near", "pages_middle")}
    for o in s.trace.objects:
        at = s.memory.where[o.first_page : o.first_page + o.pages]
        row = o.name, o.bytes, int((at >= 0).sum()), int((at <= IN_MIDDLE).sum())
        for column, value in zip(table, row, strict=True):
            table[column].append(value)
    return table


def _notes(s: Tiered) -> Iterator[str]:
    """What a reader of the figures should know."""
    for policy in (s.placement, s.eviction):
        if policy is not None and getattr(policy.sees, "future", False):
            yield f"{spell(policy)} sees the future, which no machine shows: a line to measure against"
    if not s.placement.keeps_middle:
        yield f"{spell(s.placement)} has no middle; what leaves near memory goes far"
    if not s.flush:
        yield "what was dirty at the end was not written"


def _traits(s: Tiered) -> tuple[dict[str, Any], dict[str, dict[str, list[Any]]]]:
    """What the trace is like, whatever the placement: reuse, and distances remaining when CLOCK
    evicts.
    """
    pages = np.concatenate(
        [segment.page for launch in s.trace.launches() for segment in launch.segments]
    )
    who, away = remaining_by_id(pages, s.near)
    vtd, distance = reuse_pairs(pages)
    middle = 4 * s.near if not s.middle else s.middle
    edges = np.linspace(0, 2.5 * (s.near + middle), BINS + 1)
    visited = len(np.unique(pages))
    told = {
        "reuse": 1 - visited / max(1, len(pages)),
        "visits": len(pages),
        "visited": visited,
        "remaining": shares(away, s.near, middle),
        "remaining_middle": middle,
        "returns": len(away),
        **_line(vtd, distance),
        "same_class": _same_class(who, np.digitize(away, (s.near, s.near + middle))),
    }
    tables = {
        "distances": {
            "share": np.histogram(away.clip(max=edges[-1]), edges)[0].tolist(),
            "from": edges[:-1].tolist(),
        },
        "pairs": {"vtd": _some(vtd), "distance": _some(distance)},
        "returns": {"page": _some(who), "remaining": _some(away)},
    }
    return told, tables


def _line(vtd: Any, distance: Any) -> dict[str, float | int]:
    """The regression of Figure 4a over all pairs, how well they lie on it, and how many different
    distances there are.

    A page that is touched twice running, which the merging of visits leaves out, is (1, 0): on a
    loop, where all distances are the same, there would be no line without it.
    """
    x, y = (
        np.concatenate([given, [first]]).astype(np.float64)
        for given, first in ((vtd, 1), (distance, 0))
    )
    if np.ptp(x) == 0 or np.ptp(y) == 0:
        return {"slope": 1.0, "correlation": 1.0, "distinct": len(np.unique(distance))}
    slope, correlation = float(np.polyfit(x, y, 1)[0]), float(np.corrcoef(x, y)[0, 1])
    return {"slope": slope, "correlation": correlation, "distinct": len(np.unique(distance))}


def _same_class(who: Any, tier: Any) -> float | None:
    """Of returns that are not a page's first, the share whose tier is that of the one before."""
    order = np.argsort(who, kind="stable")
    follows = who[order][1:] == who[order][:-1]
    return float((tier[order][1:] == tier[order][:-1])[follows].mean()) if follows.any() else None


def _some(values: Any) -> list[int]:
    """At most SHOWN of them, evenly spread."""
    return [int(v) for v in values[:: max(1, -(-len(values) // SHOWN))]]
