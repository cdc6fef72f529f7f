"""Options that specify runs, the same for every verb. They are named as ``RunSpec``'s fields."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any

import typer

from tidegate.errors import TidegateError
from tidegate.options import split_outside

Workload = Annotated[
    str,
    typer.Argument(
        help="A workload such as matmul or 'zipf(skew=0.9)', or a trace file.", show_default=False
    ),
]
Bytes = Annotated[str | None, typer.Option("--bytes", help="The workload's footprint, e.g. 10GB.")]
Scale = Annotated[
    str | None,
    typer.Option(
        "--scale", help="Of the workload's size, e.g. 1/8; fewer regions are observed, too."
    ),
]
Observed = Annotated[
    int | None,
    typer.Option(
        "--observed", help="Regions observed at a time; by default what the policies declare."
    ),
]
Samples = Annotated[
    int, typer.Option("--samples", help="Pages sampled per observed region; 0 adapts the number.")
]
MachineOrDefault = Annotated[
    str | None,
    typer.Option(
        "--machine",
        help=(
            "A preset or your own TOML file; by default that of the application's paper, or "
            "rtx3090-pcie4, or with tiers a100-pcie3-ssd."
        ),
    ),
]
MachineName = Annotated[str, typer.Option("--machine", help="A preset or your own TOML file.")]
SystemName = Annotated[
    str | None,
    typer.Option(
        "--system",
        help="A published bundle of policies, uvm by default; the options below replace its parts.",
    ),
]
Eviction = Annotated[
    str | None,
    typer.Option(
        "--eviction",
        "-e",
        help="An eviction policy, with options: 'random(seed=1)'; or your own: mine.py:MyPolicy.",
    ),
]
Prefetch = Annotated[str | None, typer.Option("--prefetch", help="A prefetch policy.")]
Placement = Annotated[str | None, typer.Option("--placement", help="A placement policy.")]
Tiering = Annotated[
    str | None,
    typer.Option(
        "--tiering",
        help="Three tiers, and where pages go that leave near memory: tier-reuse, mine.py:MyTier …",
    ),
]
Middle = Annotated[
    str | None,
    typer.Option(
        "--middle",
        help="With --tiering: host memory before the SSD; by default 4 times near memory.",
    ),
]
NoFlush = Annotated[
    bool,
    typer.Option("--no-flush", help="With --tiering: leave what is dirty at the end where it is."),
]
Near = Annotated[str | None, typer.Option("--near", help="Near memory, e.g. 512MiB.")]
NearOrMachines = Annotated[
    str | None,
    typer.Option("--near", help="Near memory, e.g. 16GiB; by default the machine's own."),
]
Oversubscribe = Annotated[
    str | None,
    typer.Option(
        "--oversubscribe",
        help="How much larger than near memory the footprint is; 50% if no size is given.",
    ),
]
Fits = Annotated[
    str | None, typer.Option("--fits", help="Share of the footprint that fits, e.g. 75%.")
]
GeometryText = Annotated[
    str | None,
    typer.Option("--geometry", help="PAGE/REGION, e.g. 4KiB/64KiB; the machine's by default."),
]
Slots = Annotated[
    int | None,
    typer.Option("--slots", help="Slots in place of the machine's; 1 is a sequential cache."),
]
DirtyOnly = Annotated[
    bool,
    typer.Option(
        "--dirty-only", help="Write back only pages that were written; the driver writes all."
    ),
]
Pipelined = Annotated[
    bool | None,
    typer.Option("--pipelined/--serial", help="Overlap eviction with migration, or not."),
]
Checked = Annotated[
    bool,
    typer.Option("--checked", help="Run policies in Python and check their indices and numbers."),
]
Workers = Annotated[
    int | None,
    typer.Option(
        "--workers", min=1, max=1024, help="Processes here; by default at most one per core."
    ),
]
Variables = Annotated[
    list[str] | None,
    typer.Option("--set", help="A variable of the program's source, e.g. n=4096; repeatable."),
]
NoCache = Annotated[
    bool, typer.Option("--no-cache", help="Compute anew even if this very run is in the store.")
]


def settings_of(context: typer.Context, *others: str) -> dict[str, Any]:
    """Return the options that were given, without the workload and ``others``."""
    from tidegate.experiments import RunSpec

    given = {k: v for k, v in context.params.items() if v is not None}
    names = {f.name for f in fields(RunSpec)} - {"workload", *others}
    settings = {k: v for k, v in given.items() if k in names}
    return settings | ({"flush": False} if given.get("no_flush") else {})


def split(text: str | None) -> list[str]:
    """Return the parts of a list written with commas; commas within brackets do not separate.

    >>> split("lrm, random(seed=1, x=2),mru")
    ['lrm', 'random(seed=1, x=2)', 'mru']
    """
    return list(filter(None, split_outside(text or "", ",")))


def split_option(option: str, text: str | None) -> list[str] | None:
    """Return the parts of an option's list, None if it is not given; refuse an empty list, and one
    that has a part twice.
    """
    if text is None:
        return None
    parts = split(text)
    if not parts:
        raise TidegateError(f"--{option} must name one or several, with commas, got '{text}'")
    for part in parts:
        if parts.count(part) > 1:
            raise TidegateError(f"--{option} has {part} twice, got '{text}'; give each once")
    return parts


def split_workloads(text: str) -> list[str]:
    """Return the workloads of a list with commas; a file with a comma in its name is one.

    >>> split_workloads("matmul,zipf(skew=0.9, touches=10)")
    ['matmul', 'zipf(skew=0.9, touches=10)']
    """
    return [text] if not split(text) or Path(text).is_file() else split(text)
