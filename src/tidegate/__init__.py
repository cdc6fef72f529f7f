"""Tidegate: run programs larger than their fast memory.

    import tidegate
    run = tidegate.run("matmul(bytes=1GiB)", oversubscribe="50%", eviction="lru-ideal")
    run.summary, run.timeline, run.plot()

Names are imported when they are first used, so that starting is quick. Not even ``typing`` is
imported here: Ctrl-C is not handled before ``interrupts`` is imported.
"""

from __future__ import annotations

import importlib

__version__ = "0.1.0"

TYPE_CHECKING = False  # type checkers take it as True
if TYPE_CHECKING:
    from typing import Any

    from tidegate import record as record
    from tidegate.errors import PolicyError as PolicyError
    from tidegate.errors import TidegateError as TidegateError
    from tidegate.experiments import Comparison as Comparison
    from tidegate.experiments import Run as Run
    from tidegate.experiments import RunSpec as RunSpec
    from tidegate.experiments import Slurm as Slurm
    from tidegate.experiments import Sweep as Sweep
    from tidegate.experiments import Swept as Swept
    from tidegate.experiments import analyze as analyze
    from tidegate.experiments import compare as compare
    from tidegate.experiments import run as run
    from tidegate.experiments import run_grid as run_grid
    from tidegate.experiments.sweeps.sweep_file import load_sweep as load_sweep
    from tidegate.live import Arena as Arena
    from tidegate.machine import Machine as Machine
    from tidegate.machine import load_machine as load_machine
    from tidegate.options import Option as Option
    from tidegate.policies import Column as Column
    from tidegate.policies import Decision as Decision
    from tidegate.policies import Draws as Draws
    from tidegate.policies import Everything as Everything
    from tidegate.policies import EvictionPolicy as EvictionPolicy
    from tidegate.policies import Faults as Faults
    from tidegate.policies import Heap as Heap
    from tidegate.policies import Marks as Marks
    from tidegate.policies import Order as Order
    from tidegate.policies import Orders as Orders
    from tidegate.policies import PlacementPolicy as PlacementPolicy
    from tidegate.policies import PrefetchPolicy as PrefetchPolicy
    from tidegate.policies import Samples as Samples
    from tidegate.policies import TouchBits as TouchBits
    from tidegate.policies import first as first
    from tidegate.policies.interface.tier_policy import ASKED as ASKED
    from tidegate.policies.interface.tier_policy import FAR as FAR
    from tidegate.policies.interface.tier_policy import MIDDLE as MIDDLE
    from tidegate.policies.interface.tier_policy import NOBODY as NOBODY
    from tidegate.policies.interface.tier_policy import OLDEST as OLDEST
    from tidegate.policies.interface.tier_policy import STAY as STAY
    from tidegate.policies.interface.tier_policy import TierPolicy as TierPolicy
    from tidegate.policies.registries import eviction as eviction
    from tidegate.policies.registries import placement as placement
    from tidegate.policies.registries import prefetch as prefetch
    from tidegate.policies.registries import tiering as tiering
    from tidegate.trace import Copy as Copy
    from tidegate.trace import Launch as Launch
    from tidegate.trace import Object as Object
    from tidegate.trace import Provenance as Provenance
    from tidegate.trace import Trace as Trace
    from tidegate.trace import TraceFile as TraceFile
    from tidegate.trace import blocks_of as blocks_of
    from tidegate.trace import save_trace as save_trace
    from tidegate.trace.geometry import Geometry as Geometry
    from tidegate.workloads import Workload as Workload
    from tidegate.workloads import workload as workload

_HOME = {
    "tidegate.errors": ("PolicyError", "TidegateError"),
    "tidegate.experiments": (
        "Comparison",
        "Run",
        "RunSpec",
        "Slurm",
        "Sweep",
        "Swept",
        "analyze",
        "compare",
        "run",
        "run_grid",
    ),
    "tidegate.live": ("Arena",),
    "tidegate.machine": ("Machine", "load_machine"),
    "tidegate.trace.geometry": ("Geometry",),
    "tidegate.options": ("Option",),
    "tidegate.policies": (
        "Column",
        "Decision",
        "Draws",
        "EvictionPolicy",
        "Everything",
        "Faults",
        "Heap",
        "Marks",
        "Order",
        "Orders",
        "PlacementPolicy",
        "PrefetchPolicy",
        "Samples",
        "TouchBits",
        "first",
    ),
    "tidegate.policies.registries": ("eviction", "placement", "prefetch", "tiering"),
    "tidegate.policies.interface.tier_policy": (
        "ASKED",
        "FAR",
        "MIDDLE",
        "NOBODY",
        "OLDEST",
        "STAY",
        "TierPolicy",
    ),
    "tidegate.experiments.sweeps.sweep_file": ("load_sweep",),
    "tidegate.trace": (
        "Copy",
        "Launch",
        "Object",
        "Provenance",
        "Trace",
        "TraceFile",
        "blocks_of",
        "save_trace",
    ),
    "tidegate.workloads": ("Workload", "workload"),
}
_WHERE = {name: home for home, names in _HOME.items() for name in names}
_ROOMS = ("record",)  # used as modules: tidegate.record.torch()
__all__ = sorted([*_WHERE, *_ROOMS])


def __getattr__(name: str) -> Any:
    if name in _ROOMS:
        return importlib.import_module(f"tidegate.{name}")
    if name not in _WHERE:
        raise AttributeError(f"module 'tidegate' has no attribute '{name}'")
    value = getattr(importlib.import_module(_WHERE[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
