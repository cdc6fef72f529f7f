"""tidegate compare: policies × sizes on one workload, with Belady's line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tidegate.cli import asked, output, tiers
from tidegate.cli.progress import Bar
from tidegate.errors import TidegateError

if TYPE_CHECKING:
    from tidegate.experiments import Comparison

Evictions = Annotated[
    list[str] | None,
    typer.Option(
        "--eviction",
        "-e",
        help="Policies to race; repeat it or use commas. By default lrm,fifo,clock,random,mru,lru-ideal.",
    ),
]
Prefetches = Annotated[
    str | None,
    typer.Option("--prefetch", help="A prefetch policy, or several, with commas: none,tree."),
]
Systems = Annotated[
    str | None,
    typer.Option(
        "--system",
        help="Published systems to race, with commas, in place of policies: uvm,tm,tm++.",
    ),
]
Nears = Annotated[
    str | None, typer.Option("--near", help="Sizes of near memory, with commas: 256MiB,512MiB.")
]
Levels = Annotated[
    str | None,
    typer.Option("--oversubscribe", help="Levels of oversubscription, with commas: 20%,50%,100%."),
]


def compare(
    workload: asked.Workload,
    eviction: Evictions = None,
    system: Systems = None,
    bytes: asked.Bytes = None,
    scale: asked.Scale = None,
    near: Nears = None,
    oversubscribe: Levels = None,
    machine: asked.MachineOrDefault = None,
    prefetch: Prefetches = None,
    placement: asked.Placement = None,
    tiering: tiers.Tierings = None,
    middle: tiers.Middle = None,
    no_flush: tiers.NoFlush = False,
    geometry: asked.GeometryText = None,
    slots: asked.Slots = None,
    dirty_only: asked.DirtyOnly = False,
    pipelined: asked.Pipelined = None,
    observed: asked.Observed = None,
    samples: asked.Samples = 0,
    belady: Annotated[bool, typer.Option("--belady/--no-belady", help="Add Belady's line.")] = True,
    workers: Annotated[
        int | None,
        typer.Option("--workers", min=1, help="Processes; one per core for large grids."),
    ] = None,
    no_cache: asked.NoCache = False,
    as_json: output.AsJson = False,
    as_csv: output.AsCsv = False,
    plot: output.PlotTo = None,
) -> None:
    """Race eviction policies, or systems, on one workload, at one or several sizes of near memory.

    tidegate compare matmul --oversubscribe 20%,50%,100% --plot race.png
    """
    output.check_asked(as_json, as_csv, plot)
    asked.check_lists(near=near, oversubscribe=oversubscribe, prefetch=prefetch, system=system)
    options: dict[str, Any]
    if tiering is not None:
        tiers.check(
            system=system,
            prefetch=prefetch,
            placement=placement,
            geometry=geometry,
            dirty_only=dirty_only,
            pipelined=pipelined is not None,
            observed=observed,
            samples=samples,
        )
        if len(evictions := [name for given in eviction or [] for name in asked.split(given)]) > 1:
            raise TidegateError(
                "--tiering races placements under one eviction policy; give one --eviction, or none for CLOCK"
            )
        options = {
            "near": asked.split(near),
            "oversubscribe": asked.split(oversubscribe),
            "bound": belady,
            "middle": middle,
            "machine": machine or tiers.MACHINE,
            "eviction": evictions[0] if evictions else None,
            "bytes": bytes,
            "scale": scale,
            "slots": slots,
            "flush": not no_flush,
        }
        _race_tiers(
            workload, asked.split(tiering), options, workers, no_cache, as_json, as_csv, plot
        )
        return
    tiers.refuse(middle=middle, no_flush=no_flush)
    from tidegate.experiments import compare as race
    from tidegate.experiments.comparison import RACERS, asks_of

    systems = asked.split(system)
    if systems and (eviction or prefetch or placement):
        raise TidegateError(
            "--system was given, and policies too; a system is a set of policies, give one or the other"
        )
    racers = (
        list(RACERS)
        if eviction is None
        else [name for given in eviction for name in asked.split(given)]
    )
    if not racers:
        raise TidegateError(
            f"'{', '.join(eviction or [])}' names no policy; expected some, such as lrm,mru"
        )
    options = {
        "near": asked.split(near),
        "oversubscribe": asked.split(oversubscribe),
        "bound": belady,
        "bytes": bytes,
        "machine": machine or asked.MACHINE,
        "prefetches": asked.split(prefetch) or [None],
        "placement": placement,
        "geometry": geometry,
        "slots": slots,
        "dirty_only": dirty_only,
        "pipelined": pipelined,
        "scale": scale,
        "observed": observed,
        "samples": samples,
        "systems": systems,
    }
    with Bar(
        f"compare on {workload}", total=len(asks_of(workload, racers, **options)), unit="runs"
    ) as bar:
        found = race(
            workload,
            racers,
            workers=workers,
            cache=not no_cache,
            progress=lambda ask: bar.advance(),
            **options,
        )
    _tell(found, _show, as_json, as_csv, plot)


def _race_tiers(
    workload: str,
    racers: list[str],
    options: dict[str, Any],
    workers: int | None,
    no_cache: bool,
    as_json: bool,
    as_csv: bool,
    plot: Path | None,
) -> None:
    from tidegate.experiments.tier_race import asks_of, race_tiers

    with Bar(
        f"compare on {workload}", total=len(asks_of(workload, racers, **options)), unit="runs"
    ) as bar:
        found = race_tiers(
            workload,
            racers,
            workers=workers,
            cache=not no_cache,
            progress=lambda ask: bar.advance(),
            **options,
        )
    _tell(found, tiers.show_race, as_json, as_csv, plot)


def _tell(
    found: Any, show: Callable[[Any], None], as_json: bool, as_csv: bool, plot: Path | None
) -> None:
    rows = found.table.to_dicts()
    output.tell(found, rows, rows, show, as_json, as_csv, plot)


def _show(found: Comparison) -> None:
    from tidegate import units

    f = found.runs[0].facts
    print(
        f"{f['workload']} ({f['provenance']}), {units.show_size(f['footprint_bytes'])} · {found.prefetch}{f['machine']}"
    )
    table = found.table
    for near in found.sizes:
        rows = table.filter(table["near_bytes"] == near).to_dicts()
        slowest = max(r["time_ns"] for r in rows)
        output.print_table(
            [
                "system" if found.systems else "eviction",
                "time",
                f"against {found.policies[0]}",
                "faults",
                "evictions",
                "in",
                "out",
                "",
            ],
            [
                (
                    r["policy"],
                    units.show_duration(r["time_ns"]),
                    f"{r['speedup']:.2f}×",
                    f"{r['faults']:,}",
                    f"{r['evictions']:,}",
                    units.show_size(r["bytes_in"]),
                    units.show_size(r["bytes_out"]),
                    _bar(r["time_ns"] / slowest),
                )
                for r in rows
            ],
            title=f"near memory {units.show_size(near)}, {rows[0]['oversubscription']:.0%} oversubscribed",
        )
    for note in dict.fromkeys(note for r in found.runs for note in r.notes):
        print(f"note: {note}")


def _bar(share: float) -> str:
    return ("█" * round(16 * share)).ljust(16)
