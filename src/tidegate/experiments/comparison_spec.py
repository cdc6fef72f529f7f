"""Comparisons: policies × sizes on one or several workloads, with Belady's line as the bound.

compare ──▶ ComparisonSpec: a RunSpec and an Entry for each run ──▶ grid ──▶ Comparison
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

from tidegate import units
from tidegate.errors import TidegateError
from tidegate.experiments.comparison import Comparison, Entry
from tidegate.experiments.grid import attempt_grid
from tidegate.experiments.labels import Labelled, distinct_labels
from tidegate.experiments.settings import MODELS, SIZES, GpuModel, TierModel, check_sizes
from tidegate.experiments.specification import RunSpec
from tidegate.machine.machine import Machine
from tidegate.options import expand, spec_name
from tidegate.policies.registries import EvictionLike, PlacementLike, PrefetchLike, TieringLike
from tidegate.trace.geometry import Geometry
from tidegate.trace.trace import Trace
from tidegate.workloads.program import Program, WorkloadLike

T = TypeVar("T")
OneOrMore: TypeAlias = T | Iterable[T]

POLICIES = ("lrm", "fifo", "clock", "random", "mru", "lru-ideal")  # where none are given
BOUND, TIER_BOUND = "belady", "tier-belady"

# settings that may have several values
AXES = ("eviction", "prefetch", "system", "tiering", "placement", "machine", *SIZES)


def compare(
    workload: OneOrMore[WorkloadLike],
    eviction: OneOrMore[EvictionLike] | None = None,
    prefetch: OneOrMore[PrefetchLike] | None = None,
    *,
    system: OneOrMore[str] | None = None,
    tiering: OneOrMore[TieringLike] | None = None,
    placement: OneOrMore[PlacementLike] | None = None,
    machine: OneOrMore[str | Machine] | None = None,
    near: OneOrMore[str | int] | None = None,
    oversubscribe: OneOrMore[str | float] | None = None,
    fits: OneOrMore[str | float] | None = None,
    middle: str | int | None = None,
    bytes: str | int | None = None,
    scale: str | float | None = None,
    geometry: str | Geometry | None = None,
    slots: int | None = None,
    compiled: bool = True,
    checked: bool = False,
    gpu: GpuModel = GpuModel(),
    tiers: TierModel = TierModel(),
    bound: bool = True,
    workers: int | None = None,
    cache: bool = True,
    progress: Callable[[RunSpec], None] = lambda spec: None,
) -> Comparison:
    """Compare eviction (and prefetch) policies, systems or tierings over sizes of near memory.

    The keywords up to ``fits``, and the workload, take one value or several: names, classes or
    objects. A name may be a sweep of its options. The others are ``RunSpec``'s. ``bound=False``
    leaves Belady's line out. A run that fails is in ``failures``; if all fail, an error is raised.

    >>> compare("cyclic(bytes=64MiB)", ["lrm", "mru"], oversubscribe="50%").policies
    ['lrm', 'mru', 'belady']
    >>> compare("cyclic(bytes=8MiB)", tiering=["bam", "tier-order"], near="1MiB").policies
    ['bam', 'tier-order', 'tier-belady']
    >>> compare("cyclic(bytes=64MiB, passes=1|2)", "random(seed=1|2)", bound=False).table.height
    4
    """
    given = locals()
    settings = {n: v for n, v in given.items() if n not in ("workload", *_HOW) and v is not None}
    spec = ComparisonSpec.make(workload, settings, bound)
    return spec.run(workers=workers, cache=cache, progress=progress)


_HOW = ("bound", "workers", "cache", "progress")  # how it is done, not what is compared


@dataclass(frozen=True)
class ComparisonSpec:
    """What a comparison is made from: a specification and an entry for each run."""

    runs: list[RunSpec]
    entries: list[Entry]
    compared: str

    @classmethod
    def make(cls, workload: Any, settings: Mapping[str, Any], bound: bool = True) -> ComparisonSpec:
        """Return the specification, with Belady's runs last; every name in it is known.

        ``settings``: those of a run, of which ``AXES`` may have several values.
        """
        axes = {name: as_list(settings[name]) for name in AXES if name in settings}
        shared = {name: value for name, value in settings.items() if name not in AXES}
        _check_contenders(axes)
        compared = next((name for name in ("tiering", "system") if axes.get(name)), "eviction")
        contenders = _CONTENDERS[compared](axes, bound)
        sizes = _sizes({name: axes.get(name, []) for name in SIZES})
        each = (_workloads(workload), axes.get("machine") or [None], sizes, contenders)
        runs = [
            _specify(on, shared | {"machine": m} | size | contender)
            for on, m, size, contender in itertools.product(*each)
        ]
        return cls(runs, _entries(runs, compared), compared)

    def run(
        self,
        *,
        workers: int | None = None,
        cache: bool = True,
        progress: Callable[[RunSpec], None] = lambda spec: None,
    ) -> Comparison:
        """Run everything, or load it from the store. Raise an error if every run fails."""
        done = attempt_grid(self.runs, workers=workers, cache=cache, progress=progress)
        errors = [d for d in done if isinstance(d, TidegateError)]
        if len(errors) == len(done):
            raise errors[0]
        entries = [
            dataclasses.replace(e, failed=str(d))
            if isinstance(d, TidegateError)
            else dataclasses.replace(e, run=d)
            for e, d in zip(self.entries, done, strict=True)
        ]
        return Comparison(entries, self.compared)


def _check_contenders(axes: Mapping[str, Sequence[Any]]) -> None:
    """Refuse lists without anything in them, and policies beside what has its own."""
    for name, values in axes.items():
        if not values:
            raise TidegateError(f"{name} must name at least one, got none")
    policies = [name for name in ("eviction", "prefetch", "placement") if name in axes]
    if "tiering" in axes:
        others = [name for name in ("system", "prefetch") if name in axes]
        if others:
            raise TidegateError(f"tiering and {others[0]} were both given; give one of them")
        if len(axes.get("eviction", ())) > 1:
            names = ", ".join(map(str, axes["eviction"]))
            raise TidegateError(f"tiering needs one eviction, or none for CLOCK, got {names}")
    elif "system" in axes and policies:
        raise TidegateError(
            f"system and {policies[0]} were both given; a system is a set of policies, give one"
        )


def _specify(workload: Any, settings: dict[str, Any]) -> RunSpec:
    models = {name: settings.pop(name) for name in MODELS if name in settings}
    return RunSpec(workload, **models).change(**settings)


def _evictions(axes: Mapping[str, Sequence[Any]], bound: bool) -> list[dict[str, Any]]:
    evictions = axes.get("eviction", POLICIES)
    added = [BOUND] if bound and not any(map(_is_bound, evictions)) else []
    return [
        {"eviction": eviction, "prefetch": prefetch, "placement": placement}
        for eviction in [*evictions, *added]
        for prefetch in axes.get("prefetch", [None])
        for placement in axes.get("placement", [None])
    ]


def _systems(axes: Mapping[str, Sequence[Any]], bound: bool) -> list[dict[str, Any]]:
    """Belady's eviction is added to the first system's prefetch and placement policies."""
    systems = axes["system"]
    added = [{"system": systems[0], "eviction": BOUND}] if bound else []
    return [{"system": name} for name in systems] + added


def _tierings(axes: Mapping[str, Sequence[Any]], bound: bool) -> list[dict[str, Any]]:
    """The bound chooses victims itself, so it has no eviction policy."""
    tierings = axes["tiering"]
    added = [TIER_BOUND] if bound and TIER_BOUND not in tierings else []
    others = {name: axes[name][0] for name in ("eviction", "placement") if name in axes}
    return [
        {"tiering": t, **others} | ({"eviction": None} if t == TIER_BOUND else {})
        for t in [*tierings, *added]
    ]


_CONTENDERS = {"eviction": _evictions, "system": _systems, "tiering": _tierings}


def _workloads(given: Any) -> Sequence[Any]:
    found = as_list(given)
    if not found:
        raise TidegateError("workload must name at least one workload, such as matmul, got none")
    return found


def _sizes(given: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
    """Return the sizes of near memory, each as a setting of a run."""
    check_sizes([name for name, values in given.items() if values])
    sizes = [{name: value} for name, values in given.items() for value in values]
    return sizes or [{}]


@dataclass(frozen=True)
class _Resolved:
    """What is known of a run before it is made."""

    policies: tuple[Labelled, ...]
    workload: Labelled
    machine: Labelled
    near: int
    footprint: int
    provenance: str

    @property
    def identity(self) -> Any:
        """Equal for runs that are equal."""
        named = (self.workload, self.machine, *self.policies)
        return self.near, *(thing.identity for thing in named)


def _resolve(spec: RunSpec) -> _Resolved:
    run = spec.resolve()
    shown = ("tiering",) if spec.tiering is not None else ("eviction", "prefetch", "placement")
    return _Resolved(
        tuple(Labelled.of(run.policies[name], getattr(spec, name)) for name in shown),
        _name_of(run.trace, spec.workload),
        Labelled(run.machine.name, str(spec.machine or ""), run.machine),
        run.near,
        run.trace.footprint,
        run.trace.provenance.value,
    )


def _name_of(trace: Trace, given: Any) -> Labelled:
    if isinstance(trace, Program):
        return Labelled.of(trace.workload, given)
    file = isinstance(given, str | Path)
    return Labelled(trace.name, str(given) if file else "", str(given) if file else id(given))


def _entries(runs: Sequence[RunSpec], compared: str) -> list[Entry]:
    """Return an entry for each run; look up every name, and refuse two runs that are equal."""
    resolved = [_resolve(spec) for spec in runs]
    seen = set()
    for p in resolved:
        if p.identity in seen:
            raise TidegateError(
                f"two runs are the same, {' + '.join(named.text for named in p.policies)} with "
                f"{units.show_size(p.near)}; give each once"
            )
        seen.add(p.identity)
    policies = distinct_labels([p.policies for p in resolved])
    if compared == "system":
        policies = [BOUND if spec.eviction == BOUND else spec.system for spec in runs]
    workloads = distinct_labels([[p.workload] for p in resolved])
    machines = distinct_labels([[p.machine] for p in resolved])
    return [
        Entry(workload, p.provenance, machine, p.near, p.footprint, policy)
        for p, policy, workload, machine in zip(
            resolved, policies, workloads, machines, strict=True
        )
    ]


def as_list(given: Any) -> Sequence[Any]:
    """Return what was given as a sequence; one name, size, policy or class may stand alone. A name
    that is a sweep of options becomes several.
    """
    alone = isinstance(given, str) or not isinstance(given, Iterable)
    found = [given] if alone else list(given)
    return [one for x in found for one in (expand(x) if isinstance(x, str) else [x])]


def _is_bound(policy: Any) -> bool:
    if isinstance(policy, str):
        return spec_name(policy).lower() == BOUND
    return getattr(policy, "name", "") == BOUND
