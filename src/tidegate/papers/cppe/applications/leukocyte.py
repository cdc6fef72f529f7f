"""LEU: white blood cells found in one frame of a video and followed through the next."""

from __future__ import annotations

from math import cos, isqrt, pi, sin
from typing import Any

import numpy as np

from tidegate.compiled.jit import jit
from tidegate.options import Option
from tidegate.workloads.program import Derived, Launches, Space, largest_fit, workload
from tidegate.workloads.suites import published_footprint
from tidegate.workloads.thread_blocks import FLOAT, blocks, launch_of, step, use, use_floats

ROWS = 219  # of a frame: BOTTOM - TOP + 1
COLUMNS, CELLS = 640, 27  # of the default size
POINTS, RADII, MARGIN = 150, range(8, 21, 2), 22  # of the circles looked for; MAX_RAD + 2
DISC = 12  # radius of the dilation
DILATE_THREADS = 176
CELL = FLOAT * 41 * 81  # bytes of the picture around a cell
_GRAD_X, _GRAD_Y, _GICOV, _DILATED, _CELLS = range(5)  # the last: the first frame's I
# Estimates from the kernels' arithmetic: ten operations per pair of gradients; a hundred per pixel
# and iteration, which has eight arctangents.
_GICOV_FLOPS, _IMGVF_FLOPS = 10, 100


@workload("cppe-LEU")
class Leukocyte(Derived):
    """White blood cells found and followed: leukocyte of Rodinia.

    Pictures are column-major, 219 floats a column.

        GICOV_kernel    a thread block per column i, a thread per row j, 22 from the edges:
                        for 7 circles, for 150 points:  grad_x, grad_y[219 (i + tX) + j + tY],
                        tX, tY = int(r cos θ), int(r sin θ);  gicov[219 i + j]
        dilate_kernel   176 threads, t = 176 b + tx, i, j = t % 219, t / 219:  gicov[219 x + y],
                        x, y in a disc of radius 12 around j, i;  dilated[n i + j], row-major
        IMGVF_kernel    a thread block per cell, a launch per frame:
                        IMGVF[cell];  I[cell] in every iteration;  IMGVF[cell]

    A step is a circle of GICOV_kernel, an iteration of IMGVF_kernel. Every frame's I and IMGVF are
    allocated anew, and freed addresses are assumed not to be given out again, as in GPGPU-Sim. Grid
    order: blockIdx.x. Access sites: the arrays as they are allocated. Table II: leukocyte, 5.6 MB,
    Type I. The frame of 219 × 640 is Rodinia's; 5.6 MiB then have room for 27 cells in 5 frames.
    """

    bytes = published_footprint("cppe-LEU", "size of the pictures and all cells")
    frames = Option(
        5, "frames to follow cells through (a choice: 5, as in a script of Rodinia's)", least=1
    )
    rounds = Option(
        500,
        "iterations of IMGVF_kernel (a choice: its limit; convergence depends on the video)",
        least=1,
    )

    @property
    def columns(self) -> int:
        """Columns of a frame; the number of cells is in proportion."""
        return largest_fit(self.bytes, self._sizes)

    def sizes(self) -> dict[str, int]:
        return self._sizes(self.columns)

    def _sizes(self, columns: int) -> dict[str, int]:
        sizes = dict.fromkeys(("grad_x", "grad_y", "gicov", "dilated"), FLOAT * ROWS * columns)
        for frame in range(self.frames):
            sizes |= dict.fromkeys((f"I_{frame}", f"IMGVF_{frame}"), CELL * _cells(columns))
        return sizes

    def launches(self, space: Space) -> Launches:
        n = self.columns
        if n > 2 * MARGIN:
            count, circles = n - 2 * MARGIN, (n, _circles())
            intensity = _GICOV_FLOPS / (2 * FLOAT)
            yield launch_of(space, "GICOV_kernel", _gicov, count, circles, intensity)
        count = -(-n * ROWS // DILATE_THREADS)
        yield launch_of(space, "dilate_kernel", _dilate, count, (n, _disc()))
        for frame in range(self.frames):
            shape = (_CELLS + 2 * frame, self.rounds)
            intensity = _IMGVF_FLOPS / FLOAT
            yield launch_of(space, "IMGVF_kernel", _imgvf, _cells(n), shape, intensity)


def _cells(columns: int) -> int:
    return max(1, columns * CELLS // COLUMNS)


def _circles() -> np.ndarray:
    """Return tX and tY of every point, circle by circle."""
    angles = [2 * pi * n / POINTS for n in range(POINTS)]
    return np.array([[(int(cos(a) * r), int(sin(a) * r)) for a in angles] for r in RADII])


def _disc() -> np.ndarray:
    """Return half the height of the disc, by column."""
    return np.array([isqrt(DISC**2 - (x - DISC) ** 2) for x in range(2 * DISC + 1)])


@jit
def _gicov(log: Any, count: int, shape: Any) -> None:
    circles = shape[1]
    for block in blocks(log, count):
        i = block + MARGIN
        for k in range(circles.shape[0]):
            step(log)
            for n in range(circles.shape[1]):
                low = ROWS * (i + circles[k, n, 0]) + MARGIN + circles[k, n, 1]
                high = low + ROWS - 2 * MARGIN
                use_floats(log, _GRAD_X, low, high, False)
                use_floats(log, _GRAD_Y, low, high, False)
        use_floats(log, _GICOV, ROWS * i + MARGIN, ROWS * (i + 1) - MARGIN, True)


@jit
def _dilate(log: Any, count: int, shape: Any) -> None:
    n, disc = shape
    for block in blocks(log, count):
        for thread in range(DILATE_THREADS * block, min(n * ROWS, DILATE_THREADS * (block + 1))):
            i, j = thread % ROWS, thread // ROWS
            for x in range(max(0, j - DISC), min(n, j + DISC + 1)):
                half = disc[x - j + DISC]
                low, high = max(0, i - half), min(ROWS, i + half + 1)
                use_floats(log, _GICOV, ROWS * x + low, ROWS * x + high, False)
            use_floats(log, _DILATED, n * i + j, n * i + j + 1, True)


@jit
def _imgvf(log: Any, count: int, shape: Any) -> None:
    first, rounds = shape
    picture, flow = first, first + 1
    for block in blocks(log, count):
        use(log, flow, CELL * block, CELL * (block + 1), False)
        for _ in range(rounds):
            step(log)
            use(log, picture, CELL * block, CELL * (block + 1), False)
        use(log, flow, CELL * block, CELL * (block + 1), True)
