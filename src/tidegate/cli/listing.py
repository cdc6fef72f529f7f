"""tidegate list: what there is to name."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

import typer

from tidegate.cli import output


class Kind(StrEnum):
    """What can be listed."""

    WORKLOADS = "workloads"
    POLICIES = "policies"
    EVICTION = "eviction"
    PREFETCH = "prefetch"
    PLACEMENT = "placement"
    TIERING = "tiering"
    SYSTEMS = "systems"
    MACHINES = "machines"


def list_names(
    kind: Annotated[Kind, typer.Argument(help="What to list.", show_default=False)],
    as_json: output.AsJson = False,
    as_csv: output.AsCsv = False,
) -> None:
    """List workloads, policies (or one kind of them), systems or machines, with their options.

    tidegate list policies
    tidegate list tiering
    """
    output.check_asked(as_json, as_csv, None)
    of = {Kind.WORKLOADS: _workloads, Kind.SYSTEMS: _systems, Kind.MACHINES: _machines}
    rows = of[kind]() if kind in of else [r for r in _policies() if kind in (Kind.POLICIES, r["kind"])]
    if as_json:
        output.print_json(rows)
    elif as_csv:
        output.print_csv(rows)
    else:
        output.print_table(list(rows[0]), [[str(v) for v in r.values()] for r in rows], left=len(rows[0]))


def _workloads() -> list[dict[str, Any]]:
    from tidegate.workloads import workloads

    classes = {name: workloads.find(name) for name in workloads.names()}
    return [
        {"workload": name, "from": cls.provenance.value, "what": _first_line(cls), "options": _options(cls)}
        for name, cls in classes.items()
    ]


def _policies() -> list[dict[str, Any]]:
    from tidegate.policies.registries import eviction, placement, prefetch, tiering

    rows = []
    for registry in (eviction, prefetch, placement, tiering):
        for name in registry.names():
            cls = registry.find(name)
            rows.append(
                {
                    "kind": registry.family,
                    "policy": name,
                    "sees": cls.sees.level,
                    "what": _first_line(cls),
                    "options": _options(cls),
                }
            )
    return rows


def _systems() -> list[dict[str, Any]]:
    from tidegate.policies.systems import SYSTEMS

    return [
        {"system": s.name, "eviction": s.eviction, "prefetch": s.prefetch, "placement": s.placement, "source": s.source}
        for s in SYSTEMS.values()
    ]


def _machines() -> list[dict[str, Any]]:
    from tidegate.machine import load_machine, preset_names
    from tidegate.units import show_size

    machines = [load_machine(name) for name in preset_names()]
    return [
        {
            "machine": m.name, "what": m.description, "near": show_size(m.near.bytes), "slots": m.near.slots,
            "link GB/s": f"{m.link.inward:g} / {m.link.outward:g}", "page / region": str(m.geometry),
            "shows": ", ".join(m.offers),
        }
        for m in machines
    ]  # fmt: skip


def _first_line(cls: type) -> str:
    return ((cls.__doc__ or "").strip().splitlines() or [""])[0]


def _options(cls: Any) -> str:
    return ", ".join(f"{name}={option.default}" for name, option in cls.options().items())
