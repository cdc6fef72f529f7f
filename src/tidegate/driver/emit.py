"""A policy → C for the kernel's verifier, and the folder that a person gets."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import Any

from tidegate.errors import PolicyError, TidegateError
from tidegate.machine.machine import Machine
from tidegate.options import format_spec
from tidegate.policies.interface.declaration import WITHOUT_NUMBER, check_declared
from tidegate.policies.interface.events import ASK_THRESHOLD, EVENT_NAMES
from tidegate.policies.interface.memory_view import MemoryView
from tidegate.policies.interface.policy import Policy, label
from tidegate.policies.interface.visibility import Samples
from tidegate.policy_compiler.bounded import pass_rounds
from tidegate.policy_compiler.bpf.emitter import emit_policy
from tidegate.policy_compiler.source import CannotCompile
from tidegate.trace.geometry import Geometry

# Most rounds of a loop where a policy declares none: 21 µs of clock's under a lock of the driver
# (benchmarks/in_kernel.py); all of 60,000 regions would take half a millisecond.
ROUNDS = 1024
REGIONS = 1 << 16  # 128 GiB of 2 MiB
_HEAD = """\
/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * {title}, emitted by tidegate {version}.
 * At most {regions} regions of {pages} pages, and {rounds} rounds in a loop.
 */
#define REGIONS {regions}
#define SLOTS {slots}
#define ROUNDS {rounds}
#define PAGES {pages}
#include "policy.h"

"""
_TAIL = """
#ifdef CHECK
#include "check.h"
#endif
#ifdef GPU_EXT
#include "gpu_ext.h"
#endif

char license_[] SEC("license") = "GPL";
"""


class DriverMemory(MemoryView):
    """What start() sees of a driver: sizes, and no allocations. Its requests are kept."""

    def __init__(self, policy: Policy, geometry: Geometry, frames: int, regions: int):
        seen = policy.sees.regions if isinstance(policy.sees, Samples) else 0
        super().__init__(label(policy), policy.sees, geometry, frames, seen, {})
        self._regions = regions
        self.requests: list[tuple[int, ...]] = []
        self.observed = ()

    @property
    def regions(self) -> int:
        return self._regions

    @property
    def objects(self) -> Any:
        raise PolicyError(
            f"{self._name} asks which allocations there are, which a driver's hooks do not tell"
        )

    def _request(self, request: int, *words: int) -> None:
        self.requests.append((request, *words))


def start_in_driver(policy: Policy, machine: Machine, near: int) -> DriverMemory:
    """Start a policy as a driver would, for a memory of so many bytes."""
    check_declared(policy)
    geometry = machine.geometry
    memory = DriverMemory(policy, geometry, near // geometry.region, REGIONS)
    policy.most_rounds = policy.most_rounds or ROUNDS
    pass_rounds(policy)
    policy.attach(memory)
    policy.start()
    return memory


def emit_core(policy: Policy) -> str:
    """Return a policy that was started as C; refuse in one line what the kernel cannot have."""
    try:
        emitted = emit_policy(policy)
    except CannotCompile as why:
        raise TidegateError(f"policy '{label(policy)}' cannot be emitted: {why}") from None
    from tidegate import __version__

    memory = policy.memory
    regions, pages = memory.regions, memory.geometry.pages_per_region
    head = _HEAD.format(
        title=format_spec(policy).replace("*/", "* /"),
        version=__version__,
        regions=regions,
        slots=1 << regions.bit_length(),
        pages=pages,
        rounds=policy.most_rounds or ROUNDS,
    )
    return head + emitted.text + _calls(emitted.events) + _TAIL


def _calls(events: tuple[int, ...]) -> str:
    """Return the function that calls the method of an event."""
    cases = "".join(
        f"\tcase {event}:\n\t\treturn policy_{EVENT_NAMES[event]}"
        f"({'' if EVENT_NAMES[event] in WITHOUT_NUMBER else 'region'});\n"
        for event in events
    )
    return (
        "\n/* Events by number: tidegate/policies/interface/events.py */\n"
        "FUNCTION s64 policy_call(s64 event, s64 region)\n{\n"
        f"\tswitch (event) {{\n{cases}\t}}\n\treturn NONE;\n}}\n"
    )


def write_core(folder: Path, code: str) -> Path:
    """Write a policy and what it includes; return the file to compile."""
    for name in ("policy.h", "check.h"):
        (folder / name).write_text(shipped(name), "utf-8")
    source = folder / "policy.bpf.c"
    source.write_text(code, "utf-8")
    return source


def shipped(name: str) -> str:
    """Return a header that comes with Tidegate."""
    return (files("tidegate.policy_compiler.bpf") / name).read_text("utf-8")


def first_threshold(memory: DriverMemory) -> int | None:
    """Return the tree's threshold that start() asked for, None if it asked for none."""
    found = [row[1] for row in memory.requests if row[0] == ASK_THRESHOLD]
    return found[-1] if found else None
