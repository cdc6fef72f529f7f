"""Objects whose copies on host and device differ on purpose.

With OpenMP's map clauses an object has two copies, and a program may rely on it: the host keeps its
input while a region overwrites the device's, or writes its own between launches. Under unified
shared memory there is one copy, and such a program computes something else.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from tidegate.compiler.analysis.flow import Flow
from tidegate.compiler.analysis.launches import mapped
from tidegate.compiler.analysis.points_to import Origin, PointsTo
from tidegate.compiler.ir.loops import reachable
from tidegate.compiler.ir.module import Instruction, Module
from tidegate.compiler.model import FROM, TO, Note, ProgramModel

_BEGIN, _END, _UPDATE = (f"__tgt_target_data_{what}" for what in ("begin", "end", "update"))


@dataclass(frozen=True)
class _DataCall:
    """A call that maps objects, ends that, or updates a copy."""

    kind: str
    block: str
    map_types: Mapping[Origin, int]


def differing_copies(
    model: ProgramModel, named: Mapping[Origin, str], flow: Flow, module: Module, points: PointsTo
) -> Iterator[Note]:
    """Yield a note for each object whose copies must differ. `named`: the objects' names."""
    calls = list(_data_calls(flow, module, points))
    read, written = _host_uses(flow, points)
    for origin, name in named.items():
        own = [call for call in calls if origin in call.map_types]
        maps = [call.map_types[origin] for call in own]
        maps += [a.map_type for x in model.launches for a in x.arguments if name in a.objects]
        on_device = any(model.is_written(x, name) for x in model.launches if name in x.objects)
        if on_device and read.get(origin) and not any(m & FROM for m in maps):
            yield Note(name, "is written by regions and never mapped back, and the host reads it")
        elif _written_between(name, model, own, written.get(origin, []), flow):
            yield Note(name, "is written by the host while it is mapped, and not updated")


def _written_between(
    name: str, model: ProgramModel, calls: Sequence[_DataCall], stores: Sequence[str], flow: Flow
) -> bool:
    """Return whether the host writes an object between a call that maps it and a launch."""
    begins = [c.block for c in calls if c.kind == _BEGIN and max(c.map_types.values()) & TO]
    if not begins or not stores or any(c.kind == _UPDATE for c in calls):
        return False
    used = {x.block for x in model.launches if name in x.objects}
    ends = {c.block for c in calls if c.kind == _END}
    within = {
        block: tuple(b for b in following if b not in ends)
        for block, following in flow.successors.items()
    }
    for begin in begins:
        mapped_blocks = reachable(begin, within) - {begin}
        for store in set(stores) & mapped_blocks:
            if used & (reachable(store, within) - {store}):
                return True
    return False


def _data_calls(flow: Flow, module: Module, points: PointsTo) -> Iterator[_DataCall]:
    for i in flow.body:
        kind = next((k for k in (_BEGIN, _END, _UPDATE) if i.callee.startswith(k)), None)
        if kind is not None:
            yield _DataCall(kind, i.block, mapped(i, module, points))


def _host_uses(
    flow: Flow, points: PointsTo
) -> tuple[dict[Origin, list[str]], dict[Origin, list[str]]]:
    """Return the blocks in which the host reads and writes each object."""
    read: dict[Origin, list[str]] = {}
    written: dict[Origin, list[str]] = {}
    for i in flow.body:
        for pointer, into in _addresses(i):
            for origin, _ in points.targets(pointer):
                (written if into else read).setdefault(origin, []).append(i.block)
    return read, written


def _addresses(i: Instruction) -> Iterator[tuple[object, bool]]:
    """Yield (pointer, whether it is written)."""
    if i.opcode == "load":
        yield i.operands[0], False
    elif i.opcode == "store":
        yield i.operands[1], True
    elif i.callee.startswith(("llvm.memcpy", "llvm.memmove", "llvm.memset")):
        yield i.arguments[0], True
        if "memset" not in i.callee:
            yield i.arguments[1], False
    elif i.callee in ("memcmp", "fwrite", "printf", "puts"):
        yield from ((a, False) for a in i.arguments if a.type.is_pointer)
