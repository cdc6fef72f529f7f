"""Runs and comparisons as text and HTML: at a prompt, in a notebook, on the command line."""

from __future__ import annotations

import html
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from tidegate.display.tables import Cell, ShareBar, Table
from tidegate.units import show_count, show_duration, show_fit, show_size

if TYPE_CHECKING:
    from tidegate.experiments.comparison import Comparison, Entry
    from tidegate.experiments.runs import Run

WIDTH = 100  # of a comparison at a prompt
MOST_LINES = 40  # of a comparison at a prompt

Row = tuple[str, str, str]


# Runs


def run_head(run: Run) -> str:
    """Return what ran, with what, in which memory: two lines."""
    f = run.facts
    if "tiering" in f:
        times = f["footprint_bytes"] / (f["near_bytes"] + f["middle_bytes"])
        policies = f"{f['tiering']}, victims by {f['eviction']}"
        memory = (
            f"{show_size(f['footprint_bytes'])} over {show_size(f['near_bytes'])} near and "
            f"{show_size(f['middle_bytes'])} middle: {times:.2f} times both"
        )
    else:
        policies = f"{f['eviction']} + {f['prefetch']} + {f['placement']}"
        footprint, near = f["footprint_bytes"], f["near_bytes"]
        fit = show_fit(footprint, near)
        memory = f"{show_size(footprint)} in {show_size(near)} of near memory: {fit}"
    return f"{f['workload']}, {f['provenance']} · {policies} · {f['machine']}\n{memory}"


def run_tables(run: Run) -> list[Table]:
    """Return where the time went, what was counted, and what policies decided."""
    parts = [
        (p.replace("_", " "), show_duration(ns), f"{ns / run.time:.1%}")
        for p, ns in run.parts.items()
        if ns
    ]
    counts = _tiers_counts(run) if "tiering" in run.facts else _gpu_counts(run)
    tables = [Table(["time", show_duration(run.time), ""], parts), Table(["count", "", ""], counts)]
    if made := run.facts.get("decisions"):
        rows = [(d["policy"], d["what"], d["after"]) for d in made]
        tables.append(Table(["policy", "decided", "after"], rows))
    return tables


def run_html(run: Run) -> str:
    """Return a run for a notebook: its tables and its picture."""
    return _page(run_head(run), run_tables(run), run.notes + stored_lines([run]), run.plot())


def _gpu_counts(run: Run) -> list[Row]:
    c, s = run.counts, run.summary
    duplicates = c["raw_faults"] - c["faults"]
    prefetched = c["pages_prefetched"] / max(c["pages_in"] + c["pages_born"], 1)
    batches = f"in {c['batches']:,} batches, {duplicates:,} duplicates"
    rows = [
        ("touches", show_count(c["touches"]), f"{c['hits'] / c['touches']:.2%} found near"),
        ("page faults", f"{c['faults']:,}", batches),
        ("evictions", f"{c['evictions']:,}", f"{c['pages_unused']:,} pages left untouched"),
        ("moved in", show_size(s["bytes_in"]), f"{prefetched:.0%} by prefetch"),
        ("moved out", show_size(s["bytes_out"]), ""),
    ]
    if c["pages_born"]:
        discarded = show_size(c["pages_discarded"] * s["page_bytes"])
        rows.append(
            ("born near", show_size(c["pages_born"] * s["page_bytes"]), f"{discarded} died")
        )
    if c["remote_touches"]:
        touches = f"{show_count(c['remote_touches'])} touches"
        rows.append(("remote", show_size(c["remote_bytes"]), touches))
    if c["observations"]:
        samples = show_size(c["pages_sampled"] * s["page_bytes"])
        noticed = f"{c['notifications']:,} noticed, {samples} of samples"
        rows.append(("observations", f"{c['observations']:,}", noticed))
    return rows


def _tiers_counts(run: Run) -> list[Row]:
    c, page = run.counts, run.facts["page_bytes"]
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


# Comparisons


def comparison_head(part: Comparison) -> str:
    """Return the workload and the machine of a comparison on one of each."""
    e = part.entries[0]
    footprint = show_size(e.footprint)
    return f"{e.workload}, {e.provenance}, {footprint} · {part.others}{e.machine}"


def comparison_tables(part: Comparison) -> Iterator[Table]:
    """Yield a table per size of near memory, of a comparison on one workload and machine."""
    first = part.policies[0]
    for near in part.sizes:
        entries = [part.entry(policy, near) for policy in part.policies]
        runs = [e.run for e in entries if e.run is not None]
        slowest = max((r.time for r in runs), default=0.0)
        counted = _tiers_columns if part.compared == "tiering" else _gpu_columns
        figures = ["time", f"against {first}", *(counted(runs[0]) if runs else ())]
        rows: list[list[Cell]] = []
        for e in entries:
            if e.run is None:
                rows.append([e.policy, "failed", *["–"] * (len(figures) - 1), ShareBar(0)])
                continue
            base = entries[0].run
            against = "–" if base is None else f"{base.time / e.run.time:.2f}×"
            texts = (show_duration(e.run.time), against, *counted(e.run).values())
            rows.append([e.policy, *texts, ShareBar(e.run.time / slowest)])
        head = [part.compared, *figures, ""]
        yield Table(head, rows, _memory(part, entries, near), drop=("out", "in", "evictions"))


def failure_lines(entries: Iterable[Entry]) -> list[str]:
    """Return a line for each run that failed, once for each reason."""
    lines = (f"{e.policy} failed: {' '.join(e.failed.split())}" for e in entries if e.run is None)
    return list(dict.fromkeys(lines))


def stored_lines(runs: Sequence[Run]) -> list[str]:
    """Return a line that says how many runs were not computed now; none if all were."""
    stored = sum(run.from_store for run in runs)
    if not stored:
        return []
    if len(runs) == 1:
        return ["from the store; cache=False computes it anew"]
    return [f"{stored} of {len(runs)} runs are from the store; cache=False computes them anew"]


def comparison_text(comparison: Comparison) -> str:
    """Return a comparison for a prompt: its tables, as far as they fit."""
    policies, sizes = ", ".join(comparison.policies), map(show_size, comparison.sizes)
    on = ", ".join(comparison.workloads)
    lines = [f"<Comparison on {on}: {policies} with {', '.join(sizes)}>"]
    for part in comparison.parts:
        lines += ["", comparison_head(part)]
        for table in comparison_tables(part):
            lines += ["", *table.text(WIDTH).splitlines()]
        lines += failure_lines(part.entries)
    lines[1:1] = stored_lines(comparison.runs)
    if len(lines) > MOST_LINES:
        more = len(lines) - MOST_LINES
        lines = [*lines[:MOST_LINES], f"… {more} lines more; .table has every row"]
    return "\n".join(lines)


def comparison_html(comparison: Comparison) -> str:
    """Return a comparison for a notebook: its tables and its picture."""
    pages = [
        _page(comparison_head(part), comparison_tables(part), failure_lines(part.entries))
        for part in comparison.parts
    ]
    stored = "".join(f"<p>{line}</p>" for line in stored_lines(comparison.runs))
    return "".join(pages) + stored + (_picture(comparison.plot()) if comparison.runs else "")


def _memory(part: Comparison, entries: list[Entry], near: int) -> str:
    """Return how large memory is, for the title of a table."""
    if part.compared != "tiering":
        return f"near memory {show_size(near)}, {show_fit(entries[0].footprint, near)}"
    middle = max((e.run.facts["middle_bytes"] for e in entries if e.run is not None), default=0)
    return f"near memory {show_size(near)}, middle {show_size(middle)}"


def _gpu_columns(run: Run) -> dict[str, str]:
    return {
        "faults": f"{run.counts['faults']:,}",
        "evictions": f"{run.counts['evictions']:,}",
        "in": show_size(run.summary["bytes_in"]),
        "out": show_size(run.summary["bytes_out"]),
    }


def _tiers_columns(run: Run) -> dict[str, str]:
    c, page = run.counts, run.facts["page_bytes"]
    return {
        "near": f"{c['hits'] / max(1, c['touches']):.1%}",
        "middle": f"{c['middle_hits'] / max(1, c['touches']):.1%}",
        "SSD read": show_size(c["far_reads"] * page),
        "SSD written": show_size(c["far_writes"] * page),
    }


# HTML


def _page(head: str, tables: Iterable[Table], notes: Iterable[str] = (), figure: Any = None) -> str:
    title = "<br>".join(html.escape(line) for line in head.splitlines())
    said = "".join(f"<p>{html.escape(note)}</p>" for note in notes)
    body = "".join(table.html() for table in tables)
    return f"<p><b>{title}</b></p>{body}{said}{_picture(figure) if figure is not None else ''}"


def _picture(figure: Any) -> str:
    from tidegate.display.figures import html_image

    return html_image(figure)
