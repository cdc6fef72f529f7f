"""Where a policy can run: simulated, live, in the kernel, steered, by settings of the stock driver.

The table of docs/driver.md is made of this (``scripts/driver_table.py``), and a test holds it so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tidegate.driver.emit import emit_core, start_in_driver
from tidegate.driver.find import KINDS
from tidegate.driver.modprobe import settings_of
from tidegate.driver.tape import taping
from tidegate.errors import TidegateError
from tidegate.experiments import RunSpec
from tidegate.live.pager.policies import check_policies
from tidegate.machine.machine import load_machine
from tidegate.policies.interface.policy import EvictionPolicy, Policy
from tidegate.policies.registries import eviction, placement, prefetch

MACHINE = "rtx3090-pcie4"
# ways for a person with a policy; ``preload`` follows plans, not policies: docs/how-to/preload.md
WAYS = ("simulated", "live", "ebpf", "steered", "modprobe")
YES = "yes"
_NEEDS_ALLOCATIONS = "yes, where a driver tells allocations"


def all_policies() -> Iterator[tuple[str, str]]:
    """Yield the kind and the name of every shipped policy, and of the published pairs."""
    for name in eviction.names():
        yield "eviction", name
    for name in (*prefetch.names(), "fdp+rgp"):
        yield "prefetch", name
    for name in placement.names():
        yield "placement", name


def where(kind: str, spec: str) -> dict[str, str]:
    """Return for each way "yes", or why not.

    >>> where("eviction", "mru")["modprobe"]
    'no: it evicts by lrm'
    """
    return {"simulated": YES} | {way: _tried(check, kind, spec) for way, check in _CHECKS.items()}


def _tried(check: Callable[[str, str], str], kind: str, spec: str) -> str:
    try:
        return check(kind, spec)
    except TidegateError as why:
        return f"no: {why}"


def _live(kind: str, spec: str) -> str:
    check_policies([KINDS[kind](spec)])
    return YES


def _ebpf(kind: str, spec: str) -> str:
    if kind == "placement":
        return "no: no hook asks for it"
    policy = KINDS[kind](spec)
    machine = load_machine(MACHINE)
    try:
        start_in_driver(policy, machine, machine.near.bytes)
    except TidegateError:
        return _with_allocations(kind, spec)
    emit_core(policy)
    return YES


def _with_allocations(kind: str, spec: str) -> str:
    """Emit a policy that must know the allocations, as a run shows them."""
    policy = KINDS[kind](spec)
    with taping(policy):
        try:
            RunSpec("cyclic(bytes=8MiB)", compiled=False, **{kind: policy}).run(cache=False)  # type: ignore[arg-type]
        except TidegateError as error:
            raise error.__cause__ if isinstance(error.__cause__, TidegateError) else error from None
    return _NEEDS_ALLOCATIONS


def _steered(kind: str, spec: str) -> str:
    if kind == "eviction":
        if spec == "steered":
            return YES
        made = eviction.make(spec)
        if type(made).steering is EvictionPolicy.steering:
            return "no: not by arrival alone"
        return YES
    if kind == "prefetch" and spec in ("none", "region", "tree"):
        return YES
    return "no: whose pages fault is not told" if kind == "prefetch" else "no: no hook"


def _modprobe(kind: str, spec: str) -> str:
    policy: Policy = KINDS[kind](spec)
    machine = load_machine(MACHINE)
    try:
        return YES if settings_of(policy, machine) else "the driver's own"
    except TidegateError:
        return {
            "eviction": "no: it evicts by lrm",
            "prefetch": "no: it has the tree",
            "placement": "no: no such setting",
        }[kind]


_CHECKS: dict[str, Callable[[str, str], str]] = {
    "live": _live,
    "ebpf": _ebpf,
    "steered": _steered,
    "modprobe": _modprobe,
}
