"""HWL and LEU: points and cells followed through a video. Rodinia's medical applications."""

from __future__ import annotations

from math import cos, isqrt, pi, sin
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tidegate.compiled.jit import jit
from tidegate.options import Option
from tidegate.workloads.program import Derived, Launches, Space, largest_fit, workload
from tidegate.workloads.suites import published_bytes, published_footprint
from tidegate.workloads.thread_blocks import FLOAT, across, blocks, launch_of, step, use, use_floats

# of the default size: 20 inner points and 31 outer ones; rows and columns of a frame
POINTS, FRAME = 51, (590, 609)
TEMPLATE, SEARCH = 25, 40  # tSize, sSize
_ALIGNED = 256  # bytes: where cudaMalloc begins
_PIECE = 1024  # floats that all 256 threads use in four turns: a page

ARRAYS = (
    *("frame", "T", "in2", "conv", "in2_pad_cumv", "in2_pad_cumv_sel", "in2_sub_cumh"),
    *("in2_sub_cumh_sel", "in2_sub2", "in2_sqr", "in2_sqr_sub2", "in_sqr", "tMask", "mask_conv"),
)
_FRAME, _T, _IN2, _CONV, _PAD, _PAD_SEL, _CUMH = range(7)
_CUMH_SEL, _SUB2, _IN2_SQR, _SQR_SUB2, _IN_SQR, _TMASK, _MASKED = range(7, 14)

_NONE = -1
# The kernel's use of a point's arrays between two __syncthreads: two arrays that are read, one that
# is written (and, where it is among those read, changed in place: loaded, then stored). The frame's
# part comes before and after.
_CUMULATE = (
    *((_PAD, _NONE, _PAD), (_PAD, _NONE, _PAD_SEL), (_PAD, _NONE, _CUMH)),
    *((_PAD_SEL, _CUMH, _CUMH), (_CUMH, _NONE, _CUMH), (_CUMH, _NONE, _CUMH_SEL)),
)
PHASES = (
    *((_T, _NONE, _NONE), (_IN2, _NONE, _CONV), (_IN2, _NONE, _PAD)),
    *_CUMULATE,
    *((_CUMH, _NONE, _SUB2), (_CUMH_SEL, _SUB2, _SUB2)),
    *((_IN2, _NONE, _IN2_SQR), (_IN2_SQR, _NONE, _PAD)),
    *_CUMULATE,
    *((_CUMH, _NONE, _SQR_SUB2), (_CUMH_SEL, _SQR_SUB2, _SQR_SUB2), (_SUB2, _SQR_SUB2, _SQR_SUB2)),
    *((_T, _NONE, _IN_SQR), (_T, _NONE, _NONE), (_IN_SQR, _NONE, _NONE)),
    *((_SQR_SUB2, _NONE, _SQR_SUB2), (_CONV, _SUB2, _CONV), (_CONV, _SQR_SUB2, _SQR_SUB2)),
    *((_NONE, _NONE, _TMASK), (_TMASK, _SQR_SUB2, _MASKED), (_MASKED, _NONE, _NONE)),
)


class PointArrays(NamedTuple):
    """The arrays of a point."""

    frame_rows: int
    frame_columns: int
    template: int  # rows and columns of the template
    search: int  # and of the part of the frame that is searched
    elements: tuple[int, ...]  # floats of each of ARRAYS, per point; the frame's are all points'
    stride: tuple[int, ...]  # bytes from point to point


@workload("cppe-HWL")
class Heartwall(Derived):
    """Points of a heart's wall followed through a video: heartwall of Rodinia.

    A thread block per point, a launch per frame. All arrays are column-major. In frame 0 a point's
    template T (51 × 51) is cut out of the frame. In every other, all threads walk through the
    point's arrays from end to end, with __syncthreads after each (``PHASES``: read, read, written):

        in2 = frame's 81 × 81 around the point;  conv = T * in2;  in2 padded, summed down and across
        (131 × 183), the sums' differences in2_sub2 (131 × 131);  the same of in2²;  conv and these
        make in2_sqr_sub2;  tMask;  mask_conv

    and in every tenth frame T is updated: T = 0.87 T + 0.13 frame. An array is allocated for all
    points before the next one, each on 256 bytes. A step is what lies between two __syncthreads; of
    each array it is all, in order of address. Access sites: the arrays as listed in ``ARRAYS``.
    Table II: heartwall, 40.7 MB, Type V; 51 points and a frame of 609 × 590 make 40.9 MiB, but not
    all of the frame is near a point.
    """

    bytes = published_footprint("cppe-HWL", "size of the frame and all points")
    frames = Option(20, "frames of the video (a choice: 20, as Rodinia's script)", least=1)

    @property
    def shape(self) -> PointArrays:
        """The arrays: at the default size and above as in Rodinia, below it all smaller.

        The frame takes the bytes that the points leave.
        """
        scale = min(1.0, (self.bytes / published_bytes("cppe-HWL")) ** 0.5)
        template, search = (2 * max(1, round(scale * size)) + 1 for size in (TEMPLATE, SEARCH))
        elements = _elements(template, search)
        rows = max(search, round(scale * FRAME[0]))
        points = self._points(elements, rows * round(scale * FRAME[1]))
        columns = max(search, (self.bytes - points * _per_point(elements)) // (FLOAT * rows))
        strides = tuple(_stride(array, size) for array, size in enumerate(elements))
        return PointArrays(
            rows, columns, template, search, (rows * columns, *elements[1:]), strides
        )

    def _points(self, elements: tuple[int, ...], frame: int) -> int:
        return max(1, (self.bytes - FLOAT * frame) // _per_point(elements))

    @property
    def points(self) -> int:
        elements = self.shape.elements
        return self._points(elements, elements[0])

    def sizes(self) -> dict[str, int]:
        shape, points = self.shape, self.points
        return {"frame": FLOAT * shape.elements[0]} | {
            name: stride * points for name, stride in zip(ARRAYS[1:], shape.stride[1:], strict=True)
        }

    def launches(self, space: Space) -> Launches:
        shape, points = self.shape, self.points
        places = _places(points, shape)
        phases = np.array(PHASES)
        floats = sum(shape.elements[a] for phase in PHASES for a in phase if a != _NONE)
        # the convolution is nearly all of it
        intensity = 2 * shape.elements[_T] * shape.elements[_IN2] / (FLOAT * floats)
        for frame in range(self.frames):
            arguments = (shape, places, phases, frame)
            convolved = intensity if frame else 0.0
            yield launch_of(space, "kernel", _track, points, arguments, convolved)


def _elements(template: int, search: int) -> tuple[int, ...]:
    """Return the floats of a point's arrays; those of the frame are not known yet."""
    conv = template + search - 1
    padded = search + 2 * template
    sizes = dict.fromkeys(("T", "in_sqr"), template**2) | {"in2_pad_cumv": padded**2}
    sizes |= dict.fromkeys(("in2", "in2_sqr"), search**2)
    sizes |= dict.fromkeys(("in2_pad_cumv_sel", "in2_sub_cumh"), conv * padded)
    return (0, *(sizes.get(name, conv**2) for name in ARRAYS[1:]))


def _stride(array: int, elements: int) -> int:
    """Return the bytes from point to point: all templates are one allocation, other arrays not."""
    size = FLOAT * elements
    return size if array == _T else -(-size // _ALIGNED) * _ALIGNED


def _per_point(elements: tuple[int, ...]) -> int:
    return sum(_stride(array, elements[array]) for array in range(1, len(ARRAYS)))


def _places(points: int, shape: PointArrays) -> NDArray[np.int64]:
    """Return row and column of each point, with room to search around it.

    Points lie in an inner and an outer ring around the middle of the frame; Rodinia's are measured
    in its video. They stay where they are: how they move depends on the video.
    """
    inner, half = points * 20 // POINTS, shape.search // 2
    places = []
    for point in range(points):
        radius, turn = 0.25, point / max(1, inner)
        if point >= inner:
            radius, turn = 0.35, (point - inner) / (points - inner)
        units = cos(2 * pi * turn), sin(2 * pi * turn)
        for size, unit in zip((shape.frame_rows, shape.frame_columns), units, strict=True):
            places.append(min(max(round(size * (0.5 + radius * unit)), half), size - half - 1))
    return np.array(places, np.int64).reshape(points, 2)


@jit
def _cut(log: Any, shape: Any, place: Any, side: int) -> None:
    """Read a square of the frame around a point."""
    half = side // 2
    for column in range(place[1] - half, place[1] + half + 1):
        at = FLOAT * (column * shape.frame_rows + place[0] - half)
        use(log, _FRAME, at, at + FLOAT * side, False)


@jit
def _use_arrays(log: Any, shape: Any, point: int, phase: Any) -> None:
    """Use all of a phase's arrays, from end to end, in step with the longest."""
    longest = 0
    for array in phase:
        if array != _NONE:
            longest = max(longest, shape.elements[array])
    pieces = across(longest, _PIECE)
    for piece in range(pieces):
        for i in range(3):
            array = phase[i]
            if array != _NONE:
                at, size = shape.stride[array] * point, shape.elements[array]
                low, high = size * piece // pieces, size * (piece + 1) // pieces
                use(log, array, at + FLOAT * low, at + FLOAT * high, i == 2)


@jit
def _track(log: Any, count: int, arguments: Any) -> None:
    shape, places, phases, frame = arguments
    only_in2, only_t = np.array([_NONE, _NONE, _IN2]), np.array([_NONE, _NONE, _T])
    updated_t = np.array([_T, _NONE, _T])
    for block in blocks(log, count):
        if frame == 0:
            _cut(log, shape, places[block], shape.template)
            _use_arrays(log, shape, block, only_t)
        else:
            _cut(log, shape, places[block], shape.search)
            _use_arrays(log, shape, block, only_in2)
            for i in range(len(phases)):
                step(log)
                _use_arrays(log, shape, block, phases[i])
            if frame % 10 == 0:
                step(log)
                _cut(log, shape, places[block], shape.template)
                _use_arrays(log, shape, block, updated_t)


ROWS = 219  # of a frame: BOTTOM - TOP + 1
COLUMNS, CELLS = 640, 27  # of the default size
CIRCLE_POINTS, RADII, MARGIN = 150, range(8, 21, 2), 22  # of the circles looked for; MAX_RAD + 2
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
    angles = [2 * pi * n / CIRCLE_POINTS for n in range(CIRCLE_POINTS)]
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
