"""Comparisons: policies × sizes on one or several workloads, with Belady's line as the bound.

compare ──▶ ComparisonSpec: a RunSpec and an Entry for each run ──▶ grid ──▶ Comparison
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import polars as pl

from tidegate import units
from tidegate.errors import TidegateError
from tidegate.experiments.grid import attempt_grid
from tidegate.experiments.labels import Labelled, distinct_labels
from tidegate.experiments.runs import Run
from tidegate.experiments.settings import MODELS, SIZES, GpuModel, TierModel, check_sizes
from tidegate.experiments.specification import RunSpec
from tidegate.machine.machine import Machine
from tidegate.options import expand, parse_spec
from tidegate.policies.registries import EvictionLike, PlacementLike, PrefetchLike, TieringLike
from tidegate.trace.geometry import Geometry
from tidegate.trace.trace import Trace
from tidegate.workloads.program import Program, WorkloadLike

if TYPE_CHECKING:
    from matplotlib.figure import Figure

T = TypeVar("T")
OneOrMore: TypeAlias = T | Iterable[T]

POLICIES = ("lrm", "fifo", "clock", "random", "mru", "lru-ideal")  # where none are given
BOUND, TIER_BOUND = "belady", "tier-belady"

# settings that may have several values
AXES = ("eviction", "prefetch", "system", "tiering", "placement", "machine", *SIZES)
_COUNTS = ("faults", "batches", "evictions", "pages_unused", "bytes_in", "bytes_out")
_TIER_COUNTS = ("hits", "middle_hits", "far_reads", "far_writes", "to_middle", "wasted_lookups")


@dataclass(frozen=True)
class Entry:
    """One place in a comparison: a policy (or system) on a workload and a machine, at one size.

    It has a ``run``, or ``failed`` says in one line why not.
    """

    workload: str
    provenance: str
    machine: str
    near: int  # bytes
    footprint: int  # bytes
    policy: str  # its label
    run: Run | None = None
    failed: str = ""


@dataclass(frozen=True, repr=False)
class Comparison:
    """The runs of a comparison: workload by workload, policies in the order given.

    ``parts``: a comparison for each workload and machine. Policies that failed have entries, too.
    """

    entries: list[Entry]
    compared: str  # eviction, system or tiering

    def __repr__(self) -> str:
        from tidegate.experiments.display import comparison_text

        return comparison_text(self)

    def _repr_html_(self) -> str:
        from tidegate.experiments.display import comparison_html

        return comparison_html(self)

    @property
    def runs(self) -> list[Run]:
        """The runs that did not fail."""
        return [e.run for e in self.entries if e.run is not None]

    @property
    def failures(self) -> list[Entry]:
        """The entries without a run."""
        return [e for e in self.entries if e.run is None]

    @property
    def policies(self) -> list[str]:
        return list(dict.fromkeys(e.policy for e in self.entries))

    @property
    def workloads(self) -> list[str]:
        return list(dict.fromkeys(e.workload for e in self.entries))

    @property
    def sizes(self) -> list[int]:
        """Near memory, in bytes, from the largest."""
        return sorted({e.near for e in self.entries}, reverse=True)

    @cached_property
    def parts(self) -> list[Comparison]:
        """A comparison for each workload and machine."""
        found: dict[tuple[str, str], list[Entry]] = {}
        for e in self.entries:
            found.setdefault((e.workload, e.machine), []).append(e)
        return [Comparison(entries, self.compared) for entries in found.values()]

    @property
    def others(self) -> str:
        """The policies that are not compared, for titles; nothing for systems."""
        facts = [r.facts for r in self.runs]
        if self.compared == "tiering":
            return f"victims by {facts[0]['eviction']} · " if facts else ""
        names = " and ".join(dict.fromkeys(str(f["prefetch"]) for f in facts))
        return "" if self.compared == "system" or not names else f"{names} prefetch · "

    def entry(self, policy: str, near: int) -> Entry:
        """Return the entry of one policy at one size, of a comparison on one workload."""
        if len(self.parts) > 1:
            raise TidegateError(
                "this comparison has several workloads or machines; take one of its parts, "
                "such as comparison.parts[0]"
            )
        for e in self.entries:
            if (e.policy, e.near) == (policy, near):
                return e
        sizes = ", ".join(map(str, self.sizes))
        raise TidegateError(
            f"the comparison has {', '.join(self.policies)} with {sizes} bytes, "
            f"got {policy} with {near}"
        )

    def run(self, policy: str, near: int) -> Run:
        """Return the run of one policy at one size. Raise an error if it failed."""
        entry = self.entry(policy, near)
        if entry.run is None:
            raise TidegateError(f"{policy} failed: {entry.failed}")
        return entry.run

    @cached_property
    def table(self) -> pl.DataFrame:
        """A row per run. ``speedup`` is against the first policy on the same workload and machine,
        at the same size. The row of a run that failed says why in ``failed``, and has no figures.
        """
        rows = [self._row(e, part) for part in self.parts for e in part._by_size()]
        columns = max(rows, key=len)  # those of failed runs are fewer
        ordered = [{name: row.get(name) for name in columns} for row in rows]
        return pl.DataFrame(ordered, infer_schema_length=None)

    def _by_size(self) -> list[Entry]:
        return [self.entry(p, near) for near in self.sizes for p in self.policies]

    def _row(self, e: Entry, part: Comparison) -> dict[str, Any]:
        tiered = self.compared == "tiering"
        r, first = e.run, part.entry(part.policies[0], e.near).run
        row = {"workload": e.workload, "machine": e.machine, "near_bytes": e.near}
        if not tiered:
            row["oversubscription"] = e.footprint / e.near - 1
        row |= {"policy": e.policy, "failed": e.failed or None}
        if r is None:
            return row
        return {
            **row,
            **({"middle_bytes": r.facts["middle_bytes"]} if tiered else {}),
            "time_ns": r.time,
            "speedup": None if first is None else first.time / r.time,
            **{name: r.summary[name] for name in (_TIER_COUNTS if tiered else _COUNTS)},
            **{f"{part}_ns": ns for part, ns in r.parts.items()},
            "run": r.key,
            "from_store": r.from_store,
        }

    def plot(self, path: str | Path | None = None) -> Figure:
        """Draw time by parts at the middle size, and time over size where there are several; a row
        of pictures for each workload.
        """
        from tidegate.display.figures import save_figure
        from tidegate.experiments.plots import plot_comparison

        figure = plot_comparison(self)
        if path is not None:
            title = f"{', '.join(self.workloads)}: {len(self.policies)} policies"
            save_figure(figure, Path(path), title=title)
        return figure


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
        return parse_spec(policy)[0].lower() == BOUND
    return getattr(policy, "name", "") == BOUND
