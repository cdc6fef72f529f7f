"""tidegate run: one workload under one set of policies."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidegate.cli import asked, output, tiers
from tidegate.cli.progress import Bar

if TYPE_CHECKING:
    from tidegate.experiments import Run


def run(
    workload: asked.Workload,
    bytes: asked.Bytes = None,
    scale: asked.Scale = None,
    near: asked.Near = None,
    oversubscribe: asked.Oversubscribe = None,
    machine: asked.MachineOrDefault = None,
    system: asked.SystemName = None,
    eviction: asked.Eviction = None,
    prefetch: asked.Prefetch = None,
    placement: asked.Placement = None,
    tiering: tiers.Tiering = None,
    middle: tiers.Middle = None,
    no_flush: tiers.NoFlush = False,
    geometry: asked.GeometryText = None,
    slots: asked.Slots = None,
    dirty_only: asked.DirtyOnly = False,
    pipelined: asked.Pipelined = None,
    observed: asked.Observed = None,
    samples: asked.Samples = 0,
    no_cache: asked.NoCache = False,
    as_json: output.AsJson = False,
    as_csv: output.AsCsv = False,
    plot: output.PlotTo = None,
) -> None:
    """Run one workload under one policy and say where its time went.

    tidegate run matmul --bytes 1GiB --oversubscribe 50% --eviction lru-ideal
    """
    output.check_asked(as_json, as_csv, plot)
    from tidegate.experiments import Ask
    from tidegate.experiments.tiered import TieredAsk

    ask: Ask | TieredAsk
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
        ask = TieredAsk(
            workload,
            tiering,
            near,
            middle,
            oversubscribe,
            machine or tiers.MACHINE,
            eviction,
            bytes,
            scale,
            slots,
            flush=not no_flush,
        )
    else:
        tiers.refuse(middle=middle, no_flush=no_flush)
        ask = Ask(
            workload,
            bytes=bytes,
            scale=scale,
            near=near,
            oversubscribe=oversubscribe,
            machine=machine or asked.MACHINE,
            system=system or "uvm",
            eviction=eviction,
            prefetch=prefetch,
            placement=placement,
            geometry=geometry,
            slots=slots,
            dirty_only=dirty_only,
            pipelined=pipelined,
            observed=observed,
            samples=samples,
        )
    with Bar(f"run {workload}") as bar:
        done = ask.answer(cache=not no_cache, progress=bar.advance)
    data = {
        "summary": done.summary,
        "launches": done.tables["launches"],
        "objects": done.tables["objects"],
        "notes": done.notes,
        "key": done.key,
    }
    output.tell(
        done,
        data,
        [done.summary],
        _show if tiering is None else tiers.show_run,
        as_json,
        as_csv,
        plot,
    )


def _show(done: Run) -> None:
    from tidegate import units

    f, c, s = done.facts, done.counts, done.summary
    over = f["footprint_bytes"] / f["near_bytes"] - 1
    fits = f"{over:.0%} oversubscribed" if over > 0.0005 else "it fits"
    print(
        f"{f['workload']} ({f['provenance']}) · {f['eviction']} + {f['prefetch']} + {f['placement']} · {f['machine']}\n"
        f"{units.show_size(f['footprint_bytes'])} in {units.show_size(f['near_bytes'])} of near memory: {fits}"
    )
    parts = [
        (p.replace("_", " "), units.show_duration(ns), f"{ns / done.time:.1%}")
        for p, ns in done.parts.items()
        if ns
    ]
    output.print_table(["time", units.show_duration(done.time), ""], parts)
    counted = [
        ("touches", units.show_count(c["touches"]), f"{c['hits'] / c['touches']:.2%} found near"),
        (
            "page faults",
            f"{c['faults']:,}",
            f"in {c['batches']:,} batches, {c['raw_faults'] - c['faults']:,} duplicates",
        ),
        ("evictions", f"{c['evictions']:,}", f"{c['pages_unused']:,} pages left untouched"),
        (
            "moved in",
            units.show_size(s["bytes_in"]),
            f"{c['pages_prefetched'] / max(c['pages_in'], 1):.0%} by prefetch",
        ),
        ("moved out", units.show_size(s["bytes_out"]), ""),
    ]
    if c["remote_touches"]:
        counted.append(
            (
                "remote",
                units.show_size(c["remote_bytes"]),
                f"{units.show_count(c['remote_touches'])} touches",
            )
        )
    if c["observations"]:
        out = units.show_size(c["pages_sampled"] * f["page_bytes"])
        counted.append(
            (
                "observations",
                f"{c['observations']:,}",
                f"{c['notifications']:,} noticed, {out} of samples",
            )
        )
    output.print_table(["count", "", ""], counted)
    for note in done.notes:
        print(f"note: {note}")
