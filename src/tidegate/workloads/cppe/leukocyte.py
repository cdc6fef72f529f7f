"""LEU: white blood cells found in one frame of a video and followed through the next."""

from __future__ import annotations

from collections.abc import Iterator
from math import cos, isqrt, pi, sin
from typing import Any

import numpy as np

from tidegate import units
from tidegate.compiled.jit import jit
from tidegate.options import Option
from tidegate.trace.trace import Launch, Provenance
from tidegate.workloads.cppe.kernel import FLOAT, closed, fitted, going, step, stream, use
from tidegate.workloads.program import Space, Workload, workload
from tidegate.workloads.suites import published_bytes

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
class Leukocyte(Workload):
    """White blood cells found and followed: leukocyte of Rodinia. Pictures are column-major, 219
    floats a column.

        GICOV_kernel    a thread block per column i, a thread per row j, 22 from the edges:  for 7 circles, for 150 points:
                        grad_x, grad_y[219 (i + tX) + j + tY],  tX, tY = int(r cos θ), int(r sin θ);  gicov[219 i + j]
        dilate_kernel   176 threads, t = 176 b + tx, i, j = t % 219, t / 219:  gicov[219 x + y], x, y in a disc of radius 12
                        around j, i;  dilated[n i + j], which is row-major
        IMGVF_kernel    a thread block per cell, a launch per frame:  IMGVF[cell];  I[cell] in every iteration;  IMGVF[cell]

    A step is a circle of GICOV_kernel, an iteration of IMGVF_kernel. Every frame's I and IMGVF are
    allocated anew, and freed addresses are taken not to be given out again, as in GPGPU-Sim. Grid
    order: blockIdx.x. References: the arrays as they are allocated. Table II: leukocyte, 5.6 MB,
    Type I. The frame of 219 × 640 is Rodinia's; 5.6 MiB then have room for 27 cells in 5 frames.
    """

    provenance = Provenance.DERIVED
    bytes = Option(
        published_bytes("cppe", "cppe-LEU"),
        "size of the pictures and all cells",
        parse=units.size,
        least=1,
    )
    frames = Option(
        5,
        "frames to follow cells through (a choice: 5, as one of Rodinia's scripts; another has 10)",
        least=1,
    )
    rounds = Option(
        500,
        "iterations of IMGVF_kernel (a choice: 500, its limit; when cells converge depends on the video)",
        least=1,
    )

    @property
    def columns(self) -> int:
        """Columns of a frame; cells are as many as go with them."""
        return fitted(self.bytes, self._sizes)

    def sizes(self) -> dict[str, int]:
        return self._sizes(self.columns)

    def _sizes(self, columns: int) -> dict[str, int]:
        sizes = dict.fromkeys(("grad_x", "grad_y", "gicov", "dilated"), FLOAT * ROWS * columns)
        for frame in range(self.frames):
            sizes |= dict.fromkeys((f"I_{frame}", f"IMGVF_{frame}"), CELL * _cells(columns))
        return sizes

    def launches(self, space: Space) -> Iterator[Launch]:
        n = self.columns
        if n > 2 * MARGIN:
            intensity = _GICOV_FLOPS / (2 * FLOAT)
            yield Launch(
                "GICOV_kernel",
                stream(space, _gicov, n - 2 * MARGIN, (n, _circles())),
                intensity=intensity,
            )
        yield Launch(
            "dilate_kernel", stream(space, _dilate, -(-n * ROWS // DILATE_THREADS), (n, _disc()))
        )
        for frame in range(self.frames):
            touches = stream(space, _imgvf, _cells(n), (_CELLS + 2 * frame, self.rounds))
            yield Launch("IMGVF_kernel", touches, intensity=_IMGVF_FLOPS / FLOAT)


def _cells(columns: int) -> int:
    return max(1, columns * CELLS // COLUMNS)


def _circles() -> np.ndarray:
    """tX and tY of every point, circle by circle."""
    angles = [2 * pi * n / POINTS for n in range(POINTS)]
    return np.array([[(int(cos(a) * r), int(sin(a) * r)) for a in angles] for r in RADII])


def _disc() -> np.ndarray:
    """Half the height of the disc, by column."""
    return np.array([isqrt(DISC**2 - (x - DISC) ** 2) for x in range(2 * DISC + 1)])


@jit
def _gicov(log: Any, block: int, count: int, shape: Any) -> Any:
    circles = shape[1]
    while block < count and going(log):
        i = block + MARGIN
        for k in range(circles.shape[0]):
            step(log)
            for n in range(circles.shape[1]):
                low = ROWS * (i + circles[k, n, 0]) + MARGIN + circles[k, n, 1]
                high = low + ROWS - 2 * MARGIN
                use(log, _GRAD_X, FLOAT * low, FLOAT * high, False)
                use(log, _GRAD_Y, FLOAT * low, FLOAT * high, False)
        use(log, _GICOV, FLOAT * (ROWS * i + MARGIN), FLOAT * (ROWS * (i + 1) - MARGIN), True)
        block += closed(log)
    return block


@jit
def _dilate(log: Any, block: int, count: int, shape: Any) -> Any:
    n, disc = shape
    while block < count and going(log):
        for thread in range(DILATE_THREADS * block, min(n * ROWS, DILATE_THREADS * (block + 1))):
            i, j = thread % ROWS, thread // ROWS
            for x in range(max(0, j - DISC), min(n, j + DISC + 1)):
                half = disc[x - j + DISC]
                use(
                    log,
                    _GICOV,
                    FLOAT * (ROWS * x + max(0, i - half)),
                    FLOAT * (ROWS * x + min(ROWS, i + half + 1)),
                    False,
                )
            use(log, _DILATED, FLOAT * (n * i + j), FLOAT * (n * i + j + 1), True)
        block += closed(log)
    return block


@jit
def _imgvf(log: Any, block: int, count: int, shape: Any) -> Any:
    first, rounds = shape
    picture, flow = first, first + 1
    while block < count and going(log):
        use(log, flow, CELL * block, CELL * (block + 1), False)
        for _ in range(rounds):
            step(log)
            use(log, picture, CELL * block, CELL * (block + 1), False)
        use(log, flow, CELL * block, CELL * (block + 1), True)
        block += closed(log)
    return block
