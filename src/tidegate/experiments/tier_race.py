"""A race of placements over three tiers, at one or several sizes of near memory."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from tidegate import units
from tidegate.errors import TidegateError
from tidegate.experiments.ask import make_ask, spell
from tidegate.experiments.comparison import several
from tidegate.experiments.grid import SERIAL_BELOW, spread
from tidegate.experiments.runs import Run
from tidegate.experiments.tiered import TieredAsk

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BOUND = "tier-belady"


@dataclass(frozen=True, repr=False)
class TierRace:
    """The runs of a race, largest near memory first; placements in the order in which they were
    given.
    """

    runs: list[Run]

    def __repr__(self) -> str:
        sizes = ", ".join(map(units.show_size, self.sizes))
        return f"<TierRace on {self.runs[0].facts['workload']}: {', '.join(self.policies)} with {sizes}>"

    @property
    def policies(self) -> list[str]:
        return list(dict.fromkeys(str(r.facts["tiering"]) for r in self.runs))

    @property
    def sizes(self) -> list[int]:
        """Near memory, in bytes, from the largest."""
        return sorted({r.facts["near_bytes"] for r in self.runs}, reverse=True)

    def run(self, policy: str, near: int) -> Run:
        """The run of one placement at one size."""
        return next(
            r for r in self.runs if (r.facts["tiering"], r.facts["near_bytes"]) == (policy, near)
        )

    @cached_property
    def table(self) -> pl.DataFrame:
        """A row per run. ``speedup`` is against the first placement at the same size."""
        rows: list[dict[str, Any]] = []
        for near in self.sizes:
            first = self.run(self.policies[0], near)
            for policy in self.policies:
                r = self.run(policy, near)
                counted = (
                    "hits",
                    "middle_hits",
                    "far_reads",
                    "far_writes",
                    "to_middle",
                    "wasted_lookups",
                )
                rows.append(
                    {
                        "near_bytes": near,
                        "middle_bytes": r.facts["middle_bytes"],
                        "policy": policy,
                        "time_ns": r.time,
                        "speedup": first.time / r.time,
                        **{c: r.counts[c] for c in counted},
                        **{f"{part}_ns": ns for part, ns in r.parts.items()},
                        "run": r.key,
                    }
                )
        return pl.DataFrame(rows)

    def plot(self, path: str | Path | None = None) -> Figure:
        """Time by parts, and what the SSD moved, at the middle size; time over size where there are
        several.
        """
        from tidegate.experiments.tier_plots import plot_race
        from tidegate.figures import save_figure

        figure = plot_race(self)
        if path is not None:
            save_figure(
                figure,
                Path(path),
                title=f"{self.runs[0].facts['workload']}: {len(self.policies)} placements",
            )
        return figure


def race_tiers(
    workload: Any,
    tiering: Sequence[Any],
    *,
    near: Sequence[str | int] = (),
    oversubscribe: Sequence[str | float] = (),
    bound: bool = True,
    workers: int | None = None,
    cache: bool = True,
    progress: Callable[[TieredAsk], None] = lambda ask: None,
    **asked: Any,
) -> TierRace:
    """Race placements over three tiers. Other keywords are those of ``TieredAsk``.

    >>> race = race_tiers("cyclic(bytes=8MiB, passes=3)", ["bam", "tier-order"], near=["1MiB"])
    >>> race.policies
    ['bam', 'tier-order', 'tier-belady']
    """
    asks = asks_of(workload, tiering, near=near, oversubscribe=oversubscribe, bound=bound, **asked)
    if workers is None and len(asks) < SERIAL_BELOW:
        workers = 1
    return TierRace(spread(partial(_answer, cache=cache), asks, workers=workers, progress=progress))


def asks_of(
    workload: Any,
    tiering: Sequence[Any],
    *,
    near: Sequence[str | int] = (),
    oversubscribe: Sequence[str | float] = (),
    bound: bool = True,
    **asked: Any,
) -> list[TieredAsk]:
    """The asks of a race, with the bound's last.

    The bound chooses victims itself, so it is the same for any eviction.
    """
    tiering, near, oversubscribe = several(tiering), several(near), several(oversubscribe)
    if near and oversubscribe:
        raise TidegateError(
            "near and oversubscribe were both given; they say the same thing, give one"
        )
    if not tiering:
        raise TidegateError("no placement was given; name at least one, such as tier-reuse")
    base = make_ask(TieredAsk, workload, asked)
    sizes: list[dict[str, Any]] = [{"near": units.size(n)} for n in near] or [
        {"oversubscribe": o} for o in oversubscribe
    ]
    names = [*tiering, *([BOUND] if bound and BOUND not in tiering else [])]
    racers: list[dict[str, Any]] = [
        {"tiering": n} | ({"eviction": None} if n == BOUND else {}) for n in names
    ]
    asks = [
        dataclasses.replace(base, **racer, **size) for size in sizes or [{}] for racer in racers
    ]
    # look every name up before the first run begins, and see that none is there twice
    seen = set()
    for ask in asks:
        s = ask.prepare()
        named = s.near, spell(s.placement)
        if named in seen:
            near = units.show_size(s.near * s.trace.geometry.page)
            raise TidegateError(
                f"two of those given are the same, {named[1]} with {near}; give each once"
            )
        seen.add(named)
    return asks


def _answer(ask: TieredAsk, cache: bool) -> Run:
    return ask.answer(cache)
