"""MM, GMM and 2DC against the same kernels as Triton's interpreter runs them, block by block."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tidegate.trace.geometry import Geometry
from workloads.read_traces import Uses, program, read
from workloads.wave_checks import Blocks, check_waves, in_waves, tiles

pytestmark = pytest.mark.extra
triton = pytest.importorskip("triton")
triton.knobs.runtime.interpret = True  # before a kernel is made
tl = pytest.importorskip("triton.language")
interpreter = pytest.importorskip("triton.runtime.interpreter")

# of each block: array, floats, write
Used = dict[tuple[int, int], list[tuple[int, np.ndarray, int]]]


@triton.jit
def matmul(a, b, c, n, TILE: tl.constexpr):
    """matrixMul: row-major, block (bx, by) has a tile of C."""
    a, b, c = (
        a.to(tl.pointer_type(tl.float32)),
        b.to(tl.pointer_type(tl.float32)),
        c.to(tl.pointer_type(tl.float32)),
    )
    ty, tx = tl.arange(0, TILE)[:, None], tl.arange(0, TILE)[None, :]
    row, col = tl.program_id(1) * TILE + ty, tl.program_id(0) * TILE + tx
    total = tl.full((TILE, TILE), 0.0, tl.float32)
    for k in range(0, n, TILE):
        left = tl.load(a + row * n + k + tx, mask=(row < n) & (k + tx < n), other=0.0)
        right = tl.load(b + (k + ty) * n + col, mask=(k + ty < n) & (col < n), other=0.0)
        total += tl.dot(left, right)
    tl.store(c + row * n + col, total, mask=(row < n) & (col < n))


@triton.jit
def gemm(a, b, c, n, TILE: tl.constexpr):
    """sgemm: column-major, block (bx, by) has the tile of C at row bx and column by."""
    a, b, c = (
        a.to(tl.pointer_type(tl.float32)),
        b.to(tl.pointer_type(tl.float32)),
        c.to(tl.pointer_type(tl.float32)),
    )
    down, across = tl.arange(0, TILE)[:, None], tl.arange(0, TILE)[None, :]
    i, j = tl.program_id(0) * TILE + down, tl.program_id(1) * TILE + across
    total = tl.full((TILE, TILE), 0.0, tl.float32)
    for k in range(0, n, TILE):
        left = tl.load(a + (k + across) * n + i, mask=(i < n) & (k + across < n), other=0.0)
        right = tl.load(b + j * n + k + down, mask=(k + down < n) & (j < n), other=0.0)
        total += tl.dot(left, right)
    tl.store(c + j * n + i, total, mask=(i < n) & (j < n))


@triton.jit
def convolution(a, b, n):
    """2DCONV: row-major, thread blocks of 32 × 8; all weights are 1 here."""
    a, b = a.to(tl.pointer_type(tl.float32)), b.to(tl.pointer_type(tl.float32))
    i, j = (
        tl.program_id(1) * 8 + tl.arange(0, 8)[:, None],
        tl.program_id(0) * 32 + tl.arange(0, 32)[None, :],
    )
    inside = (i > 0) & (j > 0) & (i < n - 1) & (j < n - 1)
    total = tl.full((8, 32), 0.0, tl.float32)
    for p in range(-1, 2):
        for q in range(-1, 2):
            total += tl.load(a + (i + p) * n + j + q, mask=inside, other=0.0)
    tl.store(b + i * n + j, total, mask=inside)


def record(
    monkeypatch: pytest.MonkeyPatch,
    kernel: Any,
    grid: tuple[int, int],
    arrays: list[np.ndarray],
    *rest: int,
) -> Used:
    """Run a kernel and return which floats of which array each block loads and stores."""
    builder, used = interpreter.interpreter_builder, {}

    def noting(access: Callable[..., Any], mask_at: int, write: int) -> Callable[..., Any]:
        def noted(pointers: Any, *arguments: Any) -> Any:
            mine = used.setdefault(tuple(builder.grid_idx[:2]), [])
            addresses = pointers.data[
                np.broadcast_to(arguments[mask_at].data, pointers.data.shape)
            ].astype(np.int64)
            for number, array in enumerate(arrays):
                offsets = addresses - array.ctypes.data
                mine.append(
                    (number, offsets[(offsets >= 0) & (offsets < array.nbytes)] // 4, write)
                )
            return access(pointers, *arguments)

        return noted

    monkeypatch.setattr(builder, "create_masked_load", noting(builder.create_masked_load, 0, 0))
    monkeypatch.setattr(builder, "create_masked_store", noting(builder.create_masked_store, 1, 1))
    kernel[grid](*(array.ctypes.data for array in arrays), *rest)
    return used


def check(name: str, used: Used, blocks: Blocks, wave: int, page: int, **options: Any) -> None:
    """Check each wave of the workload against the uses of its blocks."""
    trace = program(name, Geometry(page, 4 * page), wave=wave, lanes=3, **options)
    (launch,) = read(trace)
    waves = []
    for part in in_waves(blocks, min(wave, len(blocks))):
        uses = Uses(trace)
        for block in part:
            for number, floats, write in used.get(block, ()):
                for index in floats.tolist():
                    uses.element("ABC"[number], index, 0, number, write)
        waves.append([uses])
    check_waves(launch, [parts for parts in waves if parts[0].touches()], min(3, wave, len(blocks)))


def matrices(n: int, count: int) -> list[np.ndarray]:
    random = np.random.default_rng(1)
    return [random.integers(0, 9, n * n).astype(np.float32) for _ in range(count)]


@pytest.mark.parametrize(("n", "wave", "page"), [(96, 4, 512), (100, 3, 256), (100, 656, 4096)])
def test_mm_touches_what_the_kernel_was_seen_to_touch(
    monkeypatch: Any, n: int, wave: int, page: int
) -> None:
    a, b, c = arrays = matrices(n, 3)
    count = len(tiles(n, 32))
    used = record(monkeypatch, matmul, (count, count), arrays, n, 32)
    np.testing.assert_allclose(c.reshape(n, n), a.reshape(n, n) @ b.reshape(n, n))
    check(
        "MM",
        used,
        [(bx, by) for by in range(count) for bx in range(count)],
        wave,
        page,
        bytes=12 * n * n,
    )


@pytest.mark.parametrize(("n", "wave", "page"), [(64, 2, 256), (70, 3, 128), (70, 164, 4096)])
def test_gmm_touches_what_the_kernel_was_seen_to_touch(
    monkeypatch: Any, n: int, wave: int, page: int
) -> None:
    a, b, c = arrays = matrices(n, 3)
    count = len(tiles(n, 16))
    used = record(monkeypatch, gemm, (count, count), arrays, n, 16)
    np.testing.assert_allclose(c.reshape(n, n).T, a.reshape(n, n).T @ b.reshape(n, n).T)
    blocks = [(bx, by) for by in range(count) for bx in range(count)]
    check("GMM", used, blocks, wave, page, bytes=12 * n * n, tile=16)


@pytest.mark.parametrize(("n", "wave", "page"), [(64, 3, 256), (100, 5, 128), (100, 656, 4096)])
def test_2dc_touches_what_the_kernel_was_seen_to_touch(
    monkeypatch: Any, n: int, wave: int, page: int
) -> None:
    a, b = arrays = matrices(n, 2)
    used = record(monkeypatch, convolution, (len(tiles(n, 32)), len(tiles(n, 8))), arrays, n)
    image, shift = a.reshape(n, n), range(3)
    total = sum(image[p : n - 2 + p, q : n - 2 + q] for p in shift for q in shift)
    np.testing.assert_allclose(b.reshape(n, n)[1:-1, 1:-1], total)
    blocks = [(bx, by) for by in tiles(n, 8) for bx in tiles(n, 32)]
    check("2DC", used, blocks, wave, page, bytes=8 * n * n, iterations=1)
