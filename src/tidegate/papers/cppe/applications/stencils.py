"""HOT, HSD, SRD and STN: stencils on grids, a tile per thread block, step after step."""

from __future__ import annotations

from math import isqrt
from typing import Any

from tidegate.compiled.jit import jit
from tidegate.options import Option
from tidegate.workloads.program import Derived, Launches, Space, SquareMatrices, workload
from tidegate.workloads.suites import published_footprint
from tidegate.workloads.thread_blocks import across, blocks, launch_of, tile_of, use_rect

TILE = 16  # BLOCK_SIZE
_POWER_2D = 2  # the access site after the two temperatures


@workload("cppe-HOT")
class Hotspot(SquareMatrices):
    """Heat on an n × n grid of floats: hotspot of Rodinia, thread blocks of 16 × 16.

    With ``pyramid`` time steps a launch:

        small = 16 - 2 * steps;  x, y = small * bx - pyramid + tx, small * by - pyramid + ty
        load    temp_src[y n + x], power[y n + x]      where 0 <= x, y < n
        store   temp_dst[y n + x]                      for steps <= tx, ty < 16 - steps: the tile
                                                       that is right after that many time steps

    Operands: both temperatures, which change places, and the power. Grid order: blockIdx.x fastest.
    Access sites: 0, 1 = the temperatures, 2 = power. Table II: hotspot, 12 MB, Type I; three
    matrices of 1024 × 1024 make 12 MiB.
    """

    arrays = ("temp_0", "temp_1", "power")
    bytes = published_footprint("cppe-HOT", "size of the three matrices")
    iterations = Option(2, "time steps (a choice: 2, as in Rodinia's script)", least=1)
    pyramid = Option(
        2, "time steps in a launch (a choice: 2, as in Rodinia's script)", least=1, most=7
    )

    def launches(self, space: Space) -> Launches:
        tiles = across(self.n, TILE - 2 * self.pyramid)
        for launch, done in enumerate(range(0, self.iterations, self.pyramid)):
            steps = min(self.pyramid, self.iterations - done)
            shape = (self.n, tiles, steps, self.pyramid, launch % 2)
            yield launch_of(space, "calculate_temp", _calculate_temp, tiles**2, shape)


@jit
def _calculate_temp(log: Any, count: int, shape: Any) -> None:
    n, tiles, steps, border, source = shape
    small = TILE - 2 * steps
    for block in blocks(log, count):
        top, left = small * (block // tiles) - border, small * (block % tiles) - border
        rows, columns = (max(0, top), min(n, top + TILE)), (left, left + TILE)
        use_rect(log, source, n, rows, columns, False)
        use_rect(log, _POWER_2D, n, rows, columns, False)
        top, left = top + steps, left + steps
        rows, columns = (max(0, top), min(n, top + small)), (left, left + small)
        use_rect(log, 1 - source, n, rows, columns, True)


TILE_X, TILE_Y = 64, 4  # of the stencil 32 × 4 threads, each two points
_POWER_3D, _TEMPERATURE_3D = 0, 1  # and the other temperature, as they are allocated


@workload("cppe-HSD")
class Hotspot3D(Derived):
    """Heat on n × n × layers floats: hotspot3D of Rodinia (hotspotOpt1).

    Thread blocks of 64 × 4 loop over the layers:

        x, y = blockIdx.x * 64 + threadIdx.x, blockIdx.y * 4 + threadIdx.y;  c = x + n y
        for z in 0 … layers - 1:
            tOut[c + z n²] = f(tIn at c + z n² and its six neighbours, clamped, pIn[c + z n²])

    Operands: two temperatures, which change places after every launch, and the power. Grid order:
    blockIdx.x fastest. Access sites: 0 = power, 1, 2 = the temperatures. Table II: hotspot3D, 24
    MB, Type IV; three of 512 × 512 × 8 make 24 MiB. The paper limits HSD's instructions and does
    not say to what.
    """

    bytes = published_footprint("cppe-HSD", "size of the three arrays")
    iterations = Option(100, "iterations (a choice: 100, as in Rodinia's script)", least=1)
    layers = Option(8, "layers of the chip (a choice: 8, as in Rodinia's script)", least=1)

    @property
    def n(self) -> int:
        """Rows and columns of a layer."""
        return isqrt(self.bytes // (12 * self.layers))

    def sizes(self) -> dict[str, int]:
        return dict.fromkeys(("power", "t_0", "t_1"), 4 * self.layers * self.n**2)

    def launches(self, space: Space) -> Launches:
        count = across(self.n, TILE_X) * across(self.n, TILE_Y)
        for iteration in range(self.iterations):
            shape = (self.n, self.layers, iteration % 2)
            yield launch_of(space, "hotspotOpt1", _hotspot, count, shape)


@jit
def _hotspot(log: Any, count: int, shape: Any) -> None:
    n, layers, turn = shape
    source, target = _TEMPERATURE_3D + turn, _TEMPERATURE_3D + 1 - turn
    for block in blocks(log, count):
        (top, bottom), columns = tile_of(block, n, TILE_X, TILE_Y)
        wider = columns[0] - 1, columns[1] + 1
        for z in range(layers):
            at = z * n
            rows = at + top, at + bottom
            use_rect(log, source, n, (at + max(0, top - 1), at + top), columns, False)
            use_rect(log, source, n, rows, wider, False)
            use_rect(log, source, n, (at + bottom, at + min(n, bottom + 1)), columns, False)
            # the layer above is loaded one turn ahead, and its neighbours in the next
            if z + 1 < layers:
                use_rect(log, source, n, (rows[0] + n, rows[1] + n), columns, False)
            use_rect(log, _POWER_3D, n, rows, columns, False)
            use_rect(log, target, n, rows, columns, True)


_J, _C, _E, _W, _S, _N = range(6)


@workload("cppe-SRD")
class Srad(SquareMatrices):
    """Speckle-reducing anisotropic diffusion of an n × n picture of floats: srad_v2 of Rodinia.

    Thread blocks have 16 × 16 threads. At each point p of a tile (y n + x), with its neighbours n,
    s, w, e, clamped at the edges; two launches an iteration:

        srad_cuda_1   N, S, W, E[p] = J[n], J[s], J[w], J[e] - J[p];  C[p] = f(those, J[p])
        srad_cuda_2   J[p] += λ (C[p] N[p] + C[s] S[p] + C[p] W[p] + C[e] E[p]);  J is loaded first

    Operands: six matrices. Grid order: blockIdx.x fastest. Access sites: the matrices as they are
    allocated. The sums that the host takes of J between iterations are left out. Table II: srad_v2,
    96 MB, Type IV; six of 2048 × 2048 make 96 MiB.
    """

    arrays = ("J", "C", "E", "W", "S", "N")  # as srad.cu allocates them
    bytes = published_footprint("cppe-SRD", "size of the six matrices")
    iterations = Option(2, "iterations (a choice: 2, as in Rodinia's script)", least=1)

    def launches(self, space: Space) -> Launches:
        count = across(self.n, TILE) ** 2
        for _ in range(self.iterations):
            yield launch_of(space, "srad_cuda_1", _srad_1, count, (self.n,))
            yield launch_of(space, "srad_cuda_2", _srad_2, count, (self.n,))


@jit
def _srad_1(log: Any, count: int, shape: Any) -> None:
    n = shape[0]
    for block in blocks(log, count):
        rows, columns = tile_of(block, n, TILE, TILE)
        use_rect(log, _J, n, (max(0, rows[0] - 1), rows[0]), columns, False)
        use_rect(log, _J, n, rows, (columns[0] - 1, columns[1] + 1), False)
        use_rect(log, _J, n, (rows[1], min(n, rows[1] + 1)), columns, False)
        for array in (_C, _E, _W, _S, _N):
            use_rect(log, array, n, rows, columns, True)


@jit
def _srad_2(log: Any, count: int, shape: Any) -> None:
    n = shape[0]
    for block in blocks(log, count):
        rows, columns = tile_of(block, n, TILE, TILE)
        use_rect(log, _J, n, rows, columns, False)
        use_rect(log, _C, n, rows, (columns[0], columns[1] + 1), False)
        use_rect(log, _C, n, (rows[1], min(n, rows[1] + 1)), columns, False)
        for array in (_N, _S, _W, _E):
            use_rect(log, array, n, rows, columns, False)
        use_rect(log, _J, n, rows, columns, True)


@workload("cppe-STN")
class Stencil3D(Derived):
    """A seven-point stencil on n × n × planes floats: stencil of Parboil, 32 × 4 threads.

    The kernel is block2D_hybrid_coarsen_x:

        i, j = blockIdx.x * 64 + threadIdx.x (and + 32), blockIdx.y * 4 + threadIdx.y
        at = i + n (j + n k)
        load   A0[at] of k = 0, 1;  for k in 1 … planes - 2:
               A0[at + n²];  where 0 < i, j < n - 1:
                   A0[at ± n], A0[at ± 1] at the tile's edges, Anext[at] is written

    Operands: two arrays, which change places after every launch. Grid order: blockIdx.x fastest.
    Access sites: 0, 1 = the arrays. Table II: stencil, 4 MB, Type IV; two of 128 × 128 × 32,
    Parboil's default input, make 4 MiB.
    """

    bytes = published_footprint("cppe-STN", "size of both arrays together")
    iterations = Option(
        100, "iterations (a choice: 100, as Parboil's default input, from memory)", least=1
    )
    planes = Option(32, "planes (a choice: 32, as Parboil's default input)", least=3)

    @property
    def n(self) -> int:
        """Rows and columns of a plane."""
        return isqrt(self.bytes // (8 * self.planes))

    def sizes(self) -> dict[str, int]:
        return dict.fromkeys(("even", "odd"), 4 * self.planes * self.n**2)

    def launches(self, space: Space) -> Launches:
        count = across(self.n, TILE_X) * across(self.n, TILE_Y)
        for iteration in range(self.iterations):
            shape = (self.n, self.planes, iteration % 2)
            yield launch_of(space, "block2D_hybrid_coarsen_x", _stencil, count, shape)


@jit
def _stencil(log: Any, count: int, shape: Any) -> None:
    n, planes, source = shape
    for block in blocks(log, count):
        (top, bottom), columns = tile_of(block, n, TILE_X, TILE_Y)
        (first, last), stored = tile_of(block, n, TILE_X, TILE_Y, 1)
        left, right = columns
        for k in range(planes):
            at = k * n
            use_rect(log, source, n, (at + top, at + bottom), columns, False)
            if 0 < k < planes - 1 and first < last and stored[0] < stored[1]:
                now = at + first, at + last
                use_rect(log, source, n, (at + first - 1, at + top), stored, False)
                use_rect(log, source, n, (at + bottom, at + last + 1), stored, False)
                use_rect(log, source, n, now, (stored[0] - 1, left), False)
                use_rect(log, source, n, now, (right, stored[1] + 1), False)
                use_rect(log, 1 - source, n, now, stored, True)
