"""A device that is simulated by accounting: CPU tensors, of which some count as the device's."""

from __future__ import annotations

import weakref
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode


class Accounted(TorchDispatchMode):
    """Counts the bytes of live tensors that operators make, but for those in host memory.

    It also is the device of an emitted plan.
    """

    def __init__(self, near: int = 1 << 62):
        super().__init__()
        self.near, self.live, self.peak = near, 0, 0
        self.out_bytes = self.back_bytes = 0
        self._known: dict[int, int] = {}
        self._to_host = False

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None):
        made = function(*args, **(kwargs or {}))
        for tensor in torch.utils._pytree.tree_leaves(made):
            if isinstance(tensor, torch.Tensor) and not self._to_host:
                self.count(tensor)
        return made

    def count(self, tensor: torch.Tensor) -> None:
        """Count a tensor's storage, once, until it is gone."""
        storage = tensor.untyped_storage()
        key = storage._cdata
        if key in self._known:
            return
        self._known[key] = storage.nbytes()
        self.live += storage.nbytes()
        self.peak = max(self.peak, self.live)
        weakref.finalize(storage, self._gone, key)

    def _gone(self, key: int) -> None:
        self.live -= self._known.pop(key, 0)

    # The device of an emitted plan

    def free(self) -> int:
        return self.near - self.live

    def out(self, tensor: torch.Tensor) -> torch.Tensor:
        self._to_host = True
        host = tensor.detach().clone()
        self._to_host = False
        self.out_bytes += host.untyped_storage().nbytes()
        return host

    def back(self, host: torch.Tensor) -> torch.Tensor:
        near = host.clone()
        self.back_bytes += near.untyped_storage().nbytes()
        return near

    def wait(self, tensor: torch.Tensor) -> None:
        pass
