"""tidegate run: one workload under one set of policies."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from tidegate.cli import output
from tidegate.cli import run_options as o
from tidegate.cli.progress import Bar

if TYPE_CHECKING:
    from tidegate.experiments import Run

Row = tuple[str, str, str]


def run(
    context: typer.Context,
    workload: o.Workload,
    bytes: o.Bytes = None,
    scale: o.Scale = None,
    near: o.Near = None,
    oversubscribe: o.Oversubscribe = None,
    fits: o.Fits = None,
    machine: o.MachineOrDefault = None,
    system: o.SystemName = None,
    eviction: o.Eviction = None,
    prefetch: o.Prefetch = None,
    placement: o.Placement = None,
    tiering: o.Tiering = None,
    middle: o.Middle = None,
    no_flush: o.NoFlush = False,
    geometry: o.GeometryText = None,
    slots: o.Slots = None,
    dirty_only: o.DirtyOnly = False,
    pipelined: o.Pipelined = None,
    observed: o.Observed = None,
    samples: o.Samples = 0,
    checked: o.Checked = False,
    no_cache: o.NoCache = False,
    as_json: output.AsJson = False,
    as_csv: output.AsCsv = False,
    plot: output.PlotTo = None,
) -> None:
    """Run one workload under one policy and say where its time went.

    tidegate run matmul --bytes 1GiB --oversubscribe 50% --eviction lru-ideal
    """
    output.check(as_json, as_csv, plot)
    from tidegate.experiments import RunSpec

    spec = RunSpec(workload, **o.settings_of(context))
    with Bar(f"run {workload}") as bar:
        done = spec.answer(cache=not no_cache, progress=bar.advance)
    data = {
        "summary": done.summary,
        "launches": done.tables["launches"],
        "objects": done.tables["objects"],
        "decisions": done.facts.get("decisions", []),
        "notes": done.notes,
        "key": done.key,
    }
    output.show(done, data, [done.summary], _show, as_json, as_csv, plot)


def _show(done: Run) -> None:
    from tidegate.units import show_duration

    tiered = "tiering" in done.facts
    print(_tiers_head(done) if tiered else _head(done))
    parts = [
        (p.replace("_", " "), show_duration(ns), f"{ns / done.time:.1%}")
        for p, ns in done.parts.items()
        if ns
    ]
    output.print_table(["time", show_duration(done.time), ""], parts)
    output.print_table(["count", "", ""], _tiers_counts(done) if tiered else _counts(done))
    decisions = done.facts.get("decisions", [])
    if decisions:
        rows = [(d["policy"], d["what"], d["after"]) for d in decisions]
        output.print_table(["policy", "decided", "after"], rows)
    report = done.facts["policy_report"]
    if tiered and report.get("predictions"):
        right = report["right"] / report["predictions"]
        print(f"predictions: {right:.1%} right of {report['predictions']:,}")
    output.print_notes([done])


def _head(done: Run) -> str:
    from tidegate.units import show_size

    f = done.facts
    over = f["footprint_bytes"] / f["near_bytes"] - 1
    fits = f"{over:.0%} oversubscribed" if over > 0.0005 else "it fits"
    policies = f"{f['eviction']} + {f['prefetch']} + {f['placement']}"
    return (
        f"{f['workload']} ({f['provenance']}) · {policies} · {f['machine']}\n"
        f"{show_size(f['footprint_bytes'])} in {show_size(f['near_bytes'])} of near memory: {fits}"
    )


def _tiers_head(done: Run) -> str:
    from tidegate.units import show_size

    f = done.facts
    times = f["footprint_bytes"] / (f["near_bytes"] + f["middle_bytes"])
    policies = f"{f['tiering']}, victims by {f['eviction']}"
    return (
        f"{f['workload']} ({f['provenance']}) · {policies} · {f['machine']}\n"
        f"{show_size(f['footprint_bytes'])} over {show_size(f['near_bytes'])} near and "
        f"{show_size(f['middle_bytes'])} middle: {times:.2f} times both"
    )


def _counts(done: Run) -> list[Row]:
    from tidegate.units import show_count, show_size

    c, s = done.counts, done.summary
    duplicates = c["raw_faults"] - c["faults"]
    prefetched = c["pages_prefetched"] / max(c["pages_in"], 1)
    rows = [
        ("touches", show_count(c["touches"]), f"{c['hits'] / c['touches']:.2%} found near"),
        (
            "page faults",
            f"{c['faults']:,}",
            f"in {c['batches']:,} batches, {duplicates:,} duplicates",
        ),
        ("evictions", f"{c['evictions']:,}", f"{c['pages_unused']:,} pages left untouched"),
        ("moved in", show_size(s["bytes_in"]), f"{prefetched:.0%} by prefetch"),
        ("moved out", show_size(s["bytes_out"]), ""),
    ]
    if c["remote_touches"]:
        touches = f"{show_count(c['remote_touches'])} touches"
        rows.append(("remote", show_size(c["remote_bytes"]), touches))
    if c["observations"]:
        samples = show_size(c["pages_sampled"] * s["page_bytes"])
        noticed = f"{c['notifications']:,} noticed, {samples} of samples"
        rows.append(("observations", f"{c['observations']:,}", noticed))
    return rows


def _tiers_counts(done: Run) -> list[Row]:
    from tidegate.units import show_count, show_size

    c, page = done.counts, done.facts["page_bytes"]
    near = c["hits"] / max(1, c["touches"])
    middle = c["middle_hits"] / max(1, c["faults"])
    left = f"{c['to_middle']:,} to the middle, {c['dropped']:,} dropped, {c['stays']:,} stays"
    flushed = c["near_flushed"] + c["middle_flushed"]
    written = f"{c['far_writes']:,} pages, {flushed:,} of them at the end"
    return [
        ("touches", show_count(c["touches"]), f"{near:.2%} found near"),
        ("misses", f"{c['faults']:,}", f"{middle:.1%} found in the middle"),
        ("evictions", f"{c['evictions']:,}", left),
        ("SSD read", show_size(c["far_reads"] * page), f"{c['far_reads']:,} pages"),
        ("SSD written", show_size(c["far_writes"] * page), written),
    ]
