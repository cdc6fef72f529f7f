"""Compare: policies × sizes on one workload, with Belady's line to measure against."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from tidegate import units
from tidegate.errors import TidegateError
from tidegate.experiments.ask import OVERSUBSCRIBE, Ask, make_ask, near_bytes, spell
from tidegate.experiments.grid import run_grid
from tidegate.experiments.runs import PARTS, Run
from tidegate.options import parse_spec

if TYPE_CHECKING:
    from matplotlib.figure import Figure

RACERS = ("lrm", "fifo", "clock", "random", "mru", "lru-ideal")
BOUND = "belady"


@dataclass(frozen=True, repr=False)
class Comparison:
    """The runs of a comparison, largest near memory first; policies in the order in which they were
    given.
    """

    runs: list[Run]
    systems: tuple[str, ...] = ()  # what each run is called, where systems were raced

    def __repr__(self) -> str:
        sizes = ", ".join(map(units.show_size, self.sizes))
        return f"<Comparison on {self.runs[0].facts['workload']}: {', '.join(self.policies)} with {sizes}>"

    @property
    def policies(self) -> list[str]:
        return list(dict.fromkeys(self.label(r) for r in self.runs))

    def label(self, run: Run) -> str:
        """What a run is called here: its system, or its eviction policy, and its prefetcher where
        several were raced.
        """
        if self.systems:
            return next(
                name for name, own in zip(self.systems, self.runs, strict=True) if own is run
            )
        name = str(run.facts["eviction"])
        several = len({r.facts["prefetch"] for r in self.runs}) > 1
        return f"{name} + {run.facts['prefetch']}" if several else name

    @property
    def prefetch(self) -> str:
        """The prefetcher, or all of them, and the word; nothing where systems were raced, which
        have their own.
        """
        names = " and ".join(dict.fromkeys(str(r.facts["prefetch"]) for r in self.runs))
        return "" if self.systems else f"{names} prefetch · "

    @property
    def sizes(self) -> list[int]:
        """Near memory, in bytes, from the largest."""
        return sorted({r.facts["near_bytes"] for r in self.runs}, reverse=True)

    def run(self, policy: str, near: int) -> Run:
        """The run of one policy at one size."""
        return next(
            r for r in self.runs if self.label(r) == policy and r.facts["near_bytes"] == near
        )

    @property
    def table(self) -> pl.DataFrame:
        """A row per run. ``speedup`` is against the first policy at the same size."""
        rows: list[dict[str, Any]] = []
        for near in self.sizes:
            first = self.run(self.policies[0], near)
            for policy in self.policies:
                r = self.run(policy, near)
                rows.append(
                    {
                        "near_bytes": near,
                        "oversubscription": r.facts["footprint_bytes"] / near - 1,
                        "policy": policy,
                        "time_ns": r.time,
                        "speedup": first.time / r.time,
                        **{
                            c: r.counts[c]
                            for c in ("faults", "batches", "evictions", "pages_unused")
                        },
                        **{c: r.summary[c] for c in ("bytes_in", "bytes_out")},
                        **{f"{p}_ns": r.parts[p] for p in PARTS},
                        "run": r.key,
                    }
                )
        return pl.DataFrame(rows)

    def plot(self, path: str | Path | None = None) -> Figure:
        """Time by parts at the middle size, and time over size where there are several."""
        from tidegate.experiments.plots import plot_comparison
        from tidegate.figures import save_figure

        figure = plot_comparison(self)
        if path is not None:
            save_figure(
                figure,
                Path(path),
                title=f"{self.runs[0].facts['workload']}: {len(self.policies)} policies",
            )
        return figure


def compare(
    workload: Any,
    evictions: Sequence[Any] = RACERS,
    prefetches: Sequence[Any] = (None,),
    *,
    systems: Sequence[str] = (),
    near: Sequence[str | int] = (),
    oversubscribe: Sequence[str | float] = (),
    bound: bool = True,
    workers: int | None = None,
    cache: bool = True,
    progress: Callable[[Ask], None] = lambda ask: None,
    **asked: Any,
) -> Comparison:
    """Race eviction (and prefetch) policies, or ``systems``, over sizes of near memory. Other
    keywords are those of ``Ask``.

    >>> race = compare("cyclic(bytes=64MiB)", ["lrm", "mru"], oversubscribe=["50%"])
    >>> race.policies
    ['lrm', 'mru', 'belady']
    """
    if near and oversubscribe:
        raise TidegateError(
            "near and oversubscribe were both given; they say the same thing, give one"
        )
    asks = asks_of(
        workload,
        evictions,
        prefetches,
        systems=systems,
        near=near,
        oversubscribe=oversubscribe,
        bound=bound,
        **asked,
    )
    runs = run_grid(asks, workers=workers, cache=cache, progress=progress)
    return Comparison(
        runs, tuple(BOUND if a.eviction == BOUND else a.system for a in asks) if systems else ()
    )


def asks_of(
    workload: Any,
    evictions: Sequence[Any],
    prefetches: Sequence[Any] = (None,),
    *,
    systems: Sequence[str] = (),
    near: Sequence[str | int] = (),
    oversubscribe: Sequence[str | float] = (),
    bound: bool = True,
    **asked: Any,
) -> list[Ask]:
    """The asks of a comparison, with Belady's line last."""
    evictions, prefetches, systems = several(evictions), several(prefetches), several(systems)
    near, oversubscribe = several(near), several(oversubscribe)
    if not (systems or (evictions and prefetches)):
        raise TidegateError("no policy was given; name at least one, such as lrm")
    racers: list[dict[str, Any]]
    if systems:
        # Belady evicts for the first system, whose prefetcher and placement it keeps
        racers = [{"system": s} for s in systems] + (
            [{"system": systems[0], "eviction": BOUND}] if bound else []
        )
    else:
        names = [*evictions, *([BOUND] if bound and not any(map(_is_bound, evictions)) else [])]
        racers = [{"eviction": e, "prefetch": p} for e in names for p in prefetches]
    base = make_ask(Ask, workload, asked)
    sizes: list[dict[str, Any]] = [{"near": units.size(n)} for n in near] or [
        {"oversubscribe": o} for o in oversubscribe or (OVERSUBSCRIBE,)
    ]
    asks = [dataclasses.replace(base, **racer, **size) for size in sizes for racer in racers]
    # look every name up before the first run begins, and see that none is there twice
    seen = set()
    for ask in asks:
        s = ask.prepare()
        named = s.frames, spell(s.eviction), spell(s.prefetch), spell(s.placement)
        if named in seen:
            near = units.show_size(near_bytes(s))
            raise TidegateError(
                f"two of those given are the same, {' + '.join(named[1:])} with {near}; give each once"
            )
        seen.add(named)
    return asks


def several(given: Any) -> Sequence[Any]:
    """What was given, as a list: one name, size, policy or class may stand alone."""
    return (given,) if isinstance(given, str) or not isinstance(given, Iterable) else list(given)


def _is_bound(policy: Any) -> bool:
    return (
        parse_spec(policy)[0].lower() == BOUND
        if isinstance(policy, str)
        else getattr(policy, "name", "") == BOUND
    )
