"""Ask: what a run is made from, as a person says it; and ``run``, which answers it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from tidegate import units
from tidegate.errors import TidegateError
from tidegate.experiments import store
from tidegate.experiments.runs import Run, describe_run
from tidegate.machine.machine import Machine, load_machine
from tidegate.options import Configurable, parse_spec
from tidegate.policies.interface.policy import (
    EvictionPolicy,
    PlacementPolicy,
    Policy,
    PrefetchPolicy,
)
from tidegate.policies.interface.visibility import Samples
from tidegate.policies.placement.objects import Planned
from tidegate.policies.prefetch.together import make_prefetch
from tidegate.policies.registries import eviction, placement, prefetch
from tidegate.policies.systems import find_system
from tidegate.registry import source_digest
from tidegate.simulation.gpu.simulation import Simulation
from tidegate.trace.file import TraceFile
from tidegate.trace.geometry import Geometry
from tidegate.trace.trace import Trace
from tidegate.workloads.program import Workload, workloads

OVERSUBSCRIBE = "50%"  # when nobody says otherwise: ObservUVM's level


@dataclass(frozen=True)
class Ask:
    """One run, asked for. Names are looked up when it is answered.

    ``near``: capacity. ``oversubscribe``: how much larger than near memory the footprint is (50%
    makes near two thirds of it). Give one of them or neither. ``slots``: override the machine's; 1
    is a plain sequential cache.
    """

    workload: str | type[Workload] | Workload | Trace
    machine: str | Machine = "rtx3090-pcie4"
    system: str = "uvm"
    eviction: str | type[EvictionPolicy] | EvictionPolicy | None = None
    prefetch: str | type[PrefetchPolicy] | PrefetchPolicy | None = None
    placement: str | type[PlacementPolicy] | PlacementPolicy | None = None
    near: str | int | None = None
    oversubscribe: str | float | None = None
    bytes: str | int | None = None
    # of the workload's size, and of the number of regions observed with it
    scale: str | float | None = None
    geometry: str | Geometry | None = None
    slots: int | None = None
    dirty_only: bool = False
    samples: int = 0  # pages sampled per observed region; 0 adapts the number
    observed: int | None = None  # regions observed at a time; by default what the policies declare
    # evicted regions by which the number of samples is judged; by default the same
    watched: int | None = None
    pipelined: bool | None = None
    compiled: bool = True

    def __post_init__(self) -> None:
        check_whole(slots=self.slots, samples=self.samples, observed=self.observed)

    def answer(
        self, cache: bool = True, progress: Callable[[int], None] = lambda touches: None
    ) -> Run:
        """Run it, or fetch it from the store."""
        simulation = self.prepare()

        def make(key: str, inputs: dict[str, Any]) -> Run:
            simulation.run(progress)
            return describe_run(simulation, key, inputs, _facts(simulation), _notes(simulation))

        return store.answer(self._inputs(simulation), cache, make)

    def prepare(self) -> Simulation:
        """Look everything up and set the simulation up, without running it."""
        machine = self._machine()
        trace = self.trace()
        system = find_system(self.system)
        policies = (
            eviction.given(system.eviction if self.eviction is None else self.eviction),
            _prefetch(system.prefetch if self.prefetch is None else self.prefetch),
            placement.given(system.placement if self.placement is None else self.placement),
        )
        return Simulation(
            trace,
            machine,
            self._frames(trace),
            *policies,
            dirty_only=self.dirty_only,
            samples=self._samples(),
            observed=self._observed(policies),
            watched=self._watched(policies),
            compiled=self.compiled,
        )

    def _inputs(self, s: Simulation) -> dict[str, Any]:
        """Everything that can change the outcome."""
        policies = zip(
            (s.eviction, s.prefetch, s.placement),
            (self.eviction, self.prefetch, self.placement),
            strict=True,
        )
        return {
            "trace": s.trace.identity(),
            "machine": s.machine.constants(),
            "frames": s.frames,
            "dirty_only": s.dirty_only,
            "samples": s.samples,
            "observed": s.observed,
            "watched": s.watched,
            "policies": [_policy_inputs(policy, given) for policy, given in policies],
        }

    def trace(self) -> Trace:
        """The trace: from a workload laid out for the geometry, or from a trace file."""
        if isinstance(self.workload, Trace):
            return self._as_recorded(self.workload)
        if isinstance(self.workload, str) and self.workload.endswith(".parquet"):
            return self._as_recorded(TraceFile(self.workload))
        if isinstance(self.workload, str):
            name, options = parse_spec(self.workload)
            made = self._sized(workloads.find(name), name, options)
        elif isinstance(self.workload, type) and issubclass(self.workload, Workload):
            made = self._sized(self.workload, self.workload.__name__, {})
        elif self.bytes is None and self.scale is None:
            made = workloads.given(self.workload)
        else:
            raise TidegateError(
                "bytes and scale can be given with a workload's name only; this workload is made already"
            )
        return made.trace(self._geometry())

    def _sized(self, cls: type[Workload], name: str, options: dict[str, Any]) -> Workload:
        """The workload, as large as asked for."""
        if self.bytes is not None:
            if "bytes" in options:
                raise TidegateError(
                    f"'{self.workload}' gives bytes, and so does --bytes; give it once"
                )
            options["bytes"] = self.bytes
        if self.scale is not None:
            whole = options.get("bytes", getattr(cls.options().get("bytes"), "default", None))
            if whole is None:
                raise TidegateError(
                    f"workload {name} has no option bytes, so scale={self.scale} cannot be applied to it"
                )
            options["bytes"] = round(units.size(whole) * self._scale)
        return workloads.create(cls, options)

    def _as_recorded(self, trace: Trace) -> Trace:
        if self.bytes is not None or self.scale is not None or self.geometry is not None:
            raise TidegateError(
                f"trace {trace.name} has its size and geometry already; leave out bytes, scale and geometry"
            )
        return trace

    @property
    def _scale(self) -> float:
        scale = units.fraction(self.scale) if self.scale is not None else 1.0
        if scale <= 0:
            raise TidegateError(f"a scale of {self.scale} is none; expected something like 1/8")
        return scale

    def _samples(self) -> int:
        if self.samples < 0:
            raise TidegateError(
                f"{self.samples} samples are none; expected at least 1, or 0 to adapt the number"
            )
        return self.samples

    def _observed(self, policies: tuple[Policy, ...]) -> int | None:
        """Regions observed at a time: as said, or as the policies declare for a workload of full
        size.
        """
        if self.observed is not None:
            if self.observed < 1:
                raise TidegateError(
                    f"{self.observed} observed regions are none; expected at least 1"
                )
            return self.observed
        declared = _declared(policies)
        return None if self.scale is None or not declared else max(1, round(declared * self._scale))

    def _watched(self, policies: tuple[Policy, ...]) -> int | None:
        """Evicted regions that are watched: as said, or as many as would be observed if nobody said
        how many.
        """
        if self.watched is not None:
            if self.watched < 1:
                raise TidegateError(f"{self.watched} watched regions are none; expected at least 1")
            return self.watched
        declared = _declared(policies)
        return (
            None if self.observed is None or not declared else max(1, round(declared * self._scale))
        )

    def _geometry(self) -> Geometry:
        if isinstance(self.geometry, Geometry):
            return self.geometry
        return Geometry.parse(self.geometry) if self.geometry else self._machine().geometry

    def _machine(self) -> Machine:
        machine = load_machine(self.machine)
        if self.slots is not None:
            if self.slots < 1:
                raise TidegateError(f"slots={self.slots} cannot run anything; expected at least 1")
            machine = machine.with_slots(self.slots)
        return machine if self.pipelined is None else machine.with_pipeline(self.pipelined)

    def _frames(self, trace: Trace) -> int:
        if self.near is not None and self.oversubscribe is not None:
            raise TidegateError(
                "near and oversubscribe were both given; they say the same thing, give one"
            )
        if self.near is not None:
            near = units.size(self.near)
        else:
            level = OVERSUBSCRIBE if self.oversubscribe is None else self.oversubscribe
            near = int(trace.footprint / (1 + units.oversubscription(level)))
        if near < trace.geometry.region:
            raise TidegateError(
                f"near memory of {units.show_size(near)} cannot hold one region of "
                f"{units.show_size(trace.geometry.region)}; give it more, or the workload more bytes"
            )
        return near // (
            trace.geometry.page if self._machine().near.frame == "page" else trace.geometry.region
        )


def run(
    workload: str | type[Workload] | Workload | Trace | Path, *, cache: bool = True, **asked: Any
) -> Run:
    """Run a workload under a policy and say what happened. Keywords: those of ``Ask``; with
    ``tiering``, ``TieredAsk``'s.

    >>> import tidegate
    >>> r = tidegate.run("cyclic(bytes=96MiB, passes=4)", near="64MiB", eviction="lrm", prefetch="region", slots=1)
    >>> r.counts["evictions"]  # every pass migrates all 48 regions; 32 are still there at the end
    160
    """
    workload = str(workload) if isinstance(workload, Path) else workload
    if "tiering" in asked:
        from tidegate.experiments.tiered import TieredAsk  # which needs what is above

        return make_ask(TieredAsk, workload, asked).answer(cache)
    return make_ask(Ask, workload, asked).answer(cache)


def check_whole(**given: Any) -> None:
    """Refuse what is no whole number."""
    for keyword, value in given.items():
        if value is not None and not hasattr(type(value), "__index__"):
            raise TidegateError(f"{keyword}={value!r} is not a whole number")


def make_ask(kind: type[Any], workload: Any, asked: dict[str, Any]) -> Any:
    """An ask of this kind, if it has all these keywords."""
    known = [f.name for f in fields(kind) if f.name != "workload"]
    for keyword in asked:
        if keyword not in known:
            where = " with tiering" if "tiering" in known else ""
            raise TidegateError(
                f"a run{where} has no keyword '{keyword}'; it has {', '.join(known)}"
            )
    return kind(workload, **asked)


def _declared(policies: tuple[Policy, ...]) -> int:
    """Regions that the policies want observed at a time, in a workload of full size."""
    return max((p.sees.regions for p in policies if isinstance(p.sees, Samples)), default=0)


def _prefetch(given: Any) -> PrefetchPolicy:
    return make_prefetch(given) if isinstance(given, str) else prefetch.given(given)


def _policy_inputs(policy: Policy, given: Any) -> list[Any]:
    """What names a policy.

    One that was handed over as an object may be more than its class and its options.
    """
    named = given is None or isinstance(given, str) or _is_plain(policy)
    return [
        type(policy).__qualname__,
        policy.name,
        policy.settings(),
        source_digest(type(policy)) if named else "unrepeatable",
    ]


def _is_plain(thing: Configurable) -> bool:
    """Is this object just its class and its options?

    One made otherwise cannot be named, and so not kept.
    """
    try:
        made = type(thing)(**thing.settings())
    except Exception:
        return False
    own = {
        k: v
        for k, v in vars(thing).items()
        if k not in ("memory", "order") and k not in thing.options()
    }
    fresh = {k: v for k, v in vars(made).items() if k != "order" and k not in thing.options()}
    try:
        return bool(own == fresh)
    except ValueError:  # arrays do not say in one word whether they are equal
        return False


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
    }


def near_bytes(s: Simulation) -> int:
    """Near memory: the bytes of its frames, which are regions, or pages where the machine gives it
    out by pages.
    """
    return s.frames * (
        s.trace.geometry.page if s.machine.near.frame == "page" else s.trace.geometry.region
    )


def spell(policy: Policy) -> str:
    """A policy as people write it, with the options that differ from their defaults.

    >>> from tidegate import prefetch
    >>> spell(prefetch.make("tree(threshold=75)"))
    'tree(threshold=75)'
    """
    declared = type(policy).options()
    changed = [
        f"{k}={v}"
        for k, v in policy.settings().items()
        if k in declared and v != declared[k].default
    ]
    name = policy.name or type(policy).__name__
    return f"{name}({', '.join(changed)})" if changed else name


def _notes(s: Simulation) -> list[str]:
    """What a reader of the figures should know."""
    notes = []
    for policy in (s.eviction, s.prefetch, s.placement):
        if policy.sees.level not in s.machine.offers:
            notes.append(
                f"{spell(policy)} sees {policy.sees.level}; "
                f"the hardware of {s.machine.name} shows {', '.join(s.machine.offers)}"
            )
    if s.trace.plan is None and isinstance(s.placement, Planned):
        notes.append(
            f"nobody compiled {s.trace.name}, so {spell(s.placement)} is told what its trace shows: a perfect profile, "
            f"where a compiler would estimate"
        )
    return notes
