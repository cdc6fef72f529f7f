"""HSD: the heat of a stacked chip; thread blocks go through its layers, iteration after iteration."""

from __future__ import annotations

from collections.abc import Iterator
from math import isqrt
from typing import Any

from tidegate import units
from tidegate.compiled.jit import jit
from tidegate.options import Option
from tidegate.trace.trace import Launch, Provenance
from tidegate.workloads.cppe.kernel import across, closed, going, rect, stream
from tidegate.workloads.program import Space, Workload, workload
from tidegate.workloads.suites import published_bytes

TILE_X, TILE_Y = 64, 4
_POWER, _TEMPERATURE = 0, 1  # and the other temperature, as they are allocated


@workload("cppe-HSD")
class Hotspot3D(Workload):
    """Heat on n × n × layers floats: hotspot3D of Rodinia (hotspotOpt1), thread blocks of 64 × 4
    that loop over the layers.

        x, y = blockIdx.x * 64 + threadIdx.x, blockIdx.y * 4 + threadIdx.y;  c = x + n y
        for z in 0 … layers - 1:
            tOut[c + z n²] = f(tIn at c + z n² and its six neighbours, clamped at the edges, pIn[c + z n²])

    Operands: two temperatures, which change places after every launch, and the power. Grid order:
    blockIdx.x fastest. References: 0 = power, 1, 2 = the temperatures. Table II: hotspot3D, 24 MB,
    Type IV; three of 512 × 512 × 8 make 24 MiB. The paper limits HSD's instructions and does not
    say to what.
    """

    provenance = Provenance.DERIVED
    bytes = Option(
        published_bytes("cppe", "cppe-HSD"), "size of the three arrays", parse=units.size, least=1
    )
    iterations = Option(100, "iterations (a choice: 100, as Rodinia's script)", least=1)
    layers = Option(8, "layers of the chip (a choice: 8, as Rodinia's script)", least=1)

    @property
    def n(self) -> int:
        """Rows and columns of a layer."""
        return isqrt(self.bytes // (12 * self.layers))

    def sizes(self) -> dict[str, int]:
        return dict.fromkeys(("power", "t_0", "t_1"), 4 * self.layers * self.n**2)

    def launches(self, space: Space) -> Iterator[Launch]:
        count = across(self.n, TILE_X) * across(self.n, TILE_Y)
        for iteration in range(self.iterations):
            shape = (self.n, self.layers, iteration % 2)
            yield Launch("hotspotOpt1", stream(space, _hotspot, count, shape))


@jit
def _hotspot(log: Any, block: int, count: int, shape: Any) -> Any:
    n, layers, turn = shape
    source, target = _TEMPERATURE + turn, _TEMPERATURE + 1 - turn
    tiles = across(n, TILE_X)
    while block < count and going(log):
        top, left = block // tiles * TILE_Y, block % tiles * TILE_X
        bottom, right = min(n, top + TILE_Y), min(n, left + TILE_X)
        for z in range(layers):
            at = z * n
            rect(log, source, n, (at + max(0, top - 1), at + top), (left, right), False)
            rect(log, source, n, (at + top, at + bottom), (left - 1, right + 1), False)
            rect(log, source, n, (at + bottom, at + min(n, bottom + 1)), (left, right), False)
            # the layer above is loaded one turn ahead, and its neighbours in the next
            if z + 1 < layers:
                rect(log, source, n, (at + n + top, at + n + bottom), (left, right), False)
            rect(log, _POWER, n, (at + top, at + bottom), (left, right), False)
            rect(log, target, n, (at + top, at + bottom), (left, right), True)
        block += closed(log)
    return block
