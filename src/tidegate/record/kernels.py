"""Recording Triton kernels: every access of every program, in Triton's interpreter.

A program (thread block) runs in Python on the CPU, so the addresses it loads from and stores to are
seen exactly. That takes some milliseconds a program: record small sizes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import torch
import triton
from triton.runtime import interpreter

from tidegate.errors import TidegateError
from tidegate.record.script import check_script, run_script
from tidegate.trace.importers.importer import Allocation, Importer, RawLaunch, coalesce
from tidegate.trace.trace import Provenance

_APART = 1 << 40  # bytes between the tensors' addresses in the trace
_Touches = tuple[Any, ...]  # address, bytes, write, site: arrays


class KernelRecording(Importer):
    """The launches of a script: an importer whose file is the script."""

    name = "triton"
    title = "Triton script"
    provenance = Provenance.RECORDED

    def __init__(self, path: Path):
        super().__init__(path)
        self._launches: list[RawLaunch] = []
        self._storages: dict[int, int] = {}  # address: bytes
        self._kept: list[Any] = []  # storages stay alive, so that no address is used twice
        self._programs: dict[int, list[_Touches]] = {}
        self._sites: dict[str, int] = {}

    @classmethod
    def recognises(cls, path: Path, head: bytes) -> bool:
        return False  # a script is run, not read

    def launches(self, progress: Callable[[int], None]) -> Iterator[RawLaunch]:
        yield from self._launches

    def allocations(self) -> list[Allocation]:
        sizes = self._storages.values()
        return [Allocation(f"tensor {n}", (n + 1) * _APART, size) for n, size in enumerate(sizes)]

    def run(self, arguments: Sequence[str], progress: Callable[[int], None]) -> None:
        """Run the script and record its kernels."""
        builder, execute = interpreter.interpreter_builder, interpreter.GridExecutor.__call__

        def noting(name: str, pointer_at: int, mask_at: int | None, write: bool) -> Any:
            original = getattr(builder, name)

            def access(*args: Any, **kwargs: Any) -> Any:
                mask = args[mask_at] if mask_at is not None and len(args) > mask_at else None
                self._note(builder, name, args[pointer_at], mask, write)
                return original(*args, **kwargs)

            return access

        def call(executor: Any, *args: Any, **kwargs: Any) -> Any:
            self._begin(args, kwargs)
            try:
                return execute(executor, *args, **kwargs)
            finally:
                self._end(getattr(executor.fn, "__name__", "kernel"))
                progress(1)

        with ExitStack() as stack:
            runtime = triton.knobs.runtime  # read when kernels are decorated, in the script
            stack.callback(setattr, runtime, "interpret", runtime.interpret)
            runtime.interpret = True
            for name, pointer, mask, write in _ACCESSES:
                if hasattr(builder, name):
                    made = noting(name, pointer, mask, write)
                    stack.enter_context(mock.patch.object(builder, name, made, create=True))
            stack.enter_context(mock.patch.object(interpreter.GridExecutor, "__call__", call))
            run_script(self.path, arguments)
        if not self._launches:
            raise TidegateError(f"{self.path} launched no Triton kernel; nothing was recorded")

    def _begin(self, args: Any, kwargs: Any) -> None:
        self._programs = {}
        for given in (*args, *kwargs.values()):
            if isinstance(given, torch.Tensor):
                storage = given.untyped_storage()
                if storage.data_ptr() not in self._storages and storage.nbytes():
                    self._storages[storage.data_ptr()] = storage.nbytes()
                    self._kept.append(storage)

    def _note(self, builder: Any, name: str, pointers: Any, mask: Any, write: bool) -> None:
        at = np.asarray(pointers.data).astype(np.uint64)
        if mask is not None:
            at = at[np.broadcast_to(np.asarray(mask.data, bool), at.shape)]
        at = at.ravel()
        if not len(at):
            return
        size = max(1, pointers.get_element_ty().primitive_bitwidth // 8)
        own = self._programs.setdefault(_program(builder), [])
        site = self._sites.setdefault(f"{name} {len(own)}", len(self._sites))
        own.append(
            (
                at,
                np.full(len(at), size, np.int64),
                np.full(len(at), write, np.uint8),
                np.full(len(at), site % 32_768, np.int16),
            )
        )

    def _end(self, name: str) -> None:
        """Put the touches of all programs together."""
        parts = [(n, touch) for n, touches in sorted(self._programs.items()) for touch in touches]
        if parts:
            block = np.concatenate([np.full(len(t[0]), n, np.int64) for n, t in parts])
            address, *others = (np.concatenate([t[i] for _, t in parts]) for i in range(4))
            raw = RawLaunch(name, block, self._apart(address), *others)
            self._launches.append(coalesce(raw))

    def _apart(self, address: Any) -> Any:
        """Return addresses of which each tensor has its own: on the host they may share a page."""
        bases = np.array(list(self._storages), np.uint64)
        order = np.argsort(bases)
        place = np.searchsorted(bases[order], address, side="right") - 1
        owner = order[np.maximum(place, 0)]
        within = address - bases[owner]
        sizes = np.array(list(self._storages.values()), np.uint64)
        if (place < 0).any() or (within >= sizes[owner]).any():
            raise TidegateError(f"a kernel of {self.path} uses an address that is in no tensor")
        return (owner.astype(np.uint64) + np.uint64(1)) * np.uint64(_APART) + within


# the interpreter's accesses: which argument is the pointer, which the mask, and whether it writes
_ACCESSES = (
    ("create_masked_load", 0, 1, False),
    ("create_masked_store", 0, 2, True),
    ("create_load", 0, None, False),
    ("create_store", 0, None, True),
    ("create_atomic_rmw", 1, 3, True),
    ("create_atomic_cas", 0, None, True),
)


def _program(builder: Any) -> int:
    x, y, z = builder.grid_idx
    width, height, _ = builder.grid_dim
    return int((z * height + y) * width + x)


def record_script(
    script: str,
    arguments: Sequence[str] = (),
    progress: Callable[[int], None] = lambda launches: None,
) -> KernelRecording:
    """Run a script with Triton kernels in the interpreter and return its recording."""
    recording = KernelRecording(check_script(script))
    recording.run(arguments, progress)
    return recording
