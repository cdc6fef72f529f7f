"""Modules and storages: where in the model an operator is, which phase and step it belongs to, and
the births, deaths and names of tensors' memory.

A step ends with an optimiser's step; in programs without optimisers, with each call of a model.
Operators of backward belong to the module of the forward operator they are the derivative of; its
sequence number tells.

Births and deaths are found by weak references. Until the program first uses a GPU, every CPU tensor
is recorded. From then on only what is on the GPU is, and what was recorded before is forgotten.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook
from torch.optim.optimizer import (
    register_optimizer_step_post_hook,
    register_optimizer_step_pre_hook,
)

from tidegate.trace.ops.build import OpsBuilder


class Storages:
    """The numbers of the storages that are alive, by the address of their C++ object."""

    def __init__(self) -> None:
        self.build = OpsBuilder()
        self.on_gpu = False  # only tensors on the GPU are recorded
        self.live = self.peak = 0  # bytes
        self.born_in: list[str] = []  # the module in which each tensor was born
        self._number: dict[int, int] = {}
        self._references: dict[int, Any] = {}
        self._generation = 0

    def use_gpu(self) -> None:
        """Record only the GPU from now on, and forget what was recorded of the CPU."""
        if not self.on_gpu:
            self.on_gpu = True
            self._generation += 1
            self.build, self.live, self.peak = OpsBuilder(), 0, 0
            self.born_in.clear()
            self._number.clear()
            self._references.clear()

    def number(self, tensor: Any) -> int | None:
        """Return the number of a tensor's storage, None if it is not recorded."""
        return self._number.get(tensor.untyped_storage()._cdata)

    def add(self, tensor: Any, name: str, kind: str, host: bool, where: str = "") -> int:
        """Return the number of a tensor's storage, which is born now unless it is known."""
        storage = tensor.untyped_storage()
        key = storage._cdata
        number = self._number.get(key)
        if number is None:
            size = max(1, storage.nbytes())
            number = self.build.tensor(name, kind, size, host)
            self.born_in.append(where)
            self._number[key] = number
            self.live += size
            self.peak = max(self.peak, self.live)
            # the weak reference's Python object lives as long as the storage itself
            self._references[number] = weakref.ref(storage, self._dying(key, number, size))
        return number

    def rename(self, tensor: Any, name: str, kind: str) -> None:
        """Set the name and kind of a tensor that is recorded."""
        number = self.number(tensor)
        if number is not None:
            self.build.names[number], self.build.kinds[number] = name, kind

    def born_since(self, number: int) -> Iterator[int]:
        """Yield the numbers of live tensors from ``number`` on."""
        for alive in list(self._references):
            if alive >= number:
                yield alive

    def stop(self) -> None:
        """Forget the weak references: what dies later is not recorded."""
        self._references.clear()

    def _dying(self, key: int, number: int, size: int) -> Any:
        me, generation = weakref.ref(self), self._generation

        def die(_: Any) -> None:
            storages = me()
            if storages is None or storages._generation != generation:
                return
            if storages._references.pop(number, None) is None:
                return
            if storages._number.get(key) == number:
                del storages._number[key]
            storages.live -= size
            storages.build.die(number)

        return die


_node: Callable[[], Any] = torch._C._current_autograd_node
_next_sequence: Callable[[], int] = torch._C._autograd._get_sequence_nr  # type: ignore[attr-defined]
_CACHES = ("cache", "past_key", "past_value", "kv")
_ATTENTION = ("attn", "attention")


class Modules:
    """Hooks on all modules and optimisers, while it is active."""

    def __init__(self, storages: Storages, after_step: Callable[[int], None]):
        self.step = 0
        self.phase = ""  # a name given by the program, in place of forward
        self._storages, self._after_step = storages, after_step
        self._names: weakref.WeakKeyDictionary[Any, str] = weakref.WeakKeyDictionary()
        self._where: list[str] = []
        self._where_of: dict[int, str] = {}  # by sequence number
        self._optimising = False
        self._trains = False  # an optimiser has made a step
        self._roots = 0
        self._first = 0  # the first tensor that can be born in the current call of a model

    def __enter__(self) -> Modules:
        self._hooks = [
            register_module_forward_pre_hook(self._enter_module),
            register_module_forward_hook(self._leave_module, always_call=True),
            register_optimizer_step_pre_hook(self._begin_update),
            register_optimizer_step_post_hook(self._end_update),
        ]
        return self

    def __exit__(self, *_: object) -> None:
        for hook in self._hooks:
            hook.remove()

    def where_and_phase(self) -> tuple[str, str]:
        """Return the module that runs, and forward, backward or optimiser."""
        if self._optimising:
            return "", "optimiser"
        node = _node()
        if node is not None and not self._where:
            return self._where_of.get(node._sequence_nr(), ""), "backward"
        phase = "backward" if node is not None else self.phase or "forward"
        return (self._where[-1] if self._where else ""), phase

    def launched(self) -> None:
        """Remember where the forward operator is whose derivative has this sequence number."""
        if self._where and torch.is_grad_enabled():
            self._where_of[_next_sequence() - 1] = self._where[-1]

    def name_model(self, model: Any) -> None:
        """Name a model's modules, weights and buffers."""
        prefix = f"{type(model).__name__}." if self._roots else ""
        self._roots += 1
        for name, module in model.named_modules():
            self._names.setdefault(module, (prefix + name).rstrip("."))
        self._name_tensors(model, prefix)

    def _name_tensors(self, model: Any, prefix: str = "") -> None:
        add, rename = self._storages.add, self._storages.rename
        kinds = [(n, p, "weight") for n, p in model.named_parameters()]
        for name, buffer in model.named_buffers():
            cached = any(word in name.lower() for word in _CACHES)
            kinds.append((name, buffer, "kv cache" if cached else "buffer"))
        for name, tensor, kind in kinds:
            if self._storages.number(tensor) is not None:
                rename(tensor, prefix + name, kind)
            elif not self._storages.on_gpu:  # it was there before recording began
                add(tensor, prefix + name, kind, host=True)

    def _enter_module(self, module: Any, args: Any) -> None:
        if not self._where and _node() is None:
            if module not in self._names:
                self.name_model(module)
            self._first = len(self._storages.build.names)
        self._where.append(self._names.get(module, type(module).__name__))

    def _leave_module(self, module: Any, args: Any, out: Any) -> None:
        self._where.pop()
        if not self._where and _node() is None and not torch.is_grad_enabled():
            self._find_caches()
            if not self._trains:
                self._end_step()

    def _find_caches(self) -> None:
        """What attention leaves behind without training are keys and values."""
        build = self._storages.build
        for number in self._storages.born_since(self._first):
            where = self._storages.born_in[number].lower()
            if build.kinds[number] == "activation" and any(w in where for w in _ATTENTION):
                build.kinds[number] = "kv cache"

    def _begin_update(self, optimiser: Any, args: Any, kwargs: Any) -> None:
        self._optimising = True
        self._where_of.clear()
        for parameter in _parameters(optimiser):
            number = self._storages.number(parameter)
            if number is not None and parameter.grad is not None:
                name = self._storages.build.names[number]
                self._storages.rename(parameter.grad, f"{name}.grad", "gradient")

    def _end_update(self, optimiser: Any, args: Any, kwargs: Any) -> None:
        self._optimising, self._trains = False, True
        for parameter in _parameters(optimiser):
            number = self._storages.number(parameter)
            for key, value in optimiser.state.get(parameter, {}).items():
                if number is not None and isinstance(value, torch.Tensor):
                    name = self._storages.build.names[number]
                    self._storages.rename(value, f"{name}.{key}", "optimiser state")
        self._end_step()

    def _end_step(self) -> None:
        self.step += 1
        self._after_step(self.step)


def _parameters(optimiser: Any) -> list[Any]:
    return [p for group in optimiser.param_groups for p in group["params"]]
