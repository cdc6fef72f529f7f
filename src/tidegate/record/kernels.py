"""Recording Triton kernels: every access of every program, in Triton's interpreter.

A program (thread block) runs in Python on the CPU, so the addresses it loads from and stores to are
seen exactly. That takes some milliseconds a program. Of a large grid only some programs run; the
touches of the others are computed if addresses are affine (sampled_grid.py).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Container, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import torch
import triton
from triton.runtime import interpreter

from tidegate.errors import TidegateError
from tidegate.record import check_script, run_script
from tidegate.record.sampled_grid import (
    Place,
    Touches,
    computed_programs,
    is_affine,
    number_in,
    places_to_run,
)
from tidegate.trace.importers.importer import Allocation, Importer, RawLaunch, coalesce
from tidegate.trace.trace import Provenance

MOST_PROGRAMS = 1024  # of one launch that all run; some seconds
_APART = 1 << 40  # bytes between the tensors' addresses in the trace


class KernelRecording(Importer):
    """The launches of a script: an importer whose file is the script."""

    name = "triton"
    title = "Triton script"
    provenance = Provenance.RECORDED

    def __init__(self, path: Path, most_programs: int = MOST_PROGRAMS):
        super().__init__(path)
        self._most_programs = most_programs
        self._launches: list[RawLaunch] = []
        self._storages: dict[int, int] = {}  # address: bytes
        self._kept: list[Any] = []  # storages stay alive, so that no address is used twice
        self._programs: dict[Place, list[Touches]] = {}
        self._sites: dict[str, int] = {}
        self._sampled: dict[str, bool] = {}  # kernels with large grids: whether some did not run

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
            self._play(executor, lambda: execute(executor, *args, **kwargs))
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
        self.notes = tuple(self._notes_of_sampling())

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
        own = self._programs.setdefault(tuple(builder.grid_idx), [])
        site = self._sites.setdefault(f"{name} {len(own)}", len(self._sites))
        own.append(
            (
                at,
                np.full(len(at), size, np.int64),
                np.full(len(at), write, np.uint8),
                np.full(len(at), site % 32_768, np.int16),
            )
        )

    def _play(self, executor: Any, execute: Callable[[], Any]) -> None:
        """Run the programs of a launch, or some of them, and put the touches of all together."""
        kernel = executor.fn
        name = getattr(kernel, "__name__", "kernel")
        some = executor.fn = _SomePrograms(kernel, self._most_programs)
        execute()
        grid = some.grid
        if some.left_out:
            affine = is_affine(grid, self._complete(some.run))
            if not affine:  # nothing can be said of the others: they run, too
                executor.fn = _SomePrograms(kernel, 0, but=some.run)
                executor.pre_run_hooks = []  # they have run
                execute()
            self._sampled[name] = affine or self._sampled.get(name, False)
            if affine:
                self._add(name, [*self._ran(grid), *computed_programs(grid, self._programs)])
                return
        self._add(name, list(self._ran(grid)))

    def _complete(self, run: set[Place]) -> dict[Place, list[Touches]]:
        """Return the touches of programs that ran; of some there are none."""
        for place in run:
            self._programs.setdefault(place, [])
        return self._programs

    def _ran(self, grid: Place) -> Iterator[tuple[Any, Touches]]:
        for place, touches in self._programs.items():
            for touch in touches:
                yield np.full(len(touch[0]), number_in(grid, [place])[0]), touch

    def _add(self, name: str, parts: list[tuple[Any, Touches]]) -> None:
        """Add a launch: numbers of programs and their touches, in the order of the numbers."""
        if not parts:
            return
        block = np.concatenate([number for number, _ in parts])
        address, *others = (np.concatenate([touch[i] for _, touch in parts]) for i in range(4))
        raw = RawLaunch(name, block, self._apart(address), *others)
        self._launches.append(coalesce(raw.take(np.argsort(block, kind="stable"))))

    def _notes_of_sampling(self) -> list[str]:
        """Return what large grids were recorded as."""
        return [
            f"of kernel {name}, whose grids have more than {self._most_programs} programs, some "
            "ran; the touches of the others are computed, their results are missing"
            if computed
            else f"kernel {name} has grids of more than {self._most_programs} programs; its "
            "addresses are not affine, so all ran"
            for name, computed in self._sampled.items()
        ]

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


class _SomePrograms:
    """A kernel of which only some programs run, if its grid has more than ``most``.

    It looks like the function that it stands for: Triton reads its signature and its globals.
    """

    def __init__(self, kernel: Any, most: int, but: Container[Place] = ()):
        self.__signature__ = inspect.signature(kernel)
        self.__globals__, self.__name__ = kernel.__globals__, kernel.__name__
        self._kernel, self._most, self._but = kernel, most, but
        self.grid: Place = (0, 0, 0)
        self.run: set[Place] = set()
        self.left_out = False

    def __call__(self, **arguments: Any) -> None:
        builder = interpreter.interpreter_builder
        if self.grid != tuple(builder.grid_dim):
            x, y, z = self.grid = tuple(builder.grid_dim)
            self.left_out = x * y * z > self._most > 0
            self.run = places_to_run(self.grid) if self.left_out else set()
        place = tuple(builder.grid_idx)
        if place in self.run if self.left_out else place not in self._but:
            self._kernel(**arguments)


def record_script(
    script: str,
    arguments: Sequence[str] = (),
    progress: Callable[[int], None] = lambda launches: None,
    most_programs: int = MOST_PROGRAMS,
) -> KernelRecording:
    """Run a script with Triton kernels in the interpreter and return its recording.

    Of a launch with more than ``most_programs`` programs only some run, where that is enough.
    """
    recording = KernelRecording(check_script(script), most_programs)
    recording.run(arguments, progress)
    return recording
