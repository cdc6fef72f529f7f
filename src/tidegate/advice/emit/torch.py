"""Code for PyTorch: the plan's tensors as constants, and the runtime that moves them.

The file is one module that needs PyTorch only: ``torch_runtime.py`` and ``torch_managed.py`` with
the plan behind them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources import files

import numpy as np
import polars as pl

from tidegate.advice.advice import Advice
from tidegate.advice.simulate import Outcome
from tidegate.errors import TidegateError
from tidegate.trace.ops import Ops, OpTrace
from tidegate.trace.ops.allocators import SMALL
from tidegate.units import show_size

_DONE = {"training": ("activation",), "inference": ("weight",)}


@dataclass(frozen=True)
class Moves:
    """What a plan moves, by kind, as far as the code can do it.

    The program holds its inputs, and an optimiser its states. For them others leave, until the rest
    fits, if there are so many.
    """

    saved: tuple[tuple[str, int], ...]  # modules and bytes of activations
    streamed: tuple[str, ...]  # names of weights
    left: dict[str, int]  # bytes of other kinds that the plan moves and the code does not
    fits: bool  # whether near memory is enough with what the code moves

    @property
    def whole(self) -> bool:
        return self.fits or not self.left


def emit_torch(advice: Advice) -> str:
    """Return a Python module that runs a model by the best plan that it can carry out."""
    trace = advice.subject.trace(advice.machine)
    if not isinstance(trace, OpTrace):
        raise TidegateError(
            f"--emit torch needs a recording of a PyTorch program, got {advice.subject.name}; "
            "record it with: tidegate record torch"
        )
    outcome, moves = _choose(advice, trace)
    doc, body = _runtime("torch_runtime.py")
    managed = _runtime("torch_managed.py")[1].removeprefix(_FUTURE).lstrip()
    head = _head(advice, outcome, moves, doc)
    return "\n".join([*head, body, "", managed, *_constants(advice, moves)])


_FUTURE = "from __future__ import annotations\n"


def _runtime(name: str) -> tuple[str, str]:
    """Return the words and the code of a module that is emitted as it is."""
    text = files("tidegate.advice.emit").joinpath(name).read_text("utf-8")
    at = text.index(_FUTURE)
    return text[:at].strip().strip('"').rstrip(), text[at:]


def _choose(advice: Advice, trace: OpTrace) -> tuple[Outcome, Moves]:
    """Return the fastest plan of which nothing is left undone; without one, the fastest."""
    plans = [o for o in advice.ranked if "torch" in o.trial.candidate.emits]
    if not plans:
        raise TidegateError(f"no plan could be simulated for {advice.subject.name}")
    found = [(o, moves_of(o, trace, advice.near)) for o in plans]
    return next((pair for pair in found if pair[1].whole), found[0])


def moves_of(outcome: Outcome, trace: OpTrace, near: int) -> Moves:
    """Return what left near memory in a run, by kind.

    The plan moves regions when it must, the code whole tensors when they are saved; where that
    would leave more than ``near`` bytes on the device, further ones leave.
    """
    assert outcome.run is not None
    ops = trace.ops
    large = np.flatnonzero(ops.tensors["bytes"].to_numpy() > SMALL)  # the first objects, in order
    kinds, names = _kinds(ops), ops.tensors["name"].to_list()
    sizes = ops.tensors["bytes"].to_list()
    done = _DONE["training" if ops.is_trained else "inference"]
    evicted = outcome.run.objects["evictions"].to_list()
    moved = [t for t, times in zip(large.tolist(), evicted, strict=False) if times]
    left: dict[str, int] = {}
    for tensor in moved:
        if kinds[tensor] not in done:
            left[kinds[tensor]] = left.get(kinds[tensor], 0) + sizes[tensor]
    leaving = [t for t in moved if kinds[t] in done]
    others = iter([t for t in _others(ops, kinds, large.tolist(), done) if t not in leaving])
    while not (fits := peak_without(ops, kinds, leaving) <= near):
        if (other := next(others, None)) is None:
            break
        leaving.append(other)
    saved = ((names[t].rpartition("/")[0], sizes[t]) for t in leaving if kinds[t] == "activation")
    return Moves(
        tuple(dict.fromkeys(saved)),
        tuple(names[t] for t in leaving if kinds[t] == "weight"),
        left,
        fits,
    )


def peak_without(ops: Ops, kinds: list[str], away: list[int]) -> int:
    """Return the peak of live bytes if these tensors are on the host while they wait.

    Activations wait from their last use in the forward pass to their first one in the backward
    pass, weights wherever no launch uses them.
    """
    sizes, n = ops.tensors["bytes"].to_numpy(), len(ops.launches)
    change = np.zeros(n + 2, np.int64)
    events = ops.events
    signs = np.where(events["born"].to_numpy(), 1, -1)
    np.add.at(change, events["launch"].to_numpy(), signs * sizes[events["tensor"].to_numpy()])
    backward = ops.launches["phase"].str.starts_with("backward").to_numpy()
    used = ops.operands.filter(pl.col("tensor").is_in(away)).sort("launch")
    for (tensor,), uses in used.group_by("tensor"):
        launches = np.unique(uses["launch"].to_numpy())
        if kinds[int(tensor)] == "weight":
            change[0] -= sizes[tensor]
            change[launches] += sizes[tensor]
            change[launches + 1] -= sizes[tensor]
            continue
        later, before = launches[backward[launches]], launches[~backward[launches]]
        if len(later) and len(before) and before[-1] < later[0]:
            change[before[-1] + 1] -= sizes[tensor]
            change[later[0]] += sizes[tensor]
    return int(np.cumsum(change).max())


def _others(ops: Ops, kinds: list[str], large: list[int], done: tuple[str, ...]) -> list[int]:
    """Return tensors that can leave in place of others: those that wait longest first."""
    if "activation" in done:
        return _waiting(ops, kinds, large)
    return [t for t in large if kinds[t] in done]


def _waiting(ops: Ops, kinds: list[str], tensors: list[int]) -> list[int]:
    """Return the activations that a backward pass uses, those that wait longest first."""
    last = ops.operands.group_by("tensor").agg(pl.col("launch").max()).sort("launch", "tensor")
    backward = ops.launches["phase"].str.starts_with("backward").to_list()
    known = set(tensors)
    order = [t for t, launch in last.iter_rows() if backward[launch]]
    return [t for t in reversed(order) if kinds[t] == "activation" and t in known]


def _kinds(ops: Ops) -> list[str]:
    """Return the kinds of tensors; what a backward pass makes is a gradient, and what no module
    makes is an input.
    """
    births = ops.events.filter(pl.col("born")).unique("tensor", keep="first", maintain_order=True)
    at = np.minimum(births["launch"].to_numpy(), len(ops.launches) - 1)
    backward = ops.launches["phase"].str.starts_with("backward").to_numpy()[at]
    kinds = ops.tensors["kind"].to_list()
    of_backward = set(births["tensor"].to_numpy()[backward].tolist())
    for tensor, name in enumerate(ops.tensors["name"]):
        if kinds[tensor] == "activation" and tensor in of_backward:
            kinds[tensor] = "gradient"
        elif kinds[tensor] == "activation" and "/" not in name:
            kinds[tensor] = "input"
    return kinds


def _head(advice: Advice, outcome: Outcome, moves: Moves, doc: str) -> Iterator[str]:
    first, _, rest = doc.partition("\n")
    yield f'"""{first}'
    yield rest.rstrip()
    yield ""
    yield (
        f"Made by tidegate advise for {advice.subject.name} on {advice.machine.name} with "
        f"{show_size(advice.near)},"
    )
    yield f"by the plan {outcome.name}. It was never run on a GPU."
    if not moves.whole:
        others = ", ".join(f"{kind} {show_size(size)}" for kind, size in moves.left.items())
        yield f"The plan also moves what this code does not: {others}."
    yield '"""\n'


def _constants(advice: Advice, moves: Moves) -> Iterator[str]:
    yield f"\nNEAR = {advice.near}  # bytes of device memory that the plan needs"
    yield "# saved tensors that move: the module that makes them, bytes"
    yield "SAVED: set[tuple[str, int]] = {"
    yield from (f"    {pair!r}," for pair in sorted(moves.saved))
    yield "}" if moves.saved else "*()}"  # {} alone would be a dictionary
    yield "# weights that are on the device only while their module runs"
    yield "STREAMED: set[str] = {"
    yield from (f"    {name!r}," for name in moves.streamed)
    yield "}\n\n" if moves.streamed else "*()}\n\n"
    yield _APPLY


_APPLY = '''def apply(model: nn.Module, device: Any = None) -> Any:
    """Return a context in which ``model`` runs by the plan.

    ``device``: CudaDevice(NEAR) by default; use_managed_memory(NEAR) for managed memory.
    """
    return run_by(Plan(SAVED, STREAMED, device or CudaDevice(NEAR)), model)
'''
