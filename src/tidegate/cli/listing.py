"""tidegate list: workloads, policies, systems and machines."""

from __future__ import annotations

import inspect
import re
from enum import StrEnum
from typing import Annotated, Any

import typer

from tidegate.cli import output
from tidegate.errors import TidegateError, UnknownName


class ListedKind(StrEnum):
    """The lists."""

    WORKLOADS = "workloads"
    POLICIES = "policies"
    EVICTION = "eviction"
    PREFETCH = "prefetch"
    PLACEMENT = "placement"
    TIERING = "tiering"
    SYSTEMS = "systems"
    MACHINES = "machines"


# columns to leave out first on a narrow terminal
_UNIMPORTANT = ("shows", "page / region", "slots", "options", "sees", "from", "source", "kind")


def list_names(
    kind: Annotated[ListedKind, typer.Argument(help="What to list.", show_default=False)],
    name: Annotated[
        str | None, typer.Argument(help="One policy or workload: all about it.", show_default=False)
    ] = None,
    as_json: output.AsJson = False,
    as_csv: output.AsCsv = False,
) -> None:
    """List workloads, policies (or one kind of them), systems or machines, with their options.

    tidegate list policies
    tidegate list eviction tournament
    """
    output.check(as_json, as_csv, None)
    if name is not None:
        with output.user_code():
            cls = _found(kind, name)
            runs = _how_it_runs(cls)
        _show(cls, runs, as_json, as_csv)
        return
    of = {
        ListedKind.WORKLOADS: _workloads,
        ListedKind.SYSTEMS: _systems,
        ListedKind.MACHINES: _machines,
    }
    rows = (
        of[kind]()
        if kind in of
        else [r for r in _policies() if kind in (ListedKind.POLICIES, r["kind"])]
    )
    if as_json:
        output.print_json(rows)
    elif as_csv:
        output.print_csv(rows)
    else:
        cells = [[str(v) for v in r.values()] for r in rows]
        output.print_table(list(rows[0]), cells, left=len(rows[0]), drop=_UNIMPORTANT)


def _found(kind: ListedKind, name: str) -> Any:
    """Return the class of this name."""
    from tidegate.policies.registries import eviction, placement, prefetch, tiering
    from tidegate.workloads import workloads

    families: dict[str, Any] = {r.family: r for r in (eviction, prefetch, placement, tiering)}
    if kind in (ListedKind.SYSTEMS, ListedKind.MACHINES):
        raise TidegateError(
            f"'{name}' was given after {kind}, which have no page of their own; leave it out"
        )
    if kind is ListedKind.WORKLOADS:
        return workloads.find(name)
    if kind is not ListedKind.POLICIES:
        return families[kind].find(name)
    known = {n: registry for registry in reversed(families.values()) for n in registry.names()}
    if name not in known:
        raise UnknownName("policy", name, known)
    return known[name].find(name)


def _how_it_runs(cls: Any) -> str:
    """Return whether a policy is compiled in simulations, or why it runs in Python."""
    from tidegate.experiments import RunSpec
    from tidegate.policies.interface.policy import EvictionPolicy, PlacementPolicy, PrefetchPolicy
    from tidegate.policies.interface.tier_policy import TierPolicy

    families = (EvictionPolicy, PrefetchPolicy, PlacementPolicy)
    which = next((i for i, family in enumerate(families) if issubclass(cls, family)), None)
    simulation: Any
    if issubclass(cls, TierPolicy):
        which, simulation = 0, RunSpec("cyclic(bytes=64MiB)", tiering=cls).prepare()
    elif which is not None:
        given = {("eviction", "prefetch", "placement")[which]: cls}
        simulation = RunSpec("cyclic(bytes=64MiB)", oversubscribe=0, **given).prepare()
    else:
        return ""
    reason = simulation.reasons()[which]
    return f"runs in Python: {reason}" if reason else "compiled"


def _show(cls: Any, runs: str, as_json: bool, as_csv: bool) -> None:
    """Print all about a policy or workload: its docstring, how it runs, its options."""
    rows = [
        {"option": name, "default": option.shown, "allowed": option.allowed, "what": option.help}
        for name, option in cls.options().items()
    ]
    if as_json:
        what = {"name": cls.name, "what": inspect.getdoc(cls) or ""} | (
            {"runs": runs} if runs else {}
        )
        output.print_json(what | {"options": rows})
    elif as_csv:
        output.print_csv(rows)
    else:
        output.print_text(f"{cls.name}: {inspect.getdoc(cls) or ''}")
        if runs:
            print()
            output.print_text(runs)
            print()
        if rows:
            cells = [list(row.values()) for row in rows]
            output.print_table(list(rows[0]), cells, left=4, drop=("allowed",))


def _workloads() -> list[dict[str, Any]]:
    from tidegate.workloads import workloads

    classes = {name: workloads.find(name) for name in workloads.names()}
    return [
        {
            "workload": name,
            "from": cls.provenance.value,
            "what": _first_sentence(cls),
            "options": _options(cls),
        }
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
                    "what": _first_sentence(cls),
                    "options": _options(cls),
                }
            )
    return rows


def _systems() -> list[dict[str, Any]]:
    from tidegate.policies.systems import SYSTEMS

    return [
        {
            "system": s.name,
            "eviction": s.eviction,
            "prefetch": s.prefetch,
            "placement": s.placement,
            "source": s.source,
        }
        for s in SYSTEMS.values()
    ]


def _machines() -> list[dict[str, Any]]:
    from tidegate.machine import load_machine, preset_names
    from tidegate.units import show_size

    machines = [load_machine(name) for name in preset_names()]
    return [
        {
            "machine": m.name,
            "what": m.description,
            "near": show_size(m.near.bytes),
            "slots": m.near.slots,
            "link GB/s": f"{m.link.inward:g} / {m.link.outward:g}",
            "page / region": str(m.geometry),
            "shows": ", ".join(m.offers),
        }
        for m in machines
    ]


def _first_sentence(cls: type) -> str:
    """Return what a class says it does, whole: its docstring's first sentence."""
    paragraph = (inspect.cleandoc(cls.__doc__ or "").split("\n\n") or [""])[0]
    return re.split(r"(?<=\.) (?=[A-Z])", " ".join(paragraph.split()))[0]


def _options(cls: Any) -> str:
    return ", ".join(f"{name}={option.shown}" for name, option in cls.options().items())
