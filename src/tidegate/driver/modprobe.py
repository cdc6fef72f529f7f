"""Settings of NVIDIA's stock driver that do what a policy does: prefetch, access counters, batches.

Names and defaults: open-gpu-kernel-modules 595.45.04, uvm_perf_prefetch.c,
uvm_gpu_access_counters.c and uvm_gpu_replayable_faults.c.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from tidegate.errors import TidegateError
from tidegate.experiments import Run, RunSpec
from tidegate.machine.machine import Machine, load_machine
from tidegate.policies.eviction.lrm import LRM
from tidegate.policies.interface.policy import EvictionPolicy, Policy, label
from tidegate.policies.placement.acbm import ACBM
from tidegate.policies.placement.baselines import UnifiedMemory
from tidegate.policies.prefetch.tree import NoPrefetch, Tree, WholeRegion
from tidegate.units import show_size

STOCK_BATCH = 256
STOCK_THRESHOLD = 51
_TEXT = """\
# {title}, as settings of NVIDIA's stock driver; written by tidegate, never run on a GPU.
# 1. Save this as /etc/modprobe.d/tidegate.conf (root).
# 2. Stop all CUDA programs, then: modprobe -r nvidia-uvm && modprobe nvidia-uvm
# 3. See that it holds: grep . /sys/module/nvidia_uvm/parameters/{shown}
# To undo: remove the file and do step 2 again.
options nvidia-uvm {options}
"""

_Settings = dict[str, int]


def _tree(policy: Tree) -> _Settings:
    return {"uvm_perf_prefetch_threshold": policy.threshold}


def _acbm(policy: ACBM) -> _Settings:
    if policy.granularity not in ("region", "2MiB"):
        raise TidegateError(
            f"acbm(granularity={policy.granularity}) cannot be set: the driver counts for 2 MiB; "
            "leave granularity out"
        )
    return {
        "uvm_perf_access_counter_migration_enable": 1,
        "uvm_perf_access_counter_threshold": policy.threshold,
    }


_KNOWN: dict[type[Policy], Callable[[Any], _Settings]] = {
    Tree: _tree,
    WholeRegion: lambda policy: {"uvm_perf_prefetch_threshold": 1},
    NoPrefetch: lambda policy: {"uvm_perf_prefetch_enable": 0},
    ACBM: _acbm,
    LRM: lambda policy: {},
    UnifiedMemory: lambda policy: {},
}


def settings_of(policy: Policy, machine: Machine) -> _Settings:
    """Return the driver's module parameters for a policy on a machine."""
    if type(policy) not in _KNOWN:
        raise TidegateError(
            f"policy '{label(policy)}' has no setting in the stock driver: {_why(policy)}"
        )
    found = _KNOWN[type(policy)](policy)
    batch = machine.driver.batch_faults
    return found | ({"uvm_perf_fault_batch_count": batch} if batch != STOCK_BATCH else {})


def _why(policy: Policy) -> str:
    if isinstance(policy, EvictionPolicy):
        return "it evicts by lrm; --to bpf is for drivers with hooks"
    return (
        "it has those of the tree (none, region, tree) and of access counters (acbm); --to bpf is "
        "for drivers with hooks"
    )


def emit_modprobe(policy: Policy, title: str, machine: Machine) -> str:
    """Return a file for /etc/modprobe.d."""
    found = settings_of(policy, machine)
    if not found:
        raise TidegateError(f"{title} is what the stock driver does; there is nothing to set")
    options = " ".join(f"{name}={value}" for name, value in found.items())
    return _TEXT.format(title=title, options=options, shown=next(iter(found)))


@dataclass(frozen=True)
class WithStock:
    """A simulated run with the stock driver's settings, and one with others."""

    stock: Run
    changed: Run

    def sentence(self, title: str) -> str:
        """Return what the settings change, by simulation."""
        before, after = self.stock.summary, self.changed.summary
        ratio = before["time_ns"] / after["time_ns"]
        return (
            f"simulated on {self.stock.summary['machine']}: {title} is {ratio:.2f} x as fast as "
            f"the stock driver; {before['faults']:,} faults become {after['faults']:,}, and "
            f"{show_size(before['bytes_in'])} that come in {show_size(after['bytes_in'])}"
        )

    def to_data(self) -> dict[str, Any]:
        """Return both summaries."""
        return {"stock": self.stock.summary, "changed": self.changed.summary}


def compare_with_stock(kind: str, spec: str, workload: str, settings: dict[str, Any]) -> WithStock:
    """Simulate a workload under the stock driver, and with the policy in place of its own."""
    machine = settings.get("machine")
    stock = RunSpec.from_settings(workload, {**settings, "machine": _stock(machine)})
    changed = RunSpec.from_settings(workload, {**settings, kind: spec})
    return WithStock(stock.run(), changed.run())


def _stock(machine: Any) -> Any:
    """Return the machine with the driver's own batch size."""
    if machine is None:
        return None
    found = load_machine(machine)
    return replace(found, driver=replace(found.driver, batch_faults=STOCK_BATCH))
