"""tidegate serve-cache: keys and values of a language model over GPU, host and SSD."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tidegate.cli import output
from tidegate.cli import run_options as o
from tidegate.errors import TidegateError

if TYPE_CHECKING:
    from tidegate.serving.report import Report

Size = str | None


def serve_cache(
    file: Annotated[
        Path,
        typer.Argument(help="Requests with hash_ids: Mooncake's JSON lines.", show_default=False),
    ],
    near: Annotated[
        str, typer.Option("--near", help="GPU memory of the cache, beside the weights.")
    ] = "16GiB",
    middle: Annotated[Size, typer.Option("--middle", help="Host memory; by default none.")] = None,
    ssd: Annotated[Size, typer.Option("--ssd", help="SSD; by default none.")] = None,
    eviction: Annotated[
        str, typer.Option("-e", "--eviction", help="Policies, with commas; each tier has one.")
    ] = "lru,lfu,fifo",
    machine: Annotated[
        str, typer.Option("--machine", help="For rates of links and of prefill.")
    ] = "a100-pcie3-ssd",
    token: Annotated[
        str, typer.Option("--token", help="Bytes of keys and values of a token.")
    ] = "128KiB",
    tokens: Annotated[int, typer.Option("--tokens", min=1, help="Tokens of a block.")] = 512,
    parameters: Annotated[
        float, typer.Option("--parameters", help="Weights of the model.")
    ] = 8.03e9,
    efficiency: Annotated[
        float, typer.Option("--efficiency", help="Share of the peak in a prefill.")
    ] = 0.5,
    as_json: output.AsJson = False,
    as_csv: output.AsCsv = False,
) -> None:
    """Say what a cache of keys and values finds, by tier, and what more of each tier is worth.

    tidegate serve-cache conversation.jsonl --near 40GiB --middle 200GiB --eviction lru,lfu
    """
    output.check(as_json, as_csv, None)
    from tidegate import units
    from tidegate.machine.machine import load_machine
    from tidegate.serving.report import Model, Server, make_report
    from tidegate.serving.requests import read_requests

    if not 1 <= parameters < 1e15:
        raise TidegateError(f"--parameters must be from 1 to 1e15, got {parameters}")
    if not 0 < efficiency <= 1:
        raise TidegateError(f"--efficiency must be above 0 and at most 1, got {efficiency}")
    room = tuple(0 if given is None else units.size(given) for given in (near, middle, ssd))
    model = Model(units.size(token), tokens, parameters, efficiency)
    if room[0] < model.block_bytes:
        raise TidegateError(
            f"--near {near} holds no block of {units.show_size(model.block_bytes)}; "
            "give more, or smaller blocks (--tokens, --token)"
        )
    policies = o.split_option("eviction", eviction) or []
    server = Server(load_machine(machine), model, room)  # type: ignore[arg-type]
    with output.user_code():
        requests = read_requests(file)
        steps = len(policies) + sum(map(bool, room))
        with output.ProgressBar(f"serve {file.name}", total=steps, unit="runs") as bar:
            report = make_report(requests, server, policies, bar.advance)
    if as_json or as_csv:
        rows = [asdict(row) | {"all_hits": row.all_hits} for row in report.rows]
        if as_csv:
            output.print_csv(rows)
        else:
            output.print_json(_data(report, rows))
        return
    _show(report)


def _data(report: Report, rows: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "requests": len(report.requests),
        "uses": len(report.requests.blocks),
        "distinct": report.requests.distinct,
        "machine": report.server.machine.name,
        "blocks": report.server.blocks,
        "policies": rows,
        "bound": report.bound,
        "worth": [asdict(worth) for worth in report.worth],
        "curve": [{"blocks": b, "lru": lru, "bound": bound} for b, lru, bound in report.curve],
    }


def _show(report: Report) -> None:
    from tidegate.serving.report import TIERS
    from tidegate.units import show_size

    requests, server = report.requests, report.server
    everything = show_size(requests.distinct * server.model.block_bytes)
    output.print_text(
        f"{len(requests):,} requests in {requests.seconds / 60:.0f} minutes use "
        f"{len(requests.blocks):,} blocks of {server.model.block_tokens} tokens, "
        f"{requests.distinct:,} distinct ({everything})"
    )
    names = [name for name, room in zip(TIERS, server.room, strict=True) if room]
    head = ["eviction", *(f"in {name}" for name in names), "found", "tokens spared"]
    head += ["to the GPU", "from it", "time, mean", "median", "99 %"]
    rows = [_row(report, names, row) for row in report.rows]
    rows.append(["bound", *[""] * len(names), f"{report.bound:.2%}", *[""] * 6])
    output.print_table(head, rows, f"with {', '.join(_rooms(report))} on {server.machine.name}")
    best = report.best
    for worth in report.worth:
        output.print_text(
            f"a GiB more of {worth.tier} saves {worth.seconds * 1e3:.3g} ms of a request's time "
            f"under {best.policy}, and finds {worth.hits:.3%} more of all blocks"
        )
    curve = [
        [show_size(b * server.model.block_bytes), f"{b:,}", f"{lru:.2%}", f"{bound:.2%}"]
        for b, lru, bound in report.curve
    ]
    output.print_table(["room in all", "blocks", "lru", "bound"], curve, "found, by room")
    output.print_text(
        f"note: times are of bringing and computing alone, at {server.model.efficiency:.0%} of the "
        "machine's BF16 peak, which is assumed; requests do not wait for one another"
    )


def _rooms(report: Report) -> list[str]:
    from tidegate.units import show_size

    names = ("GPU memory", "host memory", "SSD")
    return [
        f"{show_size(room)} of {name}"
        for name, room in zip(names, report.server.room, strict=True)
        if room
    ]


def _row(report: Report, names: list[str], row: Any) -> list[str]:
    from tidegate.units import show_size

    hits = [h for h, room in zip(row.hits, report.server.room, strict=True) if room]
    return [
        row.policy,
        *(f"{h:.2%}" for h in hits),
        f"{row.all_hits:.2%}",
        f"{row.prefix:.2%}",
        show_size(sum(row.bytes_in)),
        show_size(row.bytes_out[0]),
        *(f"{s * 1e3:,.0f} ms" for s in (row.mean, row.median, row.p99)),
    ]
