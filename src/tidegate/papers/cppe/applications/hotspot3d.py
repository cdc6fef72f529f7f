"""HSD: the heat of a stacked chip; thread blocks walk through its layers in every iteration."""

from __future__ import annotations

from math import isqrt
from typing import Any

from tidegate.compiled.jit import jit
from tidegate.options import Option
from tidegate.workloads.program import Derived, Launches, Space, workload
from tidegate.workloads.suites import published_footprint
from tidegate.workloads.thread_blocks import across, blocks, launch_of, tile_of, use_rect

TILE_X, TILE_Y = 64, 4
_POWER, _TEMPERATURE = 0, 1  # and the other temperature, as they are allocated


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
    source, target = _TEMPERATURE + turn, _TEMPERATURE + 1 - turn
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
            use_rect(log, _POWER, n, rows, columns, False)
            use_rect(log, target, n, rows, columns, True)
