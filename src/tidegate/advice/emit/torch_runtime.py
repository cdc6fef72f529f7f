"""Run a model by a plan: saved tensors and weights that it moves leave for host memory.

    from advice import apply

    with apply(model):
        loss = model(batch).sum()
        loss.backward()

Saved tensors that the plan moves are copied to the host when autograd saves them, and come back
when the backward pass needs them; the one that is needed next is fetched while there is room.
Weights that the plan streams are on the device only while their module runs. They are streamed
where no gradients are computed: an optimiser needs its weights near.

Copies run on a stream of their own and use pinned memory. This file needs PyTorch only.

With managed memory nothing runs out of memory, whatever the plan misses: the driver moves pages.
Call this before anything is on the GPU; it builds a small allocator with nvcc:

    device = use_managed_memory(NEAR)
    with apply(model, device):
        ...

The same tensors are then prefetched, and marked as read-mostly while they are away.
"""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn


class CudaDevice:
    """The GPU: copies beside the kernels, and how many bytes the plan leaves free."""

    def __init__(self, near: int):
        self.near, self.stream = near, torch.cuda.Stream()

    def free(self) -> int:
        """Return the bytes that may still be used."""
        return self.near - torch.cuda.memory_allocated()

    def out(self, tensor: torch.Tensor) -> torch.Tensor:
        """Copy a tensor to pinned host memory; its memory is free when the copy has ended."""
        host = torch.empty_like(tensor, device="cpu", pin_memory=True)
        self.stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self.stream):
            host.copy_(tensor, non_blocking=True)
            tensor.record_stream(self.stream)
        return host

    def back(self, host: torch.Tensor) -> torch.Tensor:
        """Begin to copy a tensor to the device."""
        with torch.cuda.stream(self.stream):
            return host.to("cuda", non_blocking=True)

    def wait(self, tensor: torch.Tensor) -> None:
        """Let the kernels that follow wait for the copies so far."""
        torch.cuda.current_stream().wait_stream(self.stream)
        tensor.record_stream(torch.cuda.current_stream())


class _Saved:
    """A saved tensor in host memory."""

    def __init__(self, host: torch.Tensor, bytes: int):
        self.host, self.bytes = host, bytes
        self.coming: torch.Tensor | None = None  # on its way, or there before it is needed
        self.there: weakref.ref[torch.Tensor] | None = None  # somebody uses it now

    def fetch(self, device: Any) -> None:
        if self.coming is None and (self.there is None or self.there() is None):
            self.coming = device.back(self.host)

    def take(self, device: Any) -> torch.Tensor:
        there = self.there() if self.there is not None else None
        if there is not None:
            return there
        self.fetch(device)
        assert self.coming is not None
        found, self.coming = self.coming, None
        device.wait(found)
        self.there = weakref.ref(found)
        return found


class Plan:
    """What moves. ``saved``: (module, bytes) of saved tensors; ``streamed``: names of weights."""

    def __init__(self, saved: set[tuple[str, int]], streamed: set[str], device: Any):
        self.saved, self.streamed, self.device = saved, streamed, device
        self._module: list[str] = [""]  # the modules that run now, the innermost last
        # by storage: the module that made it, and its copy
        self._made: weakref.WeakKeyDictionary[Any, str] = weakref.WeakKeyDictionary()
        self._copies: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()
        self._order: deque[weakref.ref[_Saved]] = deque()  # saved tensors, as they were saved
        self._home: dict[str, torch.Tensor] = {}  # the streamed weights in host memory

    # Saved tensors

    def pack(self, tensor: torch.Tensor) -> torch.Tensor | _Saved:
        """Copy a saved tensor out if the plan moves it."""
        storage = tensor.untyped_storage()
        size = storage.nbytes()
        makers = {self._made.get(storage, self._module[-1]), self._module[-1]}
        if isinstance(tensor, nn.Parameter) or tensor.nbytes < size:
            return tensor  # weights stay, and so does what is saved in part
        if not any((module, size) in self.saved for module in makers):
            return tensor
        state = (tensor._version, tensor.shape, tensor.stride())
        known, as_then = self._copies.get(storage, (None, None))
        before = known() if known is not None else None
        if before is not None and as_then == state:
            return before
        saved = _Saved(self.device.out(tensor), size)
        self._copies[storage] = (weakref.ref(saved), state)
        self._order.append(weakref.ref(saved))
        return saved

    def unpack(self, packed: torch.Tensor | _Saved) -> torch.Tensor:
        """Return a saved tensor, and fetch the one that was saved before it if there is room."""
        if not isinstance(packed, _Saved):
            return packed
        found = packed.take(self.device)
        while self._order:
            before = self._order.pop()()
            if before is not None and before is not packed:
                if self.device.free() >= 2 * before.bytes:
                    before.fetch(self.device)
                break
        return found

    # Modules

    def enter(self, name: str, module: nn.Module) -> None:
        self._module.append(name)
        if self._streams_now():
            for key, weight in self._weights(name, module):
                if key not in self._home:
                    self._home[key] = self.device.out(weight.data)
                near = self.device.back(self._home[key])
                self.device.wait(near)
                weight.data = near

    def leave(self, name: str, module: nn.Module, made: Any) -> None:
        self._module.pop()
        if self._streams_now():
            for key, weight in self._weights(name, module):
                weight.data = self._home[key]
        for tensor in made if isinstance(made, tuple | list) else (made,):
            if isinstance(tensor, torch.Tensor):
                self._made.setdefault(tensor.untyped_storage(), name)  # the innermost one

    def _streams_now(self) -> bool:
        return bool(self.streamed) and not torch.is_grad_enabled()

    def _weights(self, name: str, module: nn.Module) -> Iterator[tuple[str, nn.Parameter]]:
        for own, weight in module.named_parameters(recurse=False):
            key = f"{name}.{own}" if name else own
            if key in self.streamed:
                yield key, weight

    def park(self, model: nn.Module) -> None:
        """Send the streamed weights to host memory, before the first call."""
        with torch.no_grad():
            for name, module in model.named_modules():
                for key, weight in self._weights(name, module):
                    self._home[key] = self.device.out(weight.data)
                    weight.data = self._home[key]


@contextmanager
def run_by(plan: Plan, model: nn.Module) -> Iterator[Plan]:
    """Run what is in this context by the plan."""
    handles = []
    for name, module in model.named_modules():
        handles.append(module.register_forward_pre_hook(lambda m, given, n=name: plan.enter(n, m)))
        handles.append(
            module.register_forward_hook(lambda m, given, made, n=name: plan.leave(n, m, made))
        )
    if not torch.is_grad_enabled():
        plan.park(model)
    try:
        with torch.autograd.graph.saved_tensors_hooks(plan.pack, plan.unpack):
            yield plan
    finally:
        for handle in handles:
            handle.remove()
