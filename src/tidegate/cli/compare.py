"""tidegate compare: policies × sizes on workloads, with Belady's line."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from tidegate.cli import output
from tidegate.cli import run_options as o
from tidegate.cli.output import ProgressBar

if TYPE_CHECKING:
    from tidegate.experiments import Comparison

# options with several values
_SEVERAL = (
    "eviction",
    "prefetch",
    "system",
    "tiering",
    "machine",
    "placement",
    "near",
    "oversubscribe",
    "fits",
)

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


@o.takes_settings(*o.RUN, several=_SEVERAL)
def compare(
    workload: Workloads,
    settings: o.Settings,
    belady: Annotated[bool, typer.Option("--belady/--no-belady", help="Add Belady's line.")] = True,
    workers: o.Workers = None,
    no_cache: o.NoCache = False,
    as_json: output.AsJson = False,
    as_csv: output.AsCsv = False,
    plot: output.PlotTo = None,
) -> None:
    """Race eviction policies, systems or tierings on one or several workloads, at one or several
    sizes of near memory; by default lrm, fifo, clock, random, mru and lru-ideal. An option
    with several values, as in random(seed=1|2), is a policy for each. The exit code is 1 if a
    policy fails; the others are shown all the same.

    tidegate compare matmul --oversubscribe 20%,50%,100% --plot race.png
    tidegate compare stencil 'cyclic(passes=2|8)' --eviction 'lrm,random(seed=1|2|3)'
    """
    output.check(as_json, as_csv, plot)
    on = [name for words in workload for name in o.split_workloads(words)]
    from tidegate.experiments.comparison_spec import ComparisonSpec

    with output.user_code():
        spec = ComparisonSpec.make(on, settings, bound=belady)
        with ProgressBar(f"compare on {', '.join(on)}", total=len(spec.runs), unit="runs") as bar:
            found = spec.run(
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
