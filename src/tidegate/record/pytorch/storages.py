"""Storages: births and deaths of tensors' memory, by weak references.

Until the program first uses a GPU, every CPU tensor is recorded. From then on only what is on the
GPU is, and what was recorded before is forgotten.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from typing import Any

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
