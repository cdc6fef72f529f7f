"""tidegate compare: policies × sizes on one workload, with Belady's line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from tidegate.cli import output
from tidegate.cli import run_options as o
from tidegate.cli.progress import Bar
from tidegate.errors import TidegateError

if TYPE_CHECKING:
    from tidegate.experiments import Comparison, Run

Evictions = Annotated[
    list[str] | None,
    typer.Option(
        "--eviction",
        "-e",
        help=(
            "Policies to race; repeat it or use commas. "
            "By default lrm,fifo,clock,random,mru,lru-ideal."
        ),
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
Tierings = Annotated[
    str | None,
    typer.Option(
        "--tiering",
        help="Placements over three tiers to race, with commas: bam,tier-order,tier-reuse.",
    ),
]
Nears = Annotated[
    str | None, typer.Option("--near", help="Sizes of near memory, with commas: 256MiB,512MiB.")
]
Levels = Annotated[
    str | None,
    typer.Option("--oversubscribe", help="Levels of oversubscription, with commas: 20%,50%,100%."),
]
Shares = Annotated[
    str | None,
    typer.Option("--fits", help="Shares of the footprint that fit, with commas: 75%,50%."),
]


def compare(
    context: typer.Context,
    workload: o.Workload,
    eviction: Evictions = None,
    system: Systems = None,
    bytes: o.Bytes = None,
    scale: o.Scale = None,
    near: Nears = None,
    oversubscribe: Levels = None,
    fits: Shares = None,
    machine: o.MachineOrDefault = None,
    prefetch: Prefetches = None,
    placement: o.Placement = None,
    tiering: Tierings = None,
    middle: o.Middle = None,
    no_flush: o.NoFlush = False,
    geometry: o.GeometryText = None,
    slots: o.Slots = None,
    dirty_only: o.DirtyOnly = False,
    pipelined: o.Pipelined = None,
    observed: o.Observed = None,
    samples: o.Samples = 0,
    checked: o.Checked = False,
    belady: Annotated[bool, typer.Option("--belady/--no-belady", help="Add Belady's line.")] = True,
    workers: Annotated[
        int | None,
        typer.Option("--workers", min=1, help="Processes; one per core for large grids."),
    ] = None,
    no_cache: o.NoCache = False,
    as_json: output.AsJson = False,
    as_csv: output.AsCsv = False,
    plot: output.PlotTo = None,
) -> None:
    """Race eviction policies, or systems, on one workload, at one or several sizes of near memory.

    tidegate compare matmul --oversubscribe 20%,50%,100% --plot race.png
    """
    output.check(as_json, as_csv, plot)
    evictions = o.split_option("eviction", None if eviction is None else ",".join(eviction))
    settings: dict[str, Any] = {
        **o.settings_of(context, "eviction", "prefetch", "system", "tiering"),
        "near": o.split_option("near", near) or (),
        "oversubscribe": o.split_option("oversubscribe", oversubscribe) or (),
        "fits": o.split_option("fits", fits) or (),
        "systems": o.split_option("system", system) or (),
        "tierings": o.split_option("tiering", tiering) or (),
    }
    if tiering is not None and evictions is not None:
        if len(evictions) > 1:
            raise TidegateError(
                f"--tiering needs one --eviction, or none for CLOCK, got {', '.join(evictions)}"
            )
        settings["eviction"], evictions = evictions[0], None
    from tidegate.experiments.comparison import ComparisonSpec

    prefetches = o.split_option("prefetch", prefetch)
    spec = ComparisonSpec.of(workload, evictions, prefetches, bound=belady, **settings)
    with Bar(f"compare on {workload}", total=len(spec.runs), unit="runs") as bar:
        found = spec.answer(workers=workers, cache=not no_cache, progress=lambda run: bar.advance())
    rows = found.table.to_dicts()
    output.show(found, rows, rows, _show, as_json, as_csv, plot)


def _show(found: Comparison) -> None:
    from tidegate.units import show_duration, show_size

    f = found.runs[0].facts
    footprint = show_size(f["footprint_bytes"])
    print(f"{f['workload']} ({f['provenance']}), {footprint} · {found.others}{f['machine']}")
    tiered = found.compared == "tiering"
    counted = _tiers_counts if tiered else _counts
    for near in found.sizes:
        runs = [found.run(policy, near) for policy in found.policies]
        slowest = max(r.time for r in runs)
        rows = {
            policy: {
                "time": show_duration(r.time),
                f"against {found.policies[0]}": f"{runs[0].time / r.time:.2f}×",
                **counted(r),
                "": output.bar(r.time / slowest, 16),
            }
            for policy, r in zip(found.policies, runs, strict=True)
        }
        middle = max(r.facts.get("middle_bytes", 0) for r in runs)
        over = f"{runs[0].facts['footprint_bytes'] / near - 1:.0%} oversubscribed"
        output.print_table(
            [found.compared, *next(iter(rows.values()))],
            [(policy, *row.values()) for policy, row in rows.items()],
            f"near memory {show_size(near)}, {f'middle {show_size(middle)}' if tiered else over}",
        )
    output.print_notes(found.runs)


def _counts(r: Run) -> dict[str, str]:
    from tidegate.units import show_size

    return {
        "faults": f"{r.counts['faults']:,}",
        "evictions": f"{r.counts['evictions']:,}",
        "in": show_size(r.summary["bytes_in"]),
        "out": show_size(r.summary["bytes_out"]),
    }


def _tiers_counts(r: Run) -> dict[str, str]:
    from tidegate.units import show_size

    c, page = r.counts, r.facts["page_bytes"]
    return {
        "near": f"{c['hits'] / max(1, c['touches']):.1%}",
        "middle": f"{c['middle_hits'] / max(1, c['touches']):.1%}",
        "SSD read": show_size(c["far_reads"] * page),
        "SSD written": show_size(c["far_writes"] * page),
    }
