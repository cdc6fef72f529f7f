"""Recording Triton kernels: every access of every program, in Triton's interpreter.

A program (thread block) runs in Python on the CPU, so the addresses it loads from and stores to are
seen exactly. Large grids are sampled: programs at equal distances run, and those between two of
them get addresses on the line between theirs, which is exact for index functions that are linear.
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

MOST_PROGRAMS = 1024  # of one launch that run; others are interpolated
_Touches = tuple[Any, ...]  # address, bytes, write, site: arrays


class KernelRecording(Importer):
    """The launches of a script: an importer whose file is the script."""

    name = "triton"
    title = "Triton script"
    provenance = Provenance.RECORDED

    def __init__(self, path: Path, most_programs: int = MOST_PROGRAMS):
        super().__init__(path)
        self._most = most_programs
        self._launches: list[RawLaunch] = []
        self._storages: dict[int, int] = {}  # address: bytes
        self._kept: list[Any] = []  # storages stay alive, so that no address is used twice
        self._programs: dict[int, list[_Touches]] = {}
        self._sampled = 0
        self._sites: dict[str, int] = {}

    @classmethod
    def recognises(cls, path: Path, head: bytes) -> bool:
        return False  # a script is run, not read

    def launches(self, progress: Callable[[int], None]) -> Iterator[RawLaunch]:
        yield from self._launches

    def allocations(self) -> list[Allocation]:
        return [Allocation(f"tensor {n}", a, b) for n, (a, b) in enumerate(self._storages.items())]

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
            original = executor.fn
            executor.fn = self._sampling(builder, original)
            try:
                return execute(executor, *args, **kwargs)
            finally:
                executor.fn = original
                self._end(getattr(original, "__name__", "kernel"), builder)
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
        if self._sampled:
            self.notes = (
                f"{self._sampled} launches have more than {self._most} programs: programs between "
                "sampled ones are interpolated, and what they compute is not computed",
            )

    def _begin(self, args: Any, kwargs: Any) -> None:
        self._programs = {}
        for given in (*args, *kwargs.values()):
            if isinstance(given, torch.Tensor):
                storage = given.untyped_storage()
                if storage.data_ptr() not in self._storages and storage.nbytes():
                    self._storages[storage.data_ptr()] = storage.nbytes()
                    self._kept.append(storage)

    def _sampling(self, builder: Any, kernel: Any) -> Any:
        def run(*args: Any, **kwargs: Any) -> Any:
            total = int(np.prod(builder.grid_dim))
            every = -(-total // self._most)
            number = _program(builder)
            if number % every == 0 or number == total - 1:
                self._programs.setdefault(number, [])
                return kernel(*args, **kwargs)
            return None

        run.__name__ = getattr(kernel, "__name__", "kernel")
        return run

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

    def _end(self, name: str, builder: Any) -> None:
        """Put the touches of the programs together, and those of programs between them."""
        total = int(np.prod(builder.grid_dim)) if self._programs else 0
        done = {
            n: tuple(map(np.concatenate, zip(*t, strict=True)))
            for n, t in self._programs.items()
            if t
        }
        if not done:
            return
        numbers = sorted(done)
        self._sampled += len(self._programs) < total
        parts = []
        for n, following in zip(numbers, [*numbers[1:], numbers[-1] + 1], strict=True):
            parts.append((n, done[n]))
            for between in range(n + 1, following):
                share = (between - n) / (following - n)
                parts.append((between, _between(done[n], done[following], share)))
        block = np.concatenate([np.full(len(t[0]), n, np.int64) for n, t in parts])
        address, size, write, site = (np.concatenate([t[i] for _, t in parts]) for i in range(4))
        self._launches.append(coalesce(RawLaunch(name, block, address, size, write, site)))


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


def _between(a: _Touches, b: _Touches, share: float) -> _Touches:
    """Return touches on the line between two programs' that do the same; else the first's."""
    if len(a[0]) != len(b[0]) or not np.array_equal(a[2], b[2]) or not np.array_equal(a[3], b[3]):
        return a
    moved = b[0].astype(np.int64) - a[0].astype(np.int64)
    step = np.round(moved * share / a[1]).astype(np.int64) * a[1]  # whole elements
    return (a[0].astype(np.int64) + step).astype(np.uint64), *a[1:]


def record_script(
    script: str,
    arguments: Sequence[str] = (),
    most_programs: int = MOST_PROGRAMS,
    progress: Callable[[int], None] = lambda launches: None,
) -> KernelRecording:
    """Run a script with Triton kernels in the interpreter and return its recording."""
    recording = KernelRecording(check_script(script), most_programs)
    recording.run(arguments, progress)
    return recording
