"""tidegate compare: policies × sizes on workloads, with Belady's line."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tidegate.cli import output
from tidegate.cli import run_options as o
from tidegate.cli.progress import Bar
from tidegate.errors import TidegateError

if TYPE_CHECKING:
    from tidegate.experiments import Comparison

# options with several values, which are not fields of one run
_SEVERAL = ("eviction", "prefetch", "system", "tiering", "machine", "placement")

Workloads = Annotated[
    list[str],
    typer.Argument(
        help=(
            "Workloads such as matmul or 'zipf(skew=0.9)', or trace files; several as words or "
            "with commas."
        ),
        show_default=False,
    ),
]
Evictions = Annotated[
    str | None,
    typer.Option(
        "--eviction",
        "-e",
        help="Policies to race, with commas; by default lrm,fifo,clock,random,mru,lru-ideal.",
    ),
]
Prefetches = Annotated[
    str | None,
    typer.Option("--prefetch", help="A prefetch policy, or several, with commas: none,tree."),
]
Placements = Annotated[
    str | None, typer.Option("--placement", help="A placement policy, or several, with commas.")
]
Machines = Annotated[
    str | None,
    typer.Option(
        "--machine",
        help=(
            "A preset or your own TOML file, or several, with commas; by default that of the "
            "application's paper, or rtx3090-pcie4, or with tiers a100-pcie3-ssd."
        ),
    ),
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
    str | None,
    typer.Option("--near", help="Near memory, or several sizes, with commas: 256MiB,512MiB."),
]
Levels = Annotated[
    str | None,
    typer.Option(
        "--oversubscribe",
        help=(
            "How much larger than near memory the footprint is, with commas: 20%,50%,100%; 50% if "
            "no size is given."
        ),
    ),
]
Shares = Annotated[
    str | None,
    typer.Option("--fits", help="Shares of the footprint that fit, with commas: 75%,50%."),
]


def compare(
    context: typer.Context,
    workload: Workloads,
    eviction: Evictions = None,
    system: Systems = None,
    bytes: o.Bytes = None,
    scale: o.Scale = None,
    near: Nears = None,
    oversubscribe: Levels = None,
    fits: Shares = None,
    machine: Machines = None,
    prefetch: Prefetches = None,
    placement: Placements = None,
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
    workers: o.Workers = None,
    no_cache: o.NoCache = False,
    as_json: output.AsJson = False,
    as_csv: output.AsCsv = False,
    plot: output.PlotTo = None,
) -> None:
    """Race eviction policies, or systems, on one or several workloads, at one or several sizes of
    near memory. An option with several values, as in random(seed=1|2), is a policy for each. The
    exit code is 1 if a policy fails; the others are shown all the same.

    tidegate compare matmul --oversubscribe 20%,50%,100% --plot race.png
    tidegate compare stencil 'cyclic(passes=2|8)' --eviction 'lrm,random(seed=1|2|3)'
    """
    output.check(as_json, as_csv, plot)
    on = [name for words in workload for name in o.split_workloads(words)]
    evictions = o.split_option("eviction", eviction)
    settings: dict[str, Any] = {
        **o.settings_of(context, *_SEVERAL),
        "machine": o.split_option("machine", machine),
        "placement": o.split_option("placement", placement),
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
    with output.user_code():
        spec = ComparisonSpec.of(on, evictions, prefetches, bound=belady, **settings)
        with Bar(f"compare on {', '.join(on)}", total=len(spec.runs), unit="runs") as bar:
            found = spec.answer(
                workers=workers, cache=not no_cache, progress=lambda run: bar.advance()
            )
    rows = found.table.to_dicts()
    output.show(found, rows, rows, _show, as_json, as_csv, plot)
    if found.failures:
        print(
            f"tidegate: {len(found.failures)} of {len(found.entries)} runs failed", file=sys.stderr
        )
        raise typer.Exit(1)


def _show(found: Comparison) -> None:
    from tidegate.experiments.display import comparison_head, comparison_tables, failure_lines

    for part in found.parts:
        output.print_text(comparison_head(part))
        output.print_tables(comparison_tables(part))
        for line in failure_lines(part.entries):
            output.print_text(line)
    output.print_notes(found.runs)
    output.print_stored(sum(r.from_store for r in found.runs), len(found.runs))
