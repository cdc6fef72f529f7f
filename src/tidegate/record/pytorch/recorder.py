"""OperatorRecorder: sees every operator below autograd and notes launches, operands and births.

An operator launches a kernel if it writes an argument or if an output has memory of its own; others
make views. Arguments that the schema marks as written are written, and also read unless the
operator overwrites them.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import torch
from torch._subclasses.fake_tensor import DataDependentOutputException, DynamicOutputShapeException
from torch.utils._python_dispatch import TorchDispatchMode

from tidegate.errors import TidegateError
from tidegate.record.pytorch.modules import Modules, Storages
from tidegate.record.pytorch.operators import Operator, describe, flops_of, row_of, span

_Operand = tuple[Any, int]  # a tensor and its group


class OperatorRecorder(TorchDispatchMode):
    """Notes what operators do while it is active.

    ``answer``: what a program gets that asks for a tensor's value; None refuses whole numbers.
    """

    def __init__(
        self, storages: Storages, modules: Modules, most_launches: int, answer: float | None
    ):
        super().__init__()
        self.storages, self.modules = storages, modules
        self.most_launches, self.answer = most_launches, answer
        self.active = True
        self.inside = False  # an operator is being recorded
        self.making_on_gpu = False  # a factory function was asked for a GPU tensor
        self.going_to_host = False  # what is copied now leaves the GPU
        self.counts: Counter[str] = Counter()  # of what had to be assumed
        self._known: dict[Any, Operator] = {}

    def __torch_dispatch__(
        self, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        operator = self._known.get(function)
        if operator is None:
            operator = self._known[function] = describe(function)
        before, self.inside = self.inside, True
        try:
            if operator.name == "_local_scalar_dense":
                return self._value(function, args)
            out = self._compute(function, operator, args, kwargs)
            if self.active and not operator.ignored:
                with torch._C.DisableTorchFunction():
                    self._note(function, operator, args, kwargs, out)
            return out
        finally:
            self.inside = before

    def _compute(self, function: Any, operator: Operator, args: Any, kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except (DynamicOutputShapeException, DataDependentOutputException):
            raise TidegateError(_NO_SIZE.format(name=operator.name)) from None

    def _value(self, function: Any, args: Any) -> Any:
        """Answer ``.item()``; a tensor without data has no value."""
        try:
            return function(*args)
        except DataDependentOutputException:
            kind = args[0].dtype
            if kind.is_floating_point and self.answer is None:
                self.counts["floats"] += 1
                return 0.0
            if self.answer is None:
                raise TidegateError(_NO_VALUE.format(kind=str(kind)[6:])) from None
            self.counts["answers"] += 1
            if kind.is_floating_point:
                return float(self.answer)
            return bool(self.answer) if kind == torch.bool else int(self.answer)

    def _note(self, function: Any, operator: Operator, args: Any, kwargs: Any, out: Any) -> None:
        reads: list[_Operand] = []
        writes: list[_Operand] = []
        positions, named = operator.writes, operator.writes_named
        for position, given in enumerate(args):
            _collect(given, writes if position < len(positions) and positions[position] else reads)
        for name, given in kwargs.items():
            _collect(given, writes if named.get(name) else reads)
        results: list[_Operand] = []
        _collect(out, results)
        if self.storages.on_gpu and not self._is_on_gpu(operator, reads, writes):
            return
        known = {t.untyped_storage()._cdata for t, _ in reads}
        known.update(t.untyped_storage()._cdata for t, _ in writes)
        fresh = [r for r in results if r[0].untyped_storage()._cdata not in known]
        if operator.allocates:
            for tensor, _ in fresh:
                self._born(tensor, operator)
        elif fresh or operator.mutates:
            self._launch(function, operator, args, kwargs, out, reads, writes, fresh, results)

    def _is_on_gpu(self, operator: Operator, reads: list[_Operand], writes: list[_Operand]) -> bool:
        """Return whether this runs on the GPU; if so, drop what stays on the host.

        Single values are passed by value. Other tensors must be there, too.
        """
        number = self.storages.number
        if not any(number(t) is not None for t, _ in (*reads, *writes)):
            return self.making_on_gpu and not reads and not writes
        for operands in (reads, writes):
            keep = [
                (t, g)
                for t, g in operands
                if number(t) is not None or not (t.dim() == 0 or operator.name == "copy_")
            ]
            operands[:] = keep
        return True

    def _launch(
        self,
        function: Any,
        operator: Operator,
        args: Any,
        kwargs: Any,
        out: Any,
        reads: list[_Operand],
        writes: list[_Operand],
        fresh: list[_Operand],
        results: list[_Operand],
    ) -> None:
        build, modules = self.storages.build, self.modules
        # what is new to us and not an output existed before: it holds host data
        numbers = [self._there(t) for t, _ in (*reads, *writes)]
        first = (results or writes or reads)[0][0]
        try:
            flops = flops_of(function, args, kwargs, out)
        except (TypeError, ValueError, AssertionError, AttributeError):
            flops = 0.0
            self.counts[f"flops {operator.name}"] += 1
        if not self.going_to_host:
            numbers += [self._born(t, operator) for t, _ in fresh]
        where, phase = modules.where_and_phase()
        build.launch(operator.name, where, phase, modules.step, flops, _dtype(first))
        moved = sum(t.numel() * t.element_size() for t, _ in fresh) if operator.gathers else 0
        if operator.scatters:
            moved = sum(t.numel() * t.element_size() for t, _ in reads)
        for i, (tensor, group) in enumerate((*reads, *writes)):
            number = numbers[i]
            if i < len(reads):
                gathered = operator.gathers and i == 0
                self._operand(
                    number, tensor, group, False, moved if gathered else 0, operator, args
                )
            else:
                scattered = operator.scatters and i == len(reads)
                if operator.reads_what_it_writes and not scattered:
                    self._operand(number, tensor, group, False, 0, operator, args)
                self._operand(
                    number, tensor, group, True, moved if scattered else 0, operator, args
                )
        for number, (tensor, group) in zip(
            numbers[len(reads) + len(writes) :], fresh, strict=False
        ):
            self._operand(number, tensor, group, True, 0, operator, args)
        modules.launched()
        if build.launches >= self.most_launches:
            raise TidegateError(_TOO_MANY.format(most=self.most_launches))

    def _operand(
        self,
        number: int,
        tensor: Any,
        group: int,
        write: bool,
        moved: int,
        operator: Operator,
        args: Any,
    ) -> None:
        found = span(tensor)
        if found is None:
            return
        low, high, used, row, stride = found
        if moved:
            row, stride = min(row_of(operator.name, tensor, args), high - low), 0
            used = min(used, max(moved, row))
        self.storages.build.use(
            number, low, high, used, write, row, stride, group if operator.lists else 0
        )

    def _there(self, tensor: Any) -> int:
        return self.storages.add(tensor, "input", "input", True)

    def _born(self, tensor: Any, operator: Operator) -> int:
        where, _ = self.modules.where_and_phase()
        name = f"{where}/{operator.name}" if where else operator.name
        return self.storages.add(tensor, name, "activation", False, where)


def _collect(given: Any, into: list[_Operand]) -> None:
    """Add the tensors of an argument; the group of a list's tensor is its place in the list."""
    if isinstance(given, torch.Tensor):
        into.append((given, 0))
    elif isinstance(given, (list, tuple)):
        for group, each in enumerate(given):
            if isinstance(each, torch.Tensor):
                into.append((each, group))
            elif isinstance(each, (list, tuple)):
                into.extend((t, i) for i, t in enumerate(each) if isinstance(t, torch.Tensor))


def _dtype(tensor: Any) -> str:
    return str(tensor.dtype)[6:]


_NO_VALUE = (
    "the program asks for the value of a tensor of {kind} (.item(), bool, int), which a recording "
    "without data does not have; give --answer NUMBER for all such values, or --real to compute"
)
_NO_SIZE = (
    "the result of operator {name} has a size that depends on values (a boolean mask, nonzero, "
    "unique), which a recording without data does not have; use a form of fixed size, such as "
    "torch.where, or give --real to compute"
)
_TOO_MANY = (
    "the program has launched {most:,} operators and goes on; give --steps N to stop after N "
    "steps, or a larger --most-launches"
)
