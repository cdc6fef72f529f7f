"""The options that say what to run: the same for every verb."""

from __future__ import annotations

from typing import Annotated

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
MACHINE = "rtx3090-pcie4"  # where none is given
MachineOrDefault = Annotated[
    str | None,
    typer.Option(
        "--machine",
        help=f"A preset or your own TOML file; {MACHINE}, or with tiers a100-pcie3-ssd.",
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
        help="An eviction policy, with options: 'random(seed=1)'; or your own: mine.py:MyPolicy.",
    ),
]
Prefetch = Annotated[str | None, typer.Option("--prefetch", help="A prefetch policy.")]
Placement = Annotated[str | None, typer.Option("--placement", help="A placement policy.")]
Near = Annotated[str | None, typer.Option("--near", help="Near memory, e.g. 512MiB.")]
Oversubscribe = Annotated[
    str | None,
    typer.Option(
        "--oversubscribe",
        help="How much larger than near memory the footprint is; 50% if neither is given.",
    ),
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
NoCache = Annotated[
    bool, typer.Option("--no-cache", help="Compute anew even if this very run is in the store.")
]


def split(text: str | None) -> list[str]:
    """A list written with commas; those within brackets do not count.

    >>> split("lrm, random(seed=1, x=2),mru")
    ['lrm', 'random(seed=1, x=2)', 'mru']
    """
    return list(filter(None, split_outside(text or "", ",")))


def check_lists(**given: str | None) -> None:
    """Refuse a list with nothing in it, which would otherwise be taken for one that was not given."""
    for option, text in given.items():
        if text is not None and not split(text):
            raise TidegateError(
                f"--{option} '{text}' names nothing; expected one or several, with commas, or leave it out"
            )
