"""Comparisons: policies × sizes on one workload, with Belady's line as the bound.

compare ──▶ ComparisonSpec: a RunSpec and a label for each run ──▶ grid ──▶ Comparison
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from tidegate import units
from tidegate.errors import TidegateError, UnknownName
from tidegate.experiments import two_tiers
from tidegate.experiments.grid import run_grid
from tidegate.experiments.naming import spell
from tidegate.experiments.runs import Run
from tidegate.experiments.specification import RunSpec, check_sizes
from tidegate.options import parse_spec
from tidegate.simulation.gpu.simulation import Simulation
from tidegate.simulation.tiers.simulation import Tiered

if TYPE_CHECKING:
    from matplotlib.figure import Figure

POLICIES = ("lrm", "fifo", "clock", "random", "mru", "lru-ideal")  # where none are given
BOUND, TIER_BOUND = "belady", "tier-belady"

_AXES = {
    "eviction": "evictions",
    "prefetch": "prefetches",
    "system": "systems",
    "tiering": "tierings",
}
_COUNTS = ("faults", "batches", "evictions", "pages_unused", "bytes_in", "bytes_out")
_TIER_COUNTS = ("hits", "middle_hits", "far_reads", "far_writes", "to_middle", "wasted_lookups")


@dataclass(frozen=True, repr=False)
class Comparison:
    """The runs of a comparison, largest near memory first; policies in the order given."""

    runs: list[Run]
    labels: list[str]  # of each run: its policy or system
    compared: str  # eviction, system or tiering

    def __repr__(self) -> str:
        sizes = ", ".join(map(units.show_size, self.sizes))
        names = ", ".join(self.policies)
        return f"<Comparison on {self.runs[0].facts['workload']}: {names} with {sizes}>"

    @property
    def policies(self) -> list[str]:
        return list(dict.fromkeys(self.labels))

    @property
    def sizes(self) -> list[int]:
        """Near memory, in bytes, from the largest."""
        return sorted({r.facts["near_bytes"] for r in self.runs}, reverse=True)

    @property
    def others(self) -> str:
        """The policies that are not compared, for titles; nothing for systems."""
        facts = self.runs[0].facts
        if self.compared == "tiering":
            return f"victims by {facts['eviction']} · "
        names = " and ".join(dict.fromkeys(str(r.facts["prefetch"]) for r in self.runs))
        return "" if self.compared == "system" else f"{names} prefetch · "

    def run(self, policy: str, near: int) -> Run:
        """Return the run of one policy at one size."""
        labelled = zip(self.labels, self.runs, strict=True)
        return next(r for name, r in labelled if (name, r.facts["near_bytes"]) == (policy, near))

    @cached_property
    def table(self) -> pl.DataFrame:
        """A row per run. ``speedup`` is against the first policy at the same size."""
        return pl.DataFrame([self._row(p, near) for near in self.sizes for p in self.policies])

    def _row(self, policy: str, near: int) -> dict[str, Any]:
        r, first = self.run(policy, near), self.run(self.policies[0], near)
        tiered = self.compared == "tiering"
        size = (
            {"middle_bytes": r.facts["middle_bytes"]}
            if tiered
            else {"oversubscription": r.facts["footprint_bytes"] / near - 1}
        )
        return {
            "near_bytes": near,
            **size,
            "policy": policy,
            "time_ns": r.time,
            "speedup": first.time / r.time,
            **{name: r.summary[name] for name in (_TIER_COUNTS if tiered else _COUNTS)},
            **{f"{part}_ns": ns for part, ns in r.parts.items()},
            "run": r.key,
        }

    def plot(self, path: str | Path | None = None) -> Figure:
        """Draw time by parts at the middle size, and time over size where there are several."""
        from tidegate.experiments.plots import plot_comparison
        from tidegate.figures import save_figure

        figure = plot_comparison(self)
        if path is not None:
            title = f"{self.runs[0].facts['workload']}: {len(self.policies)} policies"
            save_figure(figure, Path(path), title=title)
        return figure


def compare(
    workload: Any,
    evictions: Any = None,
    prefetches: Any = None,
    *,
    workers: int | None = None,
    cache: bool = True,
    progress: Callable[[RunSpec], None] = lambda spec: None,
    **settings: Any,
) -> Comparison:
    """Compare eviction (and prefetch) policies, ``systems`` or ``tierings`` over sizes of near
    memory (``near``, ``oversubscribe`` or ``fits``). ``bound=False`` leaves Belady's line out.
    Other keywords are ``RunSpec``'s fields.

    >>> compare("cyclic(bytes=64MiB)", ["lrm", "mru"], oversubscribe=["50%"]).policies
    ['lrm', 'mru', 'belady']
    >>> compare("cyclic(bytes=8MiB)", tierings=["bam", "tier-order"], near=["1MiB"]).policies
    ['bam', 'tier-order', 'tier-belady']
    """
    spec = ComparisonSpec.of(workload, evictions, prefetches, **settings)
    return spec.answer(workers=workers, cache=cache, progress=progress)


@dataclass(frozen=True)
class ComparisonSpec:
    """What a comparison is made from: a specification and a label for each run."""

    runs: list[RunSpec]
    labels: list[str]
    compared: str

    @classmethod
    def of(
        cls,
        workload: Any,
        evictions: Any = None,
        prefetches: Any = None,
        *,
        systems: Any = (),
        tierings: Any = (),
        near: Any = (),
        oversubscribe: Any = (),
        fits: Any = (),
        bound: bool = True,
        **settings: Any,
    ) -> ComparisonSpec:
        """Return the specification, with Belady's runs last; every name in it is known."""
        systems, tierings = several(systems), several(tierings)
        for name in _AXES.keys() & settings:
            if not (name == "eviction" and tierings):
                raise UnknownName("keyword of a comparison", name, _AXES.values())
        policies = evictions is not None or prefetches is not None
        if tierings and (systems or policies):
            raise TidegateError("tierings and other policies were both given; give one of them")
        if systems and (policies or settings.get("placement") is not None):
            raise TidegateError(
                "systems and policies were both given; a system is a set of policies, give one"
            )
        compared = "tiering" if tierings else "system" if systems else "eviction"
        if compared == "tiering":
            contenders = _tierings(tierings, bound)
        elif compared == "system":
            contenders = _systems(systems, bound)
        else:
            evictions = POLICIES if evictions is None else several(evictions)
            contenders = _evictions(evictions, several(prefetches), bound)
        sizes = _sizes(
            near=[units.size(n) for n in several(near)],
            oversubscribe=several(oversubscribe),
            fits=several(fits),
        )
        base = RunSpec.from_settings(workload, settings | {compared: contenders[0][compared]})
        runs = [dataclasses.replace(base, **c, **size) for size in sizes for c in contenders]
        return cls(runs, _labels(runs, compared), compared)

    def answer(
        self,
        *,
        workers: int | None = None,
        cache: bool = True,
        progress: Callable[[RunSpec], None] = lambda spec: None,
    ) -> Comparison:
        """Run everything, or load it from the store."""
        runs = run_grid(self.runs, workers=workers, cache=cache, progress=progress)
        return Comparison(runs, self.labels, self.compared)


def _evictions(evictions: Sequence[Any], prefetches: Sequence[Any], bound: bool) -> list[Any]:
    if not (evictions and prefetches):
        raise TidegateError("evictions must name at least one policy, such as lrm, got none")
    added = [BOUND] if bound and not any(map(_is_bound, evictions)) else []
    return [{"eviction": e, "prefetch": p} for e in [*evictions, *added] for p in prefetches]


def _systems(systems: Sequence[str], bound: bool) -> list[Any]:
    """Belady's eviction is added to the first system's prefetch and placement policies."""
    added = [{"system": systems[0], "eviction": BOUND}] if bound else []
    return [{"system": name} for name in systems] + added


def _tierings(tierings: Sequence[Any], bound: bool) -> list[Any]:
    """The bound chooses victims itself, so it has no eviction policy."""
    added = [TIER_BOUND] if bound and TIER_BOUND not in tierings else []
    return [
        {"tiering": t} | ({"eviction": None} if t == TIER_BOUND else {})
        for t in [*tierings, *added]
    ]


def _sizes(**given: Sequence[Any]) -> list[dict[str, Any]]:
    """Return the sizes of near memory, each as a field of a run."""
    check_sizes([name for name, values in given.items() if values])
    sizes = [{name: value} for name, values in given.items() for value in values]
    return sizes or [{}]


def _labels(runs: Sequence[RunSpec], compared: str) -> list[str]:
    """Return what each run is called; look up every name, and refuse two runs that are equal."""
    names = [_size_and_policies(spec.prepare()) for spec in runs]
    for n, at in enumerate(names):
        if at in names[:n]:
            raise TidegateError(
                f"two runs are the same, {' + '.join(at[1:])} with {units.show_size(at[0])}; "
                "give each once"
            )
    if compared == "system":
        return [BOUND if spec.eviction == BOUND else spec.system for spec in runs]
    several_prefetches = compared == "eviction" and len({at[2] for at in names}) > 1
    return [" + ".join(at[1:3]) if several_prefetches else at[1] for at in names]


def _size_and_policies(s: Simulation | Tiered) -> tuple[Any, ...]:
    if isinstance(s, Tiered):
        return s.near * s.trace.geometry.page, spell(s.placement)
    return two_tiers.near_bytes(s), spell(s.eviction), spell(s.prefetch), spell(s.placement)


def several(given: Any) -> Sequence[Any]:
    """Return what was given as a sequence; one name, size, policy or class may stand alone."""
    return (given,) if isinstance(given, str) or not isinstance(given, Iterable) else list(given)


def _is_bound(policy: Any) -> bool:
    if isinstance(policy, str):
        return parse_spec(policy)[0].lower() == BOUND
    return getattr(policy, "name", "") == BOUND
