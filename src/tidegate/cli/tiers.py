"""What ``run`` and ``compare`` do where --tiering is given: three tiers in place of two."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from tidegate.cli import output
from tidegate.errors import TidegateError

if TYPE_CHECKING:
    from tidegate.experiments import Run
    from tidegate.experiments.tier_race import TierRace

MACHINE = "a100-pcie3-ssd"  # where none is given

Tiering = Annotated[
    str | None,
    typer.Option(
        "--tiering",
        help="Three tiers, and where pages go that leave near memory: tier-reuse, mine.py:MyTier …",
    ),
]
Tierings = Annotated[
    str | None,
    typer.Option(
        "--tiering",
        help="Placements over three tiers to race, with commas: bam,tier-order,tier-reuse.",
    ),
]
Middle = Annotated[
    str | None,
    typer.Option(
        "--middle",
        help="Host memory between near memory and the SSD; with --tiering. 4 times near.",
    ),
]
NoFlush = Annotated[
    bool,
    typer.Option("--no-flush", help="With --tiering: leave what is dirty at the end where it is."),
]


def check(**others: Any) -> None:
    """Refuse options that three tiers have no use for.

    ``others``: what was given, by the option's name.
    """
    for name, given in others.items():
        if given:
            option = name.replace("_", "-")
            raise TidegateError(
                f"--{option} and --tiering were both given; three tiers have no {option}, leave one out"
            )


def refuse(**given: Any) -> None:
    """The reverse: options that need --tiering."""
    for name, value in given.items():
        if value:
            raise TidegateError(
                f"--{name.replace('_', '-')} was given without --tiering; add e.g. --tiering tier-reuse"
            )


def show_run(done: Run) -> None:
    """One run, for people."""
    from tidegate import units

    f, c, page = done.facts, done.counts, done.facts["page_bytes"]
    both = f["near_bytes"] + f["middle_bytes"]
    print(
        f"{f['workload']} ({f['provenance']}) · {f['tiering']}, victims by {f['eviction']} · {f['machine']}\n"
        f"{units.show_size(f['footprint_bytes'])} over {units.show_size(f['near_bytes'])} near and "
        f"{units.show_size(f['middle_bytes'])} middle: {f['footprint_bytes'] / both:.2f} times both"
    )
    parts = [
        (p.replace("_", " "), units.show_duration(ns), f"{ns / done.time:.1%}")
        for p, ns in done.parts.items()
        if ns
    ]
    output.print_table(["time", units.show_duration(done.time), ""], parts)
    flushed = c["near_flushed"] + c["middle_flushed"]
    counted = [
        (
            "touches",
            units.show_count(c["touches"]),
            f"{c['hits'] / max(1, c['touches']):.2%} found near",
        ),
        (
            "misses",
            f"{c['faults']:,}",
            f"{c['middle_hits'] / max(1, c['faults']):.1%} found in the middle",
        ),
        (
            "evictions",
            f"{c['evictions']:,}",
            f"{c['to_middle']:,} to the middle, {c['dropped']:,} dropped, {c['stays']:,} stays",
        ),
        ("SSD read", units.show_size(c["far_reads"] * page), f"{c['far_reads']:,} pages"),
        (
            "SSD written",
            units.show_size(c["far_writes"] * page),
            f"{c['far_writes']:,} pages, {flushed:,} of them at the end",
        ),
    ]
    output.print_table(["count", "", ""], counted)
    report = f["policy_report"]
    if report.get("predictions"):
        print(
            f"predictions: {report['right'] / report['predictions']:.1%} right of {report['predictions']:,}"
        )
    for note in done.notes:
        print(f"note: {note}")


def show_race(found: TierRace) -> None:
    """A race, for people."""
    from tidegate import units

    f = found.runs[0].facts
    print(
        f"{f['workload']} ({f['provenance']}), {units.show_size(f['footprint_bytes'])} · victims by {f['eviction']} · "
        f"{f['machine']}"
    )
    columns = [
        "tiering",
        "time",
        f"against {found.policies[0]}",
        "near",
        "middle",
        "SSD read",
        "SSD written",
        "",
    ]
    for near in found.sizes:
        runs = [found.run(policy, near) for policy in found.policies]
        first, slowest = runs[0].time, max(r.time for r in runs)
        rows = []
        for policy, r in zip(found.policies, runs, strict=True):
            c, page = r.counts, r.facts["page_bytes"]
            rows.append(
                (
                    policy,
                    units.show_duration(r.time),
                    f"{first / r.time:.2f}×",
                    f"{c['hits'] / max(1, c['touches']):.1%}",
                    f"{c['middle_hits'] / max(1, c['touches']):.1%}",
                    units.show_size(c["far_reads"] * page),
                    units.show_size(c["far_writes"] * page),
                    ("█" * round(16 * r.time / slowest)).ljust(16),
                )
            )
        middle = max(r.facts["middle_bytes"] for r in runs)
        output.print_table(
            columns, rows, f"near memory {units.show_size(near)}, middle {units.show_size(middle)}"
        )
    for note in dict.fromkeys(note for r in found.runs for note in r.notes):
        print(f"note: {note}")
