"""The folder that a person gets: the policy in C, what it includes, a loader, and how to use it."""

from __future__ import annotations

import os
import shutil
import tempfile
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from tidegate.driver.emit import emit_core, first_threshold, shipped, start_in_driver
from tidegate.driver.kernel import Loaded, compile_bpf, missing
from tidegate.errors import TidegateError
from tidegate.machine.machine import Machine
from tidegate.options import format_spec
from tidegate.policies.eviction.steered import Steered
from tidegate.policies.interface.declaration import handled_events
from tidegate.policies.interface.events import NO_TREE
from tidegate.policies.interface.policy import EvictionPolicy, Policy
from tidegate.policies.interface.visibility import Everything, Samples, TouchBits

_README = """\
# {title}, for the kernel

Emitted by tidegate {version} for {frames:,} frames of {region} and at most {regions:,} regions.
Licence of the code: GPL-2.0-only OR Apache-2.0. **It was never run on a GPU.**

    make            # clang-19 and libbpf's headers: apt-get install clang-19 libbpf-dev
    make verify     # as root: this kernel's verifier reads the policy; nothing is attached
{attach}
| file | what it is |
|---|---|
| policy.bpf.c | the policy: its state, its methods, and `policy_call(event, region)` |
| policy.h | the structures it stands on, what it is shown, what it may request |
| check.h | programs that play a tape of events, for `tidegate emit --check` |
{hooks_row}| load.c | the loader, over libbpf |

{hooks}

A loop makes {rounds:,} rounds at most (`ROUNDS`). If the policy does what Python would refuse,
`failed` is set and the driver must go on without it{fallback}.
"""
_ATTACH = """\
    make hooks      # the hooks of gpu_ext
    make attach     # as root, on a machine with that driver: until Ctrl-C; then the driver decides
"""
_STEERED = """\
`gpu_ext.h` has the hook of gpu_ext, a build of NVIDIA's open driver
(github.com/eunomia-bpf/gpu_ext): the block that arrives is put at an end of one of two lists. Its
authors report that moving blocks to a head at activation has led to Xid 31: try it on a machine
that may fail. One policy can be attached at a time."""
_THRESHOLD = """\
`gpu_ext.h` has the hooks of prefetch of gpu_ext, a build of NVIDIA's open driver
(github.com/eunomia-bpf/gpu_ext). The stock driver has the same as a setting:
`tidegate emit '{title}' --to modprobe`."""
_CHOOSE = """\
No driver has the hook that this policy needs yet: one that {needs}. Whoever writes it calls
`policy_call` under the lock of its lists. docs/driver.md has the contract, and what can be had of a
policy today (`steered`)."""


@dataclass(frozen=True)
class Folder:
    """The files to write; ``hooks`` names the driver whose hooks are among them, "" for none."""

    title: str
    files: dict[str, str]
    hooks: str

    @property
    def code(self) -> str:
        """The policy in C."""
        return self.files["policy.bpf.c"]

    def sentences(self, out: Path | None) -> list[str]:
        """Return what was written, and what the compiler and the kernel say of it."""
        return [f"written to {out}: {', '.join(sorted(self.files))}", *self._verdicts()]

    def _verdicts(self) -> list[str]:
        if why := missing():
            return [f"not compiled and not verified here: {why}"]
        with tempfile.TemporaryDirectory(prefix="tidegate-bpf-") as name:
            folder = Path(name)
            for file, text in self.files.items():
                (folder / file).write_text(text, "utf-8")
            said = []
            with Loaded(compile_bpf(folder / "policy.bpf.c", "CHECK")) as loaded:
                found = loaded.instructions("call")
                said.append(f"Linux {os.uname().release} verified it: {found:,} instructions")
            if self.hooks:
                compile_bpf(folder / "policy.bpf.c", "GPU_EXT")
                said.append(
                    f"the hooks of {self.hooks} compile; they need that driver to be loaded"
                )
        return said


def make_folder(policy: Policy, machine: Machine, near: int) -> Folder:
    """Start a policy as a driver would and return its files; refuse what the kernel cannot have."""
    memory = start_in_driver(policy, machine, near)
    title = format_spec(policy)
    flag = _hooks_of(policy, first_threshold(memory))
    code = emit_core(policy)
    if flag:
        code = code.replace("#ifdef GPU_EXT\n", f"#ifdef GPU_EXT\n#define {flag}\n")
    here = files("tidegate.driver.folder")
    found = {
        "policy.bpf.c": code,
        "policy.h": shipped("policy.h"),
        "check.h": shipped("check.h"),
        "load.c": (here / "load.c").read_text("utf-8"),
        "Makefile": (here / "Makefile").read_text("utf-8"),
        "README.md": _readme(policy, title, machine, near, bool(flag)),
    }
    if flag:
        found["gpu_ext.h"] = (here / "gpu_ext.h").read_text("utf-8")
    return Folder(title, found, "gpu_ext" if flag else "")


def _hooks_of(policy: Policy, threshold: int | None) -> str:
    """Return what gpu_ext.h is to make of the policy, "" if its hooks cannot."""
    if isinstance(policy, Steered):
        return "STEERED"
    if isinstance(policy, EvictionPolicy) or handled_events(policy):
        return ""
    return f"THRESHOLD {NO_TREE if threshold is None else threshold}"


def _readme(policy: Policy, title: str, machine: Machine, near: int, hooks: bool) -> str:
    from tidegate import __version__
    from tidegate.units import show_size

    steered = isinstance(policy, Steered)
    text = _STEERED if steered else _THRESHOLD.format(title=title)
    return _README.format(
        title=title,
        version=__version__,
        frames=near // machine.geometry.region,
        region=show_size(machine.geometry.region),
        regions=policy.memory.regions,
        attach=_ATTACH if hooks else "",
        hooks_row="| gpu_ext.h | the driver's hooks |\n" if hooks else "",
        hooks=text if hooks else _CHOOSE.format(needs=_needs(policy)),
        rounds=policy.most_rounds,
        fallback="; gpu_ext.h does so" if hooks else "",
    )


def _needs(policy: Policy) -> str:
    """Return what a driver must do for a policy, in words."""
    asks = "asks for a victim" if isinstance(policy, EvictionPolicy) else "asks what to prefetch"
    tells = {
        Samples: ", and tells of uses of observed regions",
        TouchBits: ", and tells which pages of a region were touched",
        Everything: ", and knows the last touch of every region, which no driver does",
    }
    return f"{asks}, tells of faults and evictions{tells.get(type(policy.sees), '')}"


def write_folder(folder: Folder, out: Path) -> None:
    """Write all files into a new folder, or none."""
    parent = out.absolute().parent
    if not parent.is_dir():
        raise TidegateError(f"--out {out}: there is no folder {out.parent}; make it first")
    made = Path(tempfile.mkdtemp(prefix=".tidegate-", dir=parent))
    try:
        for name, text in folder.files.items():
            (made / name).write_text(text, "utf-8")
        made.chmod(0o755)
        made.rename(out)
    except OSError:
        shutil.rmtree(made, ignore_errors=True)
        raise
