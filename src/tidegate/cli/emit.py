"""tidegate emit: a policy's class as code for the driver."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tidegate.cli import output
from tidegate.cli import run_options as o
from tidegate.errors import TidegateError

if TYPE_CHECKING:
    from tidegate.driver.check import Checked
    from tidegate.driver.folder import Folder
    from tidegate.machine.machine import Machine
    from tidegate.policies.interface.policy import Policy


class Target(StrEnum):
    """Where a policy goes."""

    BPF = "bpf"
    MODPROBE = "modprobe"


@o.takes_settings("bytes", "scale", "near", "oversubscribe", "fits", "machine")
def emit(
    policy: Annotated[
        str,
        typer.Argument(
            help="A policy such as cp, 'tree(threshold=1)' or mine.py:Class.", show_default=False
        ),
    ],
    settings: o.Settings,
    to: Annotated[
        Target,
        typer.Option(
            "--to",
            help="bpf: C for the kernel's verifier. modprobe: settings of the stock driver.",
            show_default=False,
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option("-o", "--out", help="bpf: a new folder. modprobe: a file, e.g. uvm.conf."),
    ] = None,
    check: Annotated[
        str | None,
        typer.Option(
            "--check",
            help="A workload. bpf: play a run of it to the kernel and compare every answer, by "
            "default 50% oversubscribed. modprobe: simulate it with and without.",
        ),
    ] = None,
    kind: Annotated[
        str | None,
        typer.Option("--kind", help="eviction, prefetch or placement, if several have the name."),
    ] = None,
    rounds: Annotated[
        int,
        typer.Option(
            "--rounds", min=1, max=65536, help="bpf: most rounds of a loop, if none are declared."
        ),
    ] = 1024,
    as_json: output.AsJson = False,
) -> None:
    """Write a policy as code for the driver, and check it against a simulated run.

    tidegate emit cp --to bpf --check MM --scale 1/64
    tidegate emit 'steered(cp)' --to bpf --out cp
    tidegate emit 'tree(threshold=1)' --to modprobe
    """
    from tidegate.driver.find import find_policy

    with output.user_code():
        found, made = find_policy(policy, kind)
        made.most_rounds = made.most_rounds or rounds
        wanted = Wanted(found, made, policy, out, check, settings, as_json)
        (_modprobe if to is Target.MODPROBE else _bpf)(wanted)


@dataclass(frozen=True)
class Wanted:
    """What was typed, but for the target: a policy's kind, the policy, and how it was written."""

    kind: str
    policy: Policy
    spec: str
    out: Path | None
    workload: str | None  # of --check
    settings: o.Settings
    as_json: bool


def _bpf(wanted: Wanted) -> None:
    from tidegate.driver.folder import write_folder

    _refuse(wanted)
    out = wanted.out
    folder = _folder(wanted) if out is not None or wanted.workload is None else None
    checked = None if wanted.workload is None else _checked(wanted, wanted.workload)
    if folder is not None and out is None:
        print(folder.code, end="")
        return
    if folder is not None and out is not None:
        write_folder(folder, out)
    if wanted.as_json:
        output.print_json(_data(checked, folder, out))
    else:
        for line in folder.sentences(out) if folder is not None else ():
            output.print_text(line)
        if checked is not None:
            _show(checked)
    if checked is not None and checked.wrong:
        raise typer.Exit(1)


def _refuse(wanted: Wanted) -> None:
    """Refuse what has no meaning for the kernel."""
    useless = sorted(wanted.settings.keys() - {"near", "machine"})
    if wanted.workload is None and useless:
        raise TidegateError(
            f"--{useless[0]} is for the run of --check; give --check WORKLOAD, or leave it out"
        )
    if wanted.kind == "placement":
        raise TidegateError(
            f"'{wanted.spec}' decides where objects live, which no hook of a driver asks; "
            "tidegate advise --emit writes code for that"
        )


def _checked(wanted: Wanted, workload: str) -> Checked:
    """Play a run to the kernel, with a policy of its own."""
    from tidegate.driver.check import check_policy
    from tidegate.driver.find import KINDS

    policy, settings = KINDS[wanted.kind](wanted.spec), wanted.settings
    policy.most_rounds = wanted.policy.most_rounds
    if not settings.keys() & {"near", "oversubscribe", "fits"}:
        settings = settings | {"oversubscribe": "50%"}  # or nobody is asked for a victim
    with output.ProgressBar(f"check {wanted.spec} on {workload}"):
        return check_policy(policy, workload, wanted.kind, **settings)


def _folder(wanted: Wanted) -> Folder:
    from tidegate import units
    from tidegate.driver.folder import make_folder

    if wanted.out is not None and wanted.out.exists():
        raise TidegateError(f"--out {wanted.out} exists; give a new folder")
    machine, near = _machine(wanted), wanted.settings.get("near")
    room = machine.near.bytes if near is None else units.size(near)
    return make_folder(wanted.policy, machine, room)


def _machine(wanted: Wanted) -> Machine:
    from tidegate.experiments.specification import MACHINE
    from tidegate.machine.machine import load_machine

    return load_machine(wanted.settings.get("machine") or MACHINE)


def _data(checked: Checked | None, folder: Folder | None, out: Path | None) -> dict[str, Any]:
    data: dict[str, Any] = asdict(checked) if checked is not None else {}
    if folder is not None:
        data |= {"folder": str(out), "files": sorted(folder.files), "hooks": folder.hooks}
    return data


def _show(checked: Checked) -> None:
    if checked.wrong:
        output.print_text(
            f"{checked.wrong:,} of {checked.compared:,} answers differ: {checked.first_wrong}"
        )
    else:
        by_event = ", ".join(f"{n:,} {event}" for event, n in checked.events.items())
        output.print_text(
            f"all {checked.compared:,} answers of the kernel equal Python's: "
            f"{checked.answers:,} of victim and observe, {checked.requests:,} requests, in "
            f"{checked.calls:,} calls ({by_event})"
        )
    output.print_text(
        f"{checked.instructions:,} instructions, {checked.ns_per_call:.0f} ns a call; the longest, "
        f"{checked.longest_event}, {checked.longest_ns / 1000:.1f} µs; at most {checked.rounds:,} "
        "rounds in a loop"
    )
    if checked.hook_calls:
        output.print_text(
            f"the first {checked.hook_calls:,} calls also as a hook is called (struct_ops)"
        )


def _modprobe(wanted: Wanted) -> None:
    from tidegate.driver.modprobe import compare_with_stock, emit_modprobe, settings_of
    from tidegate.files import write_atomically

    machine, spec, workload = _machine(wanted), wanted.spec, wanted.workload
    text = emit_modprobe(wanted.policy, spec, machine)
    runs = None
    if workload is not None:
        runs = compare_with_stock(wanted.kind, spec, workload, wanted.settings)
    if wanted.out is not None:
        write_atomically(wanted.out, text)
    if wanted.as_json:
        data: dict[str, Any] = {"settings": settings_of(wanted.policy, machine), "file": text}
        output.print_json(data | ({} if runs is None else {"simulated": runs.to_data()}))
        return
    if wanted.out is None:
        print(text, end="")
    else:
        output.print_text(f"written to {wanted.out}")
    if runs is not None:
        output.print_text(runs.sentence(spec))
